"""The presets bonnie and iozone: in a folder, on several file systems, with the tables people know."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from spindle import _core
from spindle.report.terminal.phases import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode
from spindle.result.record import PhasesRecord
from spindle.result.workload import FixedFileSize
from spindle.run.resolve import resolve
from tests.program import Invoke, spindle, started
from tests.workbench import Workbench

MIB = 1 << 20
NAMES = [f"{order}-{what}" for order in ("sequential", "random") for what in ("create", "stat", "delete")]
BONNIE = ["block-write", "rewrite", "block-read", "seeks", *NAMES]
IOZONE = ["write", "rewrite", "read", "reread", "random-read", "random-write", "backward-read", "stride-read"]
SMALL = ("--filesize", "8MiB", "--json")
FEW = ("--set", "seeks.requests=500", "--set", "small.nrfiles=300")


def record_of(out: str) -> PhasesRecord:
    found = decode(out.encode(), "stdout")
    assert isinstance(found, PhasesRecord)
    return found


@pytest.fixture(params=["ext4", "xfs", "btrfs"])
def folder(bench: Workbench, request: pytest.FixtureRequest) -> Path:
    """On a file system of its own."""
    size = 512 if request.param == "xfs" else 256
    device = bench.loop(size=size * MIB)
    bench.run(f"mkfs.{request.param}", "-q", device)
    return bench.mount(device)


def test_bonnie_on_each_file_system_moves_what_it_says_and_leaves_nothing(invoke: Invoke, folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = invoke("run", "bonnie", str(folder), *SMALL, *FEW)
    found = record_of(done.out)
    assert [phase.name for phase in found.phases] == BONNIE
    write, rewrite, read, seeks = (run.figures.streams[0] for run in found.runs[:4])
    chunks = 8 * MIB // 8192
    assert write.write is not None
    assert (write.read, write.write.requests) == (None, chunks)
    assert rewrite.read is not None
    assert rewrite.write is not None
    assert (rewrite.read.requests, rewrite.write.requests) == (chunks, chunks)
    assert read.read is not None
    assert (read.read.requests, read.write) == (chunks, None)
    assert seeks.read is not None
    assert seeks.write is not None
    assert seeks.read.requests == 500
    assert 10 <= seeks.write.requests <= 100
    assert all(stream.fsync is not None and stream.fsync.requests == 1 for stream in (write, rewrite, seeks))
    assert [run.figures.requests for run in found.runs[4:]] == [300] * 6
    assert sorted(folder.iterdir()) == before


def test_iozone_on_each_file_system_fills_its_columns(invoke: Invoke, folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = invoke("run", "iozone", str(folder), *SMALL, "--workers", "2", "--size", "64KiB", "--set",
                  "stride-read.stride=1088KiB")  # fmt: skip
    found = record_of(done.out)
    assert [phase.name for phase in found.phases] == IOZONE
    requests = [run.figures.requests for run in found.runs]
    assert requests[:7] == [2 * 128] * 7  # each of two workers has a file
    assert requests[7] == 2 * 8  # one record of 17
    rows = page(found, Style())
    assert len(rows[-1].split()) == 2 + len(IOZONE)
    assert all(float(cell) > 0 for cell in rows[-1].split())
    assert sorted(folder.iterdir()) == before


def test_a_reread_comes_from_the_cache_and_a_read_does_not(invoke: Invoke, here: Path) -> None:
    found = record_of(invoke("run", "iozone", ".", *SMALL).out)
    fetched = {run.workload.name: run.fetched_bytes for run in found.runs}
    if fetched["read"] in (None, 0):
        pytest.skip("what is read from devices is not counted here")
    assert fetched["read"] == 8 * MIB
    assert fetched["reread"] == 0


def test_the_table_is_bonnies_and_its_figures_are_chunks_over_the_whole_time(invoke: Invoke, here: Path) -> None:
    found = record_of(invoke("run", "bonnie", ".", *SMALL, *FEW).out)
    lines = page(found, Style())
    head, kinds, columns, figures, latency = lines[:5]
    assert "--Sequential Output--" in head.replace("------", "--")
    assert kinds.split()[:2] == ["--Per", "Chr--"]
    assert columns.split()[:2] == ["Machine", "Size"]
    cells = figures.split()
    assert cells[1] == "8M"
    stream = found.runs[1].figures.streams[0]
    assert float(cells[4]) == pytest.approx(8 * 1024 / (stream.measured_ns / 1e9), rel=0.01)
    seeks = found.runs[3].figures.streams[0]
    assert float(cells[8]) == pytest.approx(500 / (seeks.measured_ns / 1e9), rel=0.01)
    assert len(latency.split()) == 5
    assert [head.count("Create") for head in lines[5:7]] == [2, 2]
    names = lines[8].split()
    assert names[1] == "300"
    for cell, run in zip(names[2::2], found.runs[4:], strict=True):
        assert float(cell) == pytest.approx(300 / (run.figures.measured_ns / 1e9), rel=0.01, abs=0.6)
    assert len(lines[9].split()) == 7


def test_an_option_about_files_means_those_that_hold_data(invoke: Invoke, here: Path) -> None:
    found = record_of(invoke("run", "bonnie", ".", *SMALL, *FEW, "--nrfiles", "2", "--directories", "7").out)
    trees = [run.workload.streams[0].names for run in found.runs[4:]]
    assert {(names.tree.files, names.tree.directories, names.tree.size) for names in trees if names} == {(300, 7, None)}
    assert [(each.nrfiles, each.filesize) for each in found.runs[0].workload.filesets] == [
        (2, FixedFileSize(bytes=8 * MIB))
    ]


def test_a_cache_that_contains_the_file_is_reported(invoke: Invoke, here: Path) -> None:
    shown = invoke("run", "bonnie", ".", "--filesize", "8MiB", *FEW).out
    assert "working-set" in shown or "cache-share" in shown


def test_the_time_of_a_write_includes_its_fsync(invoke: Invoke, here: Path) -> None:
    found = record_of(invoke("run", "bonnie", ".", *SMALL, *FEW).out)
    write = found.runs[0].figures.streams[0]
    assert write.write is not None
    assert write.fsync is not None
    assert write.measured_ns >= write.fsync.latency.max_ns
    assert write.write.bytes_per_s == pytest.approx(8 * MIB / (write.measured_ns / 1e9), rel=0.01)


def test_presets_are_workloads_of_files_and_run_on_the_null_target_and_on_a_test_file(
    invoke: Invoke, here: Path
) -> None:
    for preset, phases in (("bonnie", BONNIE), ("iozone", IOZONE)):
        assert preset in _core.preset_names()
        assert [phase.load.name for phase in resolve(preset).spec.phases] == phases
        assert [phase.name for phase in record_of(invoke("run", preset, "null:64MiB", "--json").out).phases] == phases


def test_a_kill_leaves_a_folder_that_the_next_start_removes(here: Path) -> None:
    process = started("run", "bonnie", ".", "--filesize", "16MiB", "--set", "seeks.requests=100000000", cwd=here)
    until = time.monotonic() + 60
    while not list(here.glob("spindle-test-*")):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(here.glob("spindle-test-*"))
    spindle("run", "seeker", "null:1MiB", "--seconds", "0.1", cwd=here)
    assert not list(here.glob("spindle-test-*"))
