"""Presets for directories, on ext4, XFS and btrfs on loop devices: what they report, and that nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode
from spindle.result.record import PhasesRecord, Record, RunRecord
from tests.program import Ended, Invoke
from tests.workbench import Workbench

MIB = 1 << 20
MAKERS = {
    "ext4": ("mkfs.ext4", "-q"),
    "xfs": ("mkfs.xfs", "-q"),
    "btrfs": ("mkfs.btrfs", "-q"),
}


@pytest.fixture(scope="module", params=MAKERS)
def folder(request: pytest.FixtureRequest, shared_bench: Workbench) -> Path:
    """A file system of this kind."""
    device = shared_bench.loop(size=512 * MIB)
    shared_bench.run(*MAKERS[request.param], device)
    return shared_bench.mount(device)


def run(invoke: Invoke, *arguments: str) -> Record:
    ended: Ended = invoke("run", *arguments, "--json", "--quiet")
    # A verdict may be invalid on a machine that is busy: figures and files are what is looked at here.
    assert ended.status in (0, 1), ended
    assert ended.out, ended
    return decode(ended.out.encode(), "stdout")


def table_of(record: Record) -> dict[str, list[str]]:
    """Rows of the page by their first word."""
    return {cells[0]: cells for line in reversed(page(record, Style())) if (cells := line.split())}


def is_empty(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {"lost+found"}


def test_paraseq_gives_each_client_a_file_and_a_rate(folder: Path, invoke: Invoke) -> None:
    record = run(
        invoke, "paraseq", str(folder), "--filesize", "4MiB", "--set", "readers.workers=6", "--set",
        "writers.workers=2", "--worker-rate", "0.5 MB/s", "--size", "64KiB", "--seconds", "1",
    )  # fmt: skip
    assert isinstance(record, RunRecord)
    assert [(stream.name, len(stream.workers)) for stream in record.figures.streams] == [("readers", 6), ("writers", 2)]
    readers, writers = record.figures.streams
    assert readers.read is not None
    assert writers.write is not None
    assert readers.write is None
    assert writers.read is None
    assert "starved" in {verdict.check for verdict in record.verdicts}
    rows = table_of(record)
    assert rows["all"][1] == "8"
    assert is_empty(folder)


def test_wal_reports_commits_and_their_latency_for_four_ways(folder: Path, invoke: Invoke) -> None:
    record = run(
        invoke, "wal", str(folder), "--set", "log.filesize=8MiB", "--set", "growing.filesize=16MiB", "--seconds", "60",
        "--requests", "256",
    )  # fmt: skip
    assert isinstance(record, PhasesRecord)
    assert [phase.name for phase in record.phases] == ["dsync", "fdatasync", "append", "group"]
    dsync, fdatasync, append, group = (each.figures.streams[0] for each in record.runs)
    assert dsync.fsync is append.fsync is None
    assert fdatasync.write is not None
    assert fdatasync.fsync is not None
    assert 0 <= fdatasync.write.requests - fdatasync.fsync.requests <= 1
    assert group.write is not None
    assert group.fsync is not None
    assert 16 * group.fsync.requests <= group.write.requests <= 16 * (group.fsync.requests + 1)
    rows = table_of(record)
    assert rows["dsync"][2] == rows["append"][2] == "write"
    assert rows["fdatasync"][2] == rows["group"][2] == "sync"
    assert is_empty(folder)


def test_backup_writes_large_files_while_others_are_read(folder: Path, invoke: Invoke) -> None:
    record = run(
        invoke, "backup", str(folder), "--set", "data.filesize=16MiB", "--set", "archive.filesize=64MiB",
        "--seconds", "1",
    )  # fmt: skip
    assert isinstance(record, RunRecord)
    backup, readers = record.figures.streams
    assert backup.write is not None
    assert readers.read is not None
    assert backup.write.bytes == backup.write.requests * MIB
    assert {"backup", "readers"} <= set(table_of(record))
    assert is_empty(folder)


def test_mixed_shows_both_streams_with_their_priorities_on_a_directory(folder: Path, invoke: Invoke) -> None:
    record = run(invoke, "mixed", str(folder), "--create", "16MiB", "--seconds", "0.5", "--set", "random.workers=2")
    assert isinstance(record, RunRecord)
    assert {"sequential", "random"} <= set(table_of(record))
    classes = [stream.priority.class_ for stream in record.workload.streams if stream.priority is not None]
    assert classes == ["idle", "best-effort"]
    assert is_empty(folder)


@pytest.mark.parametrize("preset", ["paraseq", "wal", "backup"])
def test_on_a_file_a_preset_for_directories_is_refused_in_one_line(preset: str, invoke: Invoke, here: Path) -> None:
    (here / "f.bin").write_bytes(bytes(1 << 20))
    ended = invoke("run", preset, "f.bin")
    assert ended.status in (2, 3), ended
    assert ended.err.count("\n") == 1
    assert (here / "f.bin").read_bytes() == bytes(1 << 20)
