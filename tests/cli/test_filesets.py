"""`spindle run WORKLOAD DIR`: files of the workload's own in a folder, in figures, record, report and store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions import IdleCheck
from spindle.host.testfile import sweep_leftovers
from spindle.report.document.recipe import toml
from spindle.result.document import decode
from spindle.result.record import PhasesRecord, RunRecord
from spindle.run.resolve import resolve_text
from tests.program import Invoke, ended, started

MIB = 1 << 20
SETS = """
seconds = "0.3"

[[files]]
name = "data"
nrfiles = 4
filesize = "1MiB"

[[files]]
name = "log"
filesize = "8MiB"
fill = false

[[stream]]
name = "reads"
direct = false
workers = 2

[[stream]]
name = "log"
files = "log"
direct = false
pattern = "sequential"
write_fraction = 1
fdatasync_every = 64
end_fsync = true
"""


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second in which the machine is watched is not what is tested here."""
    monkeypatch.setattr("spindle.run.preparation.conditions.idle_check", lambda _devices: IdleCheck(0.0, [], {}))


@pytest.fixture
def place(here: Path) -> Path:
    (here / "w.toml").write_text(SETS)
    (here / "dir").mkdir()
    return here / "dir"


def run(invoke: Any, *arguments: str) -> RunRecord:
    done = invoke("run", *arguments, "--quiet", "--json")
    assert done.status in (0, 1), done.err
    found = decode(done.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def test_sets_are_made_used_and_removed(invoke: Invoke, place: Path) -> None:
    found = run(invoke, "w.toml", "dir")
    assert (found.target.kind, found.target.created, found.target.size_bytes) == ("directory", True, 12 * MIB)
    assert [(each["name"], each["files"], each["filled"]) for each in found.target.detail["sets"]] == [
        ("data", 4, True),
        ("log", 1, False),
    ]
    assert found.target.detail["region_bytes"] == 8 * MIB
    reads, log = found.figures.streams
    assert reads.read is not None
    assert reads.read.requests > 0
    assert log.fsync is not None
    assert log.fsync.requests > 0
    assert not any(verdict.check == "target" for verdict in found.verdicts)
    assert os.listdir(place) == []


def test_the_page_and_the_report_say_how_many_files(invoke: Invoke, here: Path, place: Path) -> None:
    done = invoke("run", "w.toml", "dir", "--quiet", "-o", "r.json")
    assert "5 files of 12 MiB in all" in done.out
    assert "5 files of 12 MiB in all" in invoke("show", "r.json").out
    assert invoke("report", "r.json", "-o", "page.html").status in (0, 1)  # 1: a verdict is invalid
    assert "fill = false" in (here / "page.html").read_text()
    assert invoke("compare", "r.json", "r.json").status in (0, 1)


def test_any_workload_runs_in_a_folder_on_one_test_file(
    invoke: Invoke, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spindle.run.files.FULL_FILE_BYTES", 64 * MIB)
    monkeypatch.setattr("spindle.run.files.rule_at", small_rule)
    found = run(invoke, "seeker", "dir", "--seconds", "0.2")
    assert (found.target.kind, found.target.size_bytes, found.target.created) == ("file", 64 * MIB, True)
    assert os.listdir(place) == []


def test_options_alone_make_a_set(invoke: Invoke, place: Path) -> None:
    found = run(invoke, "seeker", "dir", "--seconds", "0.2", "--nrfiles", "3", "--filesize", "1MiB", "--buffered")
    assert (found.target.kind, found.target.size_bytes) == ("directory", 3 * MIB)
    assert found.workload.filesets[0].files == 3


def test_auto_size_follows_from_the_caches_in_equal_parts(
    invoke: Invoke, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spindle.run.files.FULL_FILE_BYTES", MIB)
    monkeypatch.setattr("spindle.run.files.rule_at", small_rule)
    found = run(invoke, "seeker", "dir", "--seconds", "0.2", "--nrfiles", "4", "--buffered")
    assert found.target.size_bytes == 64 * MIB
    assert found.target.detail["sets"][0]["smallest_bytes"] == 16 * MIB
    assert found.target.detail["sized"]["wanted_bytes"] == 64 * MIB


def small_rule(_place: Path, _spec: object) -> Any:
    from spindle.conditions.sizing import SizeRule

    return SizeRule(True, 0, 0, 8 * MIB, [])


def test_files_are_kept_when_asked(invoke: Invoke, place: Path) -> None:
    run(invoke, "w.toml", "dir", "--keep")
    (kept,) = place.iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["files-data", "files-log"]
    assert sweep_leftovers() == []
    assert kept.exists()


def test_phases_share_the_files(invoke: Invoke, here: Path, place: Path) -> None:
    (here / "p.toml").write_text(
        """
direct = false
pattern = "sequential"
size = "64KiB"
stop_passes = 1
seconds = "none"
requests = 1000
[[files]]
nrfiles = 3
filesize = "1MiB"
fill = false
[[phase]]
name = "write"
write_fraction = 1
[[phase]]
name = "read"
"""
    )
    done = invoke("run", "p.toml", "dir", "--quiet", "--json")
    found = decode(done.out.encode(), "stdout")
    assert isinstance(found, PhasesRecord), done.err
    assert [run.figures.requests for run in found.runs] == [48, 48]
    assert os.listdir(place) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["w.toml", "file.bin"], "name a folder"),
        (["w.toml", "dir", "--create", "1MiB"], "--create"),
        (["seeker", "dir", "--nrfiles", "2", "--filesize", "512"], "file 1 of `files`, 512 bytes"),
        (["seeker", "file.bin", "--nrfiles", "2", "--filesize", "1MiB"], "name a folder"),
        (["seeker", "dir", "--set", "logs.nrfiles=2"], "logs"),
    ],
)
def test_wrong_combinations_with_sets_are_one_line_and_make_nothing(
    invoke: Invoke, here: Path, place: Path, arguments: list[str], says: str
) -> None:
    (here / "file.bin").write_bytes(b"x" * MIB)
    done = invoke("run", *arguments, "--quiet")
    assert done.status == 2
    assert says in done.complaint
    assert os.listdir(place) == []


def test_a_growing_file_that_nothing_writes_is_not_read(invoke: Invoke, here: Path, place: Path) -> None:
    (here / "r.toml").write_text('direct = false\n[[files]]\nfill = false\nfilesize = "1MiB"')
    done = invoke("run", "r.toml", "dir", "--quiet")
    assert done.status == 2
    assert "fill" in done.complaint
    assert os.listdir(place) == []


def test_the_next_run_removes_the_folder_of_a_killed_run(here: Path, place: Path) -> None:
    process = started("run", "w.toml", "dir", "--set", "seconds=60", cwd=here)
    until = time.monotonic() + 60
    while not list(place.glob("*/files-log/*")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    ended(process)
    assert os.listdir(place) != []
    swept = sweep_leftovers()
    assert os.listdir(place) == []
    assert [each.removed for each in swept] == [True]


def test_a_missing_folder_is_one_line(invoke: Invoke, place: Path) -> None:
    done = invoke("run", "w.toml", "gone", "--quiet")
    assert done.status == 2
    assert "gone" in done.complaint


def test_files_that_disappear_under_the_load_are_reported_and_make_the_run_invalid(here: Path, place: Path) -> None:
    process = started("run", "w.toml", "dir", "-q", "--set", "seconds=4", cwd=here)
    until = time.monotonic() + 60
    # The log grows once the load is on.
    while not any(path.stat().st_size for path in place.glob("*/files-log/*")) and time.monotonic() < until:
        time.sleep(0.02)
    shutil.rmtree(next(place.iterdir()))
    found = ended(process, 60)
    assert found.status == 1
    assert "has been removed by someone else" in found.out
    folder_gone, why = found.err.splitlines()
    assert "moved or removed by someone else" in folder_gone
    assert "has been removed by someone else" in why
    assert sweep_leftovers() == []


def test_the_recipe_makes_the_same_workload() -> None:
    spec = resolve_text(SETS, "w.toml", "w").spec
    again = resolve_text(toml(spec), "w.toml", "w").spec
    assert again == spec


def test_files_are_one_after_another_on_a_modelled_machine(invoke: Invoke, place: Path) -> None:
    text = SETS.replace("direct = false", "direct = true").replace("0.3", "2")
    (place.parent / "m.toml").write_text(text)
    done = invoke("run", "m.toml", "six-sata-f2", "--quiet", "--json")
    found = json.loads(done.out)
    assert all(stream["total_bytes"] > 0 for stream in found["figures"]["streams"]), done.err
