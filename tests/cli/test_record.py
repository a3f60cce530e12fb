"""The record: what the core says is kept whole, and it is what its JSON Schema says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from spindle import _core
from spindle.result.buckets import BUCKETS, bounds_ns, percentile_ns, together
from spindle.result.document import Unreadable, decode, encode, schema
from spindle.result.figures import figures_from_json
from spindle.result.record import new_id
from spindle.result.workload import workload_from_json
from tests.cli.records import quiet_read
from tests.cli.test_tables import knee_record
from tests.program import Invoke

OPTIONS = [
    [],
    [("pattern", "zipf"), ("size", "4KiB-64KiB"), ("rate", "500 IOPS"), ("spacing", "poisson"), ("priority", "idle")],
    [("pattern", "shuffled"), ("think", "10ms"), ("think_every", "4"), ("think_spin", "1ms"), ("stop_passes", "2")],
    [("pattern", "pareto"), ("center", "25%"), ("write_fraction", "100%"), ("trim_first", "true")],
    [("pattern", "normal"), ("scattered", "false"), ("think", "10ms"), ("think_work", "4ms")],
    [("pattern", "zoned"), ("zones", "10%:60,90%:40"), ("write_zones", "1GiB:1"), ("write_size", "8KiB-64KiB")],
    [("pattern", "runs"), ("run_fixed", "true"), ("run_repeat", "true"), ("own_writes", "true")],
    [("pattern", "hot-set"), ("size", "4KiB:70,64KiB:30"), ("rate_limit", "10 MB/s"), ("region", "1GiB-50%")],
    [("until_steady", "true"), ("steady_metric", "latency"), ("steady_window", "30s"), ("steady_drift", "none")],
    [("pattern", "strided"), ("think", "10ms"), ("content", "compressible:50%"), ("rate_limit", "500 IOPS")],
    [("mapped", "true"), ("write_fraction", "50%"), ("dedupe", "30%"), ("dedupe_set", "20"), ("ends", "all")],
    [("pattern", "shuffled"), ("window", "1MiB"), ("window_bytes", "64KiB"), ("window_skip", "8KiB")],
    [("pattern", "runs"), ("size", "log-normal:mean=26KiB,max=512KiB"), ("requests", "10"), ("bytes", "1GiB")],
]


@pytest.mark.parametrize("preset", _core.preset_names())
def test_every_preset_passes_through_the_record_unchanged(preset: str) -> None:
    text = _core.Workload.parse(_core.preset_text(preset), preset, preset).to_json()
    assert json.loads(msgspec.json.encode(workload_from_json(text))) == json.loads(text)


@pytest.mark.parametrize("options", OPTIONS)
def test_every_form_of_a_key_passes_through_the_record_unchanged(options: list[tuple[str, str]]) -> None:
    text = _core.Workload.parse("", "w.toml", "w", options).to_json()
    assert json.loads(msgspec.json.encode(workload_from_json(text))) == json.loads(text)


def test_records_match_the_schema() -> None:
    checker = jsonschema.Draft202012Validator(schema("result"))
    checker.check_schema(schema("result"))
    for found in (quiet_read(), knee_record()):
        checker.validate(json.loads(encode(found)))


def test_the_schema_refuses_documents_that_are_not_records() -> None:
    checker = jsonschema.Draft202012Validator(schema("result"))
    found = json.loads(encode(quiet_read()))
    del found["figures"]["streams"][0]["read"]["latency"]
    assert not checker.is_valid(found)
    assert not checker.is_valid({"kind": "run"})


def test_workloads_match_their_schema() -> None:
    checker = jsonschema.Draft202012Validator(schema("workload"))
    for preset in _core.preset_names():
        checker.validate(json.loads(_core.Workload.parse(_core.preset_text(preset), preset, preset).to_json()))


def test_buckets_of_intervals_are_where_the_core_counts_them() -> None:
    """Null requests of 3 us: every latency is between the bounds of its bucket, and none is lost."""
    load = _core.Workload.parse("", "w.toml", "w", [("seconds", "0.3s"), ("size", "4KiB")])
    running = _core.Run.null(load, 1 << 30, 3_000)
    assert running.wait(60)
    figures = figures_from_json(running.figures())
    counts = together(stream.latency_counts for interval in figures.series for stream in interval.streams)
    read = figures.streams[0].read
    assert read is not None
    assert sum(counts.values()) == read.requests
    assert bounds_ns(min(counts))[0] <= read.latency.min_ns < bounds_ns(min(counts))[1]
    assert bounds_ns(max(counts))[0] <= read.latency.max_ns < bounds_ns(max(counts))[1]
    median_ns, expected_ns = read.latency.percentile(50.0), percentile_ns(counts, 50.0)
    assert median_ns is not None
    assert expected_ns is not None
    assert expected_ns / 1.25 <= median_ns <= expected_ns * 1.25
    assert bounds_ns(BUCKETS - 1)[1] == 1 << 42


def test_a_record_read_back_is_the_same() -> None:
    for found in (quiet_read(), knee_record()):
        assert decode(encode(found), "r.json") == found


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a result"),
        (b'{"kind": "walk"}', "not a result"),
        (b'{"kind": "run"}', "not a result"),
    ],
)
def test_a_file_that_is_not_a_record_is_one_line(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable) as error:
        decode(data, "r.json")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_record_of_a_later_format_is_not_misread() -> None:
    later = encode(quiet_read()).replace(b'"format": 2', b'"format": 3')
    with pytest.raises(Unreadable, match="format 3 is newer"):
        decode(later, "r.json")


def test_identities_sort_by_time() -> None:
    assert new_id(1.0e9) < new_id(1.0e9 + 1) < new_id(2.0e9)


def test_show_prints_the_page_of_a_saved_record(invoke: Invoke, here: Path) -> None:
    (here / "r.json").write_bytes(encode(quiet_read()))
    ended = invoke("show", "r.json")
    assert ended.status == 0
    assert "16000.0" in ended.out
    assert json.loads(invoke("show", "r.json", "--json").out)["kind"] == "run"


@pytest.mark.parametrize("devices", [None, 7, "x", [None], [{}], {"name": "sda"}])
def test_a_record_made_elsewhere_is_shown_with_any_details(devices: object, invoke: Invoke, here: Path) -> None:
    document = json.loads(encode(quiet_read()))
    document["target"]["kind"] = "file"
    document["target"]["detail"]["devices"] = devices
    (here / "r.json").write_text(json.dumps(document))
    ended = invoke("show", "r.json")
    assert (ended.status, ended.err) == (0, "")


def test_a_record_cannot_move_the_readers_cursor(invoke: Invoke, here: Path) -> None:
    document = json.loads(encode(quiet_read()))
    document["target"]["asked"] = "x\x1b[2J\ny"
    document["verdicts"].append({"check": "late", "level": "warn", "evidence": "a\x1b]0;b\x07"})
    (here / "r.json").write_text(json.dumps(document))
    ended = invoke("show", "r.json")
    assert "x?[2J?y" in ended.out
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", ended.out)


@pytest.mark.parametrize("name", ["missing.json", ".", "/dev/null"])
def test_show_says_in_one_line_why_it_cannot_read_a_file(name: str, invoke: Invoke, here: Path) -> None:
    ended = invoke("show", name)
    assert ended.status == 2
    assert name in ended.complaint
