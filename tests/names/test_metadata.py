"""Operations on names as a whole program: counted as the file system counts, only in a folder of Spindle's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.host.testfile import sweep_leftovers
from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode, encode
from spindle.result.record import Level, PhasesRecord, RunRecord
from spindle.stats.metric import main_metrics, values
from spindle.stats.names import metric
from tests.workbench import Workbench

MIB = 1 << 20
SMALL = ("--nrfiles", "1200", "--directories", "12")
"""A tree that is made in no time, with enough names for every check."""
Runner = Callable[..., PhasesRecord | RunRecord]

STAT = """
operation = "stat"
order = "random"
[[files]]
nrfiles = 600
directories = 3
filesize = "1KiB-9KiB"
"""


THREE = """
table = "metadata"
end_fsync = true
[[files]]
nrfiles = 1000
directories = 5
[[phase]]
name = "create"
operation = "create"
[[phase]]
name = "stat"
operation = "stat"
[[phase]]
name = "unlink"
operation = "unlink"
"""


@pytest.fixture
def stat(tmp_path: Path) -> str:
    """One load that looks at what must be made beforehand."""
    path = tmp_path / "look.toml"
    path.write_text(STAT)
    return str(path)


@pytest.fixture
def three(tmp_path: Path) -> str:
    """Three phases on one tree."""
    path = tmp_path / "three.toml"
    path.write_text(THREE)
    return str(path)


def names_below(place: Path) -> list[str]:
    """Every file and directory, however deep."""
    return sorted(str(Path(folder, name)) for folder, below, files in os.walk(place) for name in (*below, *files))


def counts(record: PhasesRecord) -> dict[str, int]:
    return {
        phase.workload.name: sum(op.requests for stream in phase.figures.streams for _, op in stream.ops())
        for phase in record.runs
    }


def test_the_preset_does_every_operation_once_to_every_name_and_leaves_nothing(run: Runner, place: Path) -> None:
    record = run("metadata", place, *SMALL, "--workers", "3")
    assert isinstance(record, PhasesRecord)
    assert counts(record) == {
        "mkdir": 12,
        "create": 1200,
        "stat": 1200,
        "stat-random": 1200,
        "open": 1200,
        "readdir": 12,
        "rename": 1200,
        "unlink": 1200,
        "rmdir": 12,
    }
    assert [path.name for path in place.iterdir()] == ["mine.txt"]
    assert (place / "mine.txt").read_text() == "keep"
    assert record.target.kind == "directory"
    assert all(run.figures.generator.engine == "names" for run in record.runs)
    assert all(error.count == 0 for run in record.runs for stream in run.figures.streams for error in stream.errors)
    for name in ("create", "unlink"):
        changed = next(run for run in record.runs if run.workload.name == name)
        assert changed.figures.streams[0].fsync is not None, "the flush counts"
        assert not [
            verdict
            for verdict in changed.verdicts
            if verdict.check == "names-in-memory" and verdict.level is not Level.OK
        ]


def test_what_a_load_needs_is_there_before_it_begins(run: Runner, place: Path, stat: str) -> None:
    record = run(stat, place)
    assert isinstance(record, RunRecord)
    figures = record.figures.streams[0]
    assert figures.stat is not None
    assert figures.stat.requests == 600
    assert figures.create is None, "what was made beforehand is not measured"
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


def test_a_folder_that_is_kept_holds_what_was_made(run: Runner, place: Path, stat: str) -> None:
    run(stat, place, "--keep")
    (folder,) = place.glob("spindle-test-*")
    files = [path for path in folder.rglob("f*") if path.is_file()]
    assert len(files) == 600
    assert len(list(folder.rglob("d*"))) == 3
    sizes = {path.stat().st_size for path in files}
    assert min(sizes) >= 1024
    assert max(sizes) <= 9216
    assert len(sizes) == 17, "multiples of 512"
    assert sweep_leftovers() == [], "it is the user's own by now"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_the_preset_runs_on_file_systems_on_loop_devices(kind: str, run: Runner, bench: Workbench) -> None:
    size = {"ext4": 64, "xfs": 320, "btrfs": 128}[kind] * MIB
    device = bench.loop(size=size)
    bench.run(f"mkfs.{kind}", "-q", device)
    place = bench.mount(device)
    record = run("metadata", place, *SMALL, "--filesize", "2KiB")
    assert isinstance(record, PhasesRecord)
    assert counts(record)["create"] == 1200
    assert len(record.phases) == 9
    create = record.runs[1].figures.streams[0].create
    assert create is not None
    assert create.bytes == 1200 * 2048
    assert record.target.detail["file_system"] == kind
    assert [run.target.has_device for run in record.runs] == [True] * 9
    # The device was written to: the flush is inside the time.
    written = record.runs[1].counters
    assert written is not None
    assert (written.bytes_of("write") or 0) >= 1200 * 2048
    assert not list(place.glob("spindle-test-*"))


def test_durable_creates_sync_the_file_and_its_directory(run: Runner, place: Path, three: str) -> None:
    record = run(three, place, "--nrfiles", "30", "--directories", "3", "--set", "create.fsync_every=1")
    assert isinstance(record, PhasesRecord)
    figures = record.runs[0].figures.streams[0]
    assert figures.create is not None
    assert figures.fsync is not None
    assert (figures.create.requests, figures.fsync.requests) == (30, 31)  # and the one at the end


def test_the_same_seed_takes_the_names_in_the_same_order() -> None:
    from spindle import _core

    workload = _core.Workload.parse(STAT, "w.toml", "w")
    first = [request[1] for request in workload.requests(0, 0, 0, 1, 1000)]
    assert sorted(first) == list(range(600))
    assert first == [request[1] for request in workload.requests(0, 0, 0, 1, 1000)]
    assert workload.requests(0, 0, 0, 1, 1)[0][0] == "stat"


KILLED = """
import os, signal, sys
from spindle.run import trees
place, phase = sys.argv[1:]
ready = trees.Trees.get_ready
def kill_when_made(self, core, spec, watch):
    ready(self, core, spec, watch)
    if spec.name == phase:
        os.kill(os.getpid(), signal.SIGKILL)
trees.Trees.get_ready = kill_when_made
from spindle.cli.main import main
sys.argv = ["spindle", "run", "metadata", place, "--nrfiles", "1200", "--directories", "12", "-q"]
main()
"""


@pytest.mark.parametrize("phase", ["stat", "rmdir"])
def test_killed_between_any_phases_leaves_nothing_after_the_next_start(phase: str, place: Path) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, str(place), phase], capture_output=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    (folder,) = place.glob("spindle-test-*")
    assert names_below(folder)
    foreign = folder / "tree-files/d0000005/notes.txt"
    foreign.write_text("mine")
    (swept,) = sweep_leftovers()
    assert not swept.removed
    assert str(foreign) in swept.line
    assert names_below(place) == sorted(map(str, [place / "mine.txt", foreign, *list(foreign.parents)[:3]]))
    assert foreign.read_text() == "mine"


def test_a_killed_runs_tree_is_removed_whole(place: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(place), "stat"], capture_output=True, check=False)
    (swept,) = sweep_leftovers()
    assert swept.removed
    assert names_below(place) == [str(place / "mine.txt")]


def test_an_early_end_is_reported_before_the_next_phase_fails(run: Runner, place: Path, three: str) -> None:
    record = run(three, place, "--set", "create.requests=500")
    assert isinstance(record, PhasesRecord)
    assert [run.workload.name for run in record.runs] == ["create"]
    (verdict,) = record.verdicts
    assert verdict.level is Level.INVALID
    assert "500 of 1000 names" in verdict.evidence
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--create", "1GiB"], "leave it out"),
        (["--size", "64KiB"], "only means something for data"),
        (["--directories", "5000"], "more than the"),
        (["--find-knee"], "phases"),
        (["--ramp", "1s"], "ramp"),
        (["--erase", "/dev/null"], "--erase"),
    ],
)
def test_what_makes_no_sense_gets_one_line(options: list[str], says: str, place: Path, capfd: Any) -> None:
    from spindle.cli.main import invoke

    status = invoke(["run", "metadata", str(place), "--nrfiles", "100", "--directories", "2", *options])
    said = capfd.readouterr().err.strip().splitlines()
    assert int(status) in (2, 3), said
    assert says in said[-1]
    assert len(said) == 1
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


def test_a_target_that_is_no_folder_gets_one_line(place: Path, capfd: Any) -> None:
    from spindle.cli.main import invoke

    for target in ("mine.txt", "missing"):
        assert int(invoke(["run", "metadata", str(place / target)])) == 2
        said = capfd.readouterr().err.strip().splitlines()
        assert len(said) == 1
        assert "folder" in said[0]
    assert (place / "mine.txt").read_text() == "keep"


def test_a_full_file_system_ends_the_run_with_one_clear_verdict(run: Runner, bench: Workbench, three: str) -> None:
    device = bench.loop(size=32 * MIB)
    bench.run("mkfs.ext4", "-q", "-N", "4000", device)
    place = bench.mount(device)
    filler = place / "filler"

    def fill() -> None:
        free = os.statvfs(place)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 2 * MIB)

    from spindle.run import trees

    ready = trees.Trees.get_ready
    with pytest.MonkeyPatch.context() as patch:

        def get_ready(self: Any, core: Any, spec: Any, watch: Any) -> None:
            ready(self, core, spec, watch)
            if spec.name == "create":
                fill()

        patch.setattr(trees.Trees, "get_ready", get_ready)
        record = run(three, place, "--filesize", "8KiB")
    assert isinstance(record, PhasesRecord)
    seen = [verdict for run in record.runs for verdict in run.verdicts if verdict.check == "interrupted"]
    assert [verdict.level for verdict in seen] == [Level.INVALID]
    assert "create of name" in seen[0].evidence
    assert "ENOSPC" in seen[0].evidence
    assert not list(place.glob("spindle-test-*"))


def test_the_record_is_shown_compared_and_kept_like_any_other(run: Runner, place: Path, three: str) -> None:
    record = run(three, place)
    assert isinstance(record, PhasesRecord)
    assert decode(encode(record), "r.json") == record
    text = "\n".join(page(record, Style()))
    for words in ("1 000 empty files in 5 directories", "1 thread", "p99 us", "sync s"):
        assert words in text
    found = values(record)
    assert found["create/create.iops"] > 0
    assert found["unlink/unlink.p99_ns"] > 0
    assert metric("create/create.iops").unit == "1/s"
    assert main_metrics(list(found))
    ordinary = json.loads(encode(record))["runs"][1]["figures"]["streams"][0]
    assert "create" not in ordinary, "operations that were not asked for take no room"


def test_cold_and_warm_caches_are_distinguished(run: Runner, place: Path, stat: str, need_root: None) -> None:
    def level_of(*options: str) -> Level:
        record = run(stat, place, *options)
        assert isinstance(record, RunRecord)
        (verdict,) = [verdict for verdict in record.verdicts if verdict.check == "names-cached"]
        return verdict.level

    assert level_of() is Level.WARN
    assert level_of("--drop-caches") is Level.OK


def test_changes_left_in_memory_are_reported(run: Runner, place: Path, three: str) -> None:
    record = run(three, place, "--set", "end_fsync=false")
    assert isinstance(record, PhasesRecord)
    seen = {
        run.workload.name: verdict.level
        for run in record.runs
        for verdict in run.verdicts
        if verdict.check == "names-in-memory"
    }
    assert seen == dict.fromkeys(("create", "unlink"), Level.WARN)


def test_the_null_target_shows_what_the_generator_costs(tmp_path: Path, stat: str, capfd: Any) -> None:
    from spindle.cli.main import invoke

    assert int(invoke(["run", stat, "null:1GiB", "--json", "--quiet"])) == 0
    record = decode(capfd.readouterr().out.encode(), "stdout")
    assert isinstance(record, RunRecord)
    assert record.figures.requests == 600


def test_a_modelled_machine_has_no_names(capfd: Any) -> None:
    from spindle.cli.main import invoke

    assert int(invoke(["run", "metadata", "six-sata-f2"])) != 0
    (said,) = capfd.readouterr().err.strip().splitlines()
    assert "needs a real folder" in said
