"""An imported result is a record like any other: shown, stored, compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from msgspec.structs import replace

from spindle.result.document import decode, encode, schema
from spindle.result.imported import PartialLatency, PartialOp, PartialStream, Source
from spindle.result.record import ImportedRecord, Level, Tool, Verdict
from spindle.stats.metric import values
from spindle.store import open_store
from tests.program import Invoke


def stream(name: str, iops: float, group: int = 0, **latency: object) -> PartialStream:
    read = PartialOp(
        requests=round(iops),
        bytes=round(iops) * 4096,
        iops=iops,
        bytes_per_s=iops * 4096,
        latency=PartialLatency(**latency) if latency else None,  # type: ignore[arg-type]
    )
    return PartialStream(name=name, group=group, seconds=1.0, operations={"read": read})


def imported(*streams: PartialStream) -> ImportedRecord:
    return ImportedRecord(
        id="20260101T000000Z-abcdef",
        started="2026-01-01T00:00:00Z",
        tool=Tool(version="0.1.0"),
        source=Source(format="fio-json", tool="fio", version="fio-3.33", file="a.json", sha256="0" * 64),
        target="/dev/sdx",
        workload="randread",
        streams=list(streams),
        verdicts=[Verdict(check="imported", level=Level.WARN, evidence="conditions unknown")],
    )


def test_an_imported_record_matches_the_schema_and_reads_back_the_same() -> None:
    found = imported(stream("a", 100.0, mean_ns=1e6))
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(encode(found)))
    assert decode(encode(found), "a.json") == found


def test_streams_that_ran_together_add_up() -> None:
    found = values(imported(stream("a", 100.0), stream("b", 50.0)))
    assert found["iops"] == 150.0
    assert found["read.bytes_per_s"] == 150.0 * 4096
    assert found["b/read.iops"] == 50.0


def test_streams_that_did_not_run_together_do_not_add_up() -> None:
    found = values(imported(stream("a", 100.0), stream("b", 50.0, group=1)))
    assert "iops" not in found
    assert "read.iops" not in found
    assert found["a/read.iops"] == 100.0


def test_an_unknown_value_is_not_a_metric() -> None:
    one = stream("a", 100.0)
    unknown = replace(one, name="b", operations={"read": replace(one.operations["read"], iops=None)})
    found = values(imported(one, unknown))
    assert "iops" not in found
    assert "read.iops" not in found
    assert not [name for name in found if name.endswith("_ns")]


def test_means_of_two_streams_are_weighted_and_percentiles_need_histograms() -> None:
    moments: dict[str, Any] = {"min_ns": 1, "max_ns": 10_000_000, "sdev_ns": 1e5, "percentiles": [(99.0, 5_000_000)]}
    found = values(imported(stream("a", 300.0, mean_ns=1e6, **moments), stream("b", 100.0, mean_ns=2e6, **moments)))
    assert found["read.mean_ns"] == 1.25e6
    assert found["a/read.p99_ns"] == 5e6
    assert "read.p99_ns" not in found


def test_show_prints_an_imported_record_and_its_warning(invoke: Invoke, here: Path) -> None:
    (here / "a.json").write_bytes(encode(imported(stream("a", 100.0), stream("b", 50.0, group=1))))
    ended = invoke("show", "a.json")
    assert ended.status == 0
    assert "fio's randread on /dev/sdx (fio-3.33)" in ended.out
    assert "do not add their rates" in ended.out
    assert "conditions unknown" in ended.out
    assert invoke("show", "a.json", "--strict").status == 1


def test_the_store_keeps_an_imported_record_and_its_metrics(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        run_id = store.add(imported(stream("a", 100.0)), tags=["old"])
        [found] = store.select("tag:old")
        assert (found.kind, found.target, found.workload) == ("imported", "/dev/sdx", "randread")
        assert store.record(run_id) == imported(stream("a", 100.0))
        assert store.metrics([found], ["iops"]) == [{"iops": 100.0}]
