"""Records written in format 1, before its keys got their present names: read in full, and valid in a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spindle.result.conversion import _RENAMED
from spindle.result.document import decode, encode, schema
from spindle.result.record import FORMAT, CurveRecord, PhasesRecord, QuickRecord, RunRecord, TargetRecord
from spindle.store import adding, open_store, rows

FOLDER = Path(__file__).parents[1] / "data" / "records-format-1"
LATER = {"cpu_percent"}
KINDS = ("run", "target", "curve", "quick", "phases")


def old(kind: str) -> bytes:
    return (FOLDER / f"{kind}.json").read_bytes()


def keys(value: Any) -> Iterator[str]:
    for key, each in value.items() if isinstance(value, dict) else ((None, each) for each in value):
        if key is not None:
            yield key
        if isinstance(each, dict | list):
            yield from keys(each)


def test_the_records_have_every_key_that_was_renamed() -> None:
    used = {key for kind in KINDS for key in keys(json.loads(old(kind)))}
    assert {before for _, before, _ in _RENAMED} <= used


@pytest.mark.parametrize("kind", KINDS)
def test_no_value_of_an_old_record_is_lost(kind: str) -> None:
    """The record that is written again has each value of the old document, and as many of them."""

    def values(value: Any) -> Iterator[str]:
        match value:
            case dict():
                for key, each in value.items():
                    if key not in ("format", "request"):  # a record has a request only since format 2
                        yield from values(each)
            case list():
                for each in value:
                    yield from values(each)
            case _:
                yield json.dumps(value)

    again = json.loads(encode(decode(old(kind), kind)))
    assert again["format"] == FORMAT
    assert sorted(values(again)) == sorted(values(json.loads(old(kind))))
    assert not {before for path, before, _ in _RENAMED if not path} & set(again)


def test_the_fields_have_the_values_of_the_old_keys() -> None:
    run = decode(old("run"), "run")
    assert isinstance(run, RunRecord)
    assert run.preflight["unchecked"] == ["swapping: /proc/vmstat does not count it"]
    assert run.activity.samples[0].array_actions == {"md0": "check"}
    [change] = run.preparation.changed_settings
    assert (change.restored, change.reason) == (False, "it is resync now")
    assert run.preparation.precondition is not None
    assert run.preparation.precondition.window is not None
    assert run.preparation.precondition.window.evaluations == 7
    assert [one.during for one in run.settings.temporary] == ["bfq"]
    assert run.figures.steady is not None
    assert run.figures.steady.evaluations == 7
    assert run.figures.log is not None
    assert run.figures.log.error == "No space left on device"
    seen = run.figures.verification
    assert seen is not None
    assert seen.read_back is not None
    assert (seen.delayed_writes, seen.during_load.blocks, seen.wrong) == (3, 9, 2)
    assert "torn: 3 sectors" in seen.read_back.found.faults[0].first[0].description
    assert run.workload.streams[0].separate_writes is not None


def test_runs_and_results_of_searches_are_converted_too() -> None:
    target, curve, quick, phases = (decode(old(kind), kind) for kind in KINDS[1:])
    assert isinstance(target, TargetRecord)
    [point] = target.search.points
    assert (point.sustained, point.checks[0].fraction_over) == (True, 0.001)
    assert target.runs[0].figures.steady is not None
    assert target.runs[0].figures.steady.evaluations == 7
    assert isinstance(curve, CurveRecord)
    assert (curve.curve.sustained_iops, curve.curve.saturated_iops, curve.curve.max_outstanding) == (700, 900, 256)
    assert isinstance(quick, QuickRecord)
    assert quick.preflight["level"] == "warn"
    assert isinstance(phases, PhasesRecord)
    assert all(stream.separate_writes for phase in phases.workload.phases for stream in phase.load.streams)


def test_no_schema_has_an_old_key() -> None:
    text = json.dumps(schema("result"))
    for old_key in (
        "quieted",
        "put_back",
        "kept_up",
        "looks",
        "idle",
        "prepared",
        "writes_apart",
        "carried",
        "passing",
    ):
        assert f'"{old_key}":' not in text


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_of_an_old_record_are_as_they_were(kind: str) -> None:
    """`rows.json`: what the code that wrote these records put into the tables; `LATER`: metrics that came since."""
    record = decode(old(kind), kind)
    runs = [rows.run_rows(run, number) for number, run in enumerate(rows.runs_of(record))]
    found = {
        "records": [rows.record_row(record)],
        "verdicts": list(rows.verdict_rows(record)),
        "device_intervals": rows.device_interval_rows(record),
        "runs": [run.run for run in runs],
        "settings": [[run.settings, run.settings_after] for run in runs],
        **{name: [row for run in runs for row in run.tables[name]] for name in runs[0].tables},
    }
    written = json.loads((FOLDER / "rows.json").read_text())[kind]
    metrics = {row["name"]: row["value"] for row in rows.metric_rows(record)}
    before = {row["name"]: row["value"] for row in written.pop("metrics")}
    assert {name: metrics.get(name) for name in before} == before
    assert {name.rpartition(".")[2] for name in metrics.keys() - before.keys()} <= LATER
    assert json.loads(json.dumps(found)) == written


def test_a_store_keeps_old_records_as_they_were_written(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        for kind in KINDS:
            document = adding.Document.of(decode(old(kind), kind), old(kind))
            kept = store._database.write(partial(adding.add, document=document, tags=[], source=None))
            assert store.document(kept.id) == old(kind)
        assert store.check().problems == []
