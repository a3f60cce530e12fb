"""`spindle-agent` measures the same as `spindle run`, and its file is read as a record with verdicts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle import formats
from spindle.result.document import Unreadable, encode
from spindle.result.record import PhasesRecord, RunRecord
from tests.program import Ended, spindle

Agent = Callable[..., Ended]

MIX = """
seed = 7
requests = 400
direct = false
size = "1KiB-64KiB"
align = "1KiB"
write_fraction = 0.3
workers = 1
"""
PHASES = """
requests = 64
direct = false
size = "4KiB"

[[phase]]
name = "write"
write_fraction = 1

[[phase]]
name = "read"
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "mix.toml"
    path.write_text(MIX)
    return path


@pytest.fixture
def measured(agent: Agent, workload: Path, tmp_path: Path) -> Path:
    """A result on a test file of its own."""
    output = tmp_path / "agent.json"
    done = agent(workload, tmp_path / "own.bin", output, "--create", "4MiB", "--engine", "pread")
    assert done.status == 0, done.err
    return output


def run_of(path: Path) -> RunRecord:
    (record,) = formats.read(path)
    assert isinstance(record, RunRecord)
    return record


def moved(record: RunRecord) -> list[tuple[str, str, int, int]]:
    return [
        (stream.name, name, op.requests, op.bytes) for stream in record.figures.streams for name, op in stream.ops()
    ]


def keys(value: Any, place: str = "") -> set[str]:
    """Places of all keys of a document."""
    if isinstance(value, dict):
        return {f"{place}.{key}" for key in value} | {
            found for key in value for found in keys(value[key], f"{place}.{key}")
        }
    return {found for item in value for found in keys(item, place)} if isinstance(value, list) else set()


@pytest.mark.parametrize("target", ["null:64MiB", "own"])
def test_the_same_workload_makes_the_same_requests_as_spindle_run(
    target: str, agent: Agent, workload: Path, tmp_path: Path
) -> None:
    made = [] if target != "own" else ["--create", "4MiB"]
    place = target if target != "own" else str(tmp_path / "own.bin")
    ours, theirs = tmp_path / "run.json", tmp_path / "agent.json"
    done = spindle("run", workload, place, *made, "--output", ours)
    assert ours.exists(), done.err
    assert agent(workload, place, theirs, *made).status == 0
    run, other = run_of(ours), run_of(theirs)
    assert run.workload == other.workload
    assert run.request == other.request
    assert run.seed == other.seed == 7
    assert moved(run) == moved(other)
    assert {name for _, name, _, _ in moved(run)} == {"read", "write"}
    assert sum(requests for _, _, requests, _ in moved(run)) == 400
    documents = [json.loads(path.read_bytes()) for path in (ours, theirs)]
    assert keys(documents[0]["workload"]) == keys(documents[1]["runs"][0]["workload"])
    assert keys(documents[0]["figures"]) == keys(documents[1]["runs"][0]["figures"])
    assert set(documents[0]) == set(json.loads(encode(other)))
    assert set(run.settings.before) - set(other.settings.before) <= {
        name for name in run.settings.before if name.startswith("cgroup.")
    }
    assert other.settings.before.items() <= run.settings.before.items()


def test_its_record_has_verdicts_and_says_that_nobody_watched(measured: Path) -> None:
    record = run_of(measured)
    assert record.tool.name == "spindle-agent"
    levels = {verdict.check: verdict.level for verdict in record.verdicts}
    assert levels["errors"] == "ok"
    assert levels["too-short"] == "warn"
    assert levels["before-watch"] == "warn"
    assert record.target.kind == "file"
    assert record.target.created
    assert record.target.detail["file_system"] == record.target.detail["stack"][0]["name"]
    assert formats.read(measured) == [record]  # the same id each time


def test_every_verb_that_reads_results_takes_it(agent: Agent, workload: Path, tmp_path: Path) -> None:
    measured = tmp_path / "null.json"
    assert agent(workload, "null:64MiB", measured).status == 0
    shown = spindle("show", measured)
    assert (shown.status, "null target of 64 MiB" in shown.out) == (0, True), shown.err
    assert spindle("show", measured, "--json").json["kind"] == "run"
    assert spindle("store", "import", measured, "--store", tmp_path / "s.db").status == 0
    assert spindle("show", measured, "--from", "spindle-agent").out == shown.out
    compared = spindle("compare", measured, measured)
    assert "Traceback" not in compared.err
    assert compared.status == 0, compared.err


def test_phases_become_a_record_of_phases(agent: Agent, tmp_path: Path) -> None:
    path, output = tmp_path / "two.toml", tmp_path / "r.json"
    path.write_text(PHASES)
    assert agent(path, tmp_path, output, "--create", "1MiB").status == 0
    (record,) = formats.read(output)
    assert isinstance(record, PhasesRecord)
    assert [phase.name for phase in record.phases] == ["write", "read"]
    assert [verdict.check for verdict in record.verdicts] == ["phases"]
    document = json.loads(output.read_bytes())
    del document["runs"][1]
    (cut,) = formats.read_bytes(json.dumps(document).encode(), "cut.json")
    assert [verdict.check for verdict in cut.verdicts] == ["interrupted"]


def test_changed_settings_make_it_invalid(measured: Path) -> None:
    document = json.loads(measured.read_bytes())
    (load,) = document["runs"]
    swappiness = load["before"]["files"]["proc/sys/vm/swappiness"]
    load["after"]["files"]["proc/sys/vm/swappiness"] = str((int(swappiness) + 1) % 100)
    (record,) = formats.read_bytes(json.dumps(document).encode(), "changed.json")
    assert isinstance(record, RunRecord)
    assert [change.name for change in record.settings.changed] == ["vm.swappiness"]
    assert {verdict.check: verdict.level for verdict in record.verdicts}["settings"] == "invalid"


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "proc/../../etc/x", "etc/x", "proc//x", "sys"])
@pytest.mark.parametrize("part", ["files", "links", "aims"])
def test_no_name_in_it_leads_out_of_its_own_folder(name: str, part: str, measured: Path) -> None:
    document = json.loads(measured.read_bytes())
    before = document["runs"][0]["before"]
    match part:
        case "files":
            before["files"][name] = "x"
        case "links":
            before["links"][name] = "sys/x"
        case _:
            before["links"]["sys/class/block/x"] = name
    with pytest.raises(Unreadable, match="no path of a file of the kernel"):
        formats.read_bytes(json.dumps(document).encode(), "bad.json")


def complaint_about(data: bytes) -> str | None:
    try:
        formats.read_bytes(data, "damaged.json")
    except Unreadable as error:
        return str(error)
    return None


def test_a_damaged_file_is_read_or_refused_in_one_line(measured: Path) -> None:
    data, chance = measured.read_bytes(), random.Random(20_260_101)
    refused = 0
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        pieces = [bytes(damaged), data[: chance.randrange(len(data))]]
        for piece in pieces:
            complaint = complaint_about(piece)
            assert complaint is None or "\n" not in complaint
            refused += complaint is not None
    assert refused >= 50
    newer = data.replace(b'"format":1', b'"format":2', 1)
    with pytest.raises(Unreadable, match="newer"):
        formats.read_bytes(newer, "newer.json")
