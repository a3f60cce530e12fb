"""Sets of files: made in a folder of Spindle's own, opened only if unchanged, removed with it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from spindle.host import register
from spindle.host.errors import Refusal, TargetError
from spindle.host.filling import Filler
from spindle.host.folder import file_name
from spindle.host.guard import StreamAccess, open_target
from spindle.host.testfile import sweep_leftovers
from spindle.host.testfiles import FileSetSpec, TestFiles, allow_open

KIB = 1024
TWO = [FileSetSpec("small", [4 * KIB, 12 * KIB, 4 * KIB]), FileSetSpec("log", [64 * KIB], fill=False)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of the user's."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def paths(files: TestFiles) -> list[Path]:
    return sorted(path for path in Path(files.path).rglob("*") if path.is_file())


def blocks(files: TestFiles) -> list[bytes]:
    data = b"".join(path.read_bytes() for path in paths(files))
    return [data[at : at + 4096] for at in range(0, len(data), 4096)]


def test_files_have_the_requested_sizes_and_only_those_to_be_filled_contain_data(place: Path) -> None:
    with TestFiles.create(place, TWO) as files:
        assert [path.stat().st_size for path in paths(files)] == [0, 4 * KIB, 12 * KIB, 4 * KIB]
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in paths(files))
        assert files.size_bytes == 84 * KIB
    assert os.listdir(place) == []


def test_no_block_of_any_file_repeats_and_none_can_be_compressed(place: Path) -> None:
    sizes = [4 * KIB] * 500 + [1024 * KIB] * 20 + [1000, 20_000]
    with TestFiles.create(place, [FileSetSpec("a", sizes)]) as files:
        found = blocks(files)
        assert len(set(found)) == len(found)
        assert all(len(zlib.compress(block)) > len(block) * 0.99 for block in found[::97])


def test_progress_reaches_the_whole_once(place: Path) -> None:
    calls: list[tuple[int, int]] = []
    with TestFiles.create(place, TWO, on_progress=lambda done, total: calls.append((done, total))):
        assert calls[-1] == (20 * KIB, 20 * KIB)
        assert calls == sorted(calls)


def test_streams_of_the_same_access_share_descriptors_and_each_has_the_files_of_its_set(place: Path) -> None:
    reads, writes = StreamAccess(direct=False, files="small"), StreamAccess(write=True, direct=False, files="log")
    with TestFiles.create(place, TWO) as files, open_target(files, [reads, writes, reads]) as target:
        first, second, third = target.engine_files()
        assert first == third
        assert [size for _, size, _, _ in first] == [4 * KIB, 12 * KIB, 4 * KIB]
        assert [size for _, size, _, _ in second] == [64 * KIB]
        assert (target.kind, target.size_bytes, target.trouble()) == ("directory", 84 * KIB, None)
        os.pwrite(second[0][0], b"x" * 64 * KIB, 0)
        assert target.trouble() is None


def test_a_file_that_was_replaced_is_not_opened(place: Path) -> None:
    with TestFiles.create(place, TWO) as files:
        victim = place / "victim"
        victim.write_text("mine")
        file = paths(files)[1]
        file.unlink()
        os.link(victim, file)
        with pytest.raises(TargetError, match="is not the file that was made"):
            open_target(files, [StreamAccess(write=True, direct=False, files="small")])
        file.unlink()
        file.symlink_to(victim)
        with pytest.raises(TargetError, match="cannot be opened"):
            open_target(files, [StreamAccess(write=True, direct=False, files="small")])
        file.unlink()
    assert victim.read_text() == "mine"


def test_files_of_others_stay_and_are_reported(place: Path) -> None:
    files = TestFiles.create(place, TWO)
    kept = Path(files.path) / "files-small" / "notes.txt"
    kept.write_text("mine")
    link = Path(files.path) / "files-small" / file_name(77)
    link.symlink_to(kept)
    line = files.remove()
    assert line is not None
    assert "notes.txt" in line
    assert "Spindle did not make it" in line
    assert kept.read_text() == "mine"
    assert link.is_symlink()


@pytest.mark.promise(8)
@pytest.mark.parametrize(
    ("name", "size_bytes"), [("files-small/f0000000002", 4 * KIB), ("files-log/f0000000000", 64 * KIB)]
)
def test_a_file_that_is_larger_than_it_was_made_is_left_at_the_end_of_the_run(
    place: Path, name: str, size_bytes: int
) -> None:
    files = TestFiles.create(place, TWO)
    grown = Path(files.path) / name
    os.truncate(grown, size_bytes)
    with grown.open("ab") as file:
        file.write(b"my notes")
    line = files.remove()
    assert line is not None
    assert name in line
    assert "somebody else has written to it" in line
    assert grown.read_bytes().endswith(b"my notes")
    assert [path for path in place.rglob("*") if path.is_file()] == [grown]


@pytest.mark.parametrize("change", ["cut", "gone", "longer"])
def test_a_file_that_changes_under_the_load_is_named(place: Path, change: str) -> None:
    with TestFiles.create(place, TWO) as files:
        with open_target(files, [StreamAccess(direct=False, files="small")]) as target:
            file = paths(files)[2]
            if change == "gone":
                file.unlink()
            else:
                os.truncate(file, 1 if change == "cut" else 1 << 20)
            trouble = target.trouble()
        assert trouble is not None
        assert f"small/{file_name(1)}" in trouble


def test_the_last_of_the_space_is_never_taken(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = SimpleNamespace(f_blocks=1000, f_bavail=100, f_frsize=KIB, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: space)
    with pytest.raises(Refusal, match="last 5%"):
        TestFiles.create(place, [FileSetSpec("a", [30 * KIB] * 2)])
    assert os.listdir(place) == []


@pytest.mark.parametrize(("number", "says"), [(28, "full"), (122, "quota")])
def test_a_file_system_that_fills_up_is_one_line_and_nothing_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    real = Filler.fill
    calls = []

    def full(filler: Filler, fd: int, size_bytes: int) -> None:
        calls.append(fd)
        if len(calls) == 3:
            raise OSError(number, os.strerror(number))
        real(filler, fd, size_bytes)

    monkeypatch.setattr(Filler, "fill", full)
    with pytest.raises(TargetError, match=says) as error:
        TestFiles.create(place, TWO)
    assert "\n" not in str(error.value)
    assert os.listdir(place) == []


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 8192))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: asked.append(limits))
    allow_open(10, "dir")
    assert asked == []
    allow_open(4000, "dir")
    assert asked == [(4512, 8192)]
    with pytest.raises(TargetError, match=r"8000 files would be open at once, but the limit of a process is 8192"):
        allow_open(8000, "dir")


MAKER = """
import os, signal, sys
from spindle.host.testfiles import FileSetSpec, TestFiles
path, kill_at = sys.argv[1], int(sys.argv[2])
steps = {'open', 'pwrite', 'fsync', 'close', 'mkdir', 'fstat', 'posix_fadvise'}
count = 0
def kill_at_step(_frame, event, function):
    global count
    if event in ('c_call', 'c_return') and function.__name__ in steps:
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(kill_at_step)
with TestFiles.create(path, [FileSetSpec('a', [5000] * 2), FileSetSpec('b', [1 << 20], fill=False)]):
    pass
"""


def test_a_kill_at_any_step_leaves_nothing_that_a_sweep_does_not_remove(place: Path) -> None:
    killed = 0
    for step in range(1, 200, 6):
        done = subprocess.run([sys.executable, "-c", MAKER, str(place), str(step)], check=False, timeout=60)
        killed += done.returncode == -signal.SIGKILL
        sweep_leftovers()
        assert os.listdir(place) == [], step
        if done.returncode == 0:
            break
    assert killed > 5
    entries = [path for path in os.listdir(register.folder()) if path.endswith(".json")]
    assert entries == []
