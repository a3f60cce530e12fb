"""A folder of Spindle's own is removed with Spindle's files in it, and with nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spindle.host import register
from spindle.host.errors import Refusal, TargetError
from spindle.host.folder import FolderLimits, empty_folder, make_tree, tree_folder
from spindle.host.testfile import sweep_leftovers
from spindle.host.testfolder import TestFolder
from tests.workbench import Workbench

MAKER = """
import os, signal, sys
from spindle.host.folder import FolderLimits, make_tree, tree_folder
from spindle.host.signals import unwinding
from spindle.host.testfolder import TestFolder
signal.signal(signal.SIGINT, signal.default_int_handler)
path, kill_at, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
steps = {'open', 'setxattr', 'flock', 'pwrite', 'fsync', 'rename', 'unlink', 'close', 'mkdir', 'rmdir', 'stat', 'fstat',
         'scandir', 'listdir'}
count = 0
def kill_at_step(_frame, event, function):
    global count
    if event in ('c_call', 'c_return') and function.__name__ in steps:
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), number)
print('ready', flush=True)
with unwinding():
    if kill_at:
        sys.setprofile(kill_at_step)
    with TestFolder.create(path, parts={tree_folder('small'): FolderLimits(6, 0)}) as folder:
        tree = make_tree(folder.fileno(), 'small')
        for number in range(2):
            os.mkdir(f'd{number:07}', dir_fd=tree)
            for file in range(3):
                os.close(os.open(f'd{number:07}/f{3 * number + file:010}', os.O_CREAT | os.O_WRONLY, dir_fd=tree))
        if not kill_at:
            print('made', flush=True)
            sys.stdin.read()
"""


def maker(path: Path, kill_at: int = 0, number: int = signal.SIGKILL) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, str(path), str(kill_at), str(int(number))]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def entries() -> list[str]:
    try:
        return sorted(path for path in os.listdir(register.folder()) if path.endswith(".json"))
    except FileNotFoundError:
        return []


@pytest.fixture
def leftover(tmp_path: Path) -> Path:
    """The folder of a process that was killed: a tree of two directories with three files each."""
    place = tmp_path / "place"
    place.mkdir()
    process = maker(place)
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    assert sweep_leftovers() == [], "its maker lives"
    process.kill()
    end(process)
    (found,) = place.iterdir()
    assert found.name.startswith("spindle-test-")
    assert sorted(path.name for path in (found / "tree-small").iterdir()) == ["d0000000", "d0000001"]
    return found


def test_a_folder_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with TestFolder.create(tmp_path) as folder:
        assert folder.path.parent == tmp_path
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert entries() != []
        os.close(make_tree(folder.fileno(), "empty"))
    assert not folder.path.exists()
    assert entries() == []


def test_a_folder_that_is_kept_is_the_users_own(tmp_path: Path) -> None:
    with TestFolder.create(tmp_path) as folder:
        folder.keep()
    assert folder.path.is_dir()
    assert entries() == []


def test_files_of_somebody_else_stay_and_are_reported(tmp_path: Path) -> None:
    folder = TestFolder.create(tmp_path, parts={tree_folder("small"): FolderLimits(10, 0)})
    tree = make_tree(folder.fileno(), "small")
    os.mkdir("d0000000", dir_fd=tree)
    place = folder.path / "tree-small/d0000000"
    for name in ("f0000000000", "r0000000001"):
        (place / name).touch()
    outside = tmp_path / "outside"
    outside.write_text("keep")
    (place / "letter.txt").write_text("mine")
    (place / "f0000000007").symlink_to(outside)
    (place / "f0000000008").mkdir()
    os.mkfifo(place / "f0000000009")
    (folder.path / "tree-small/d0000001").symlink_to(tmp_path)
    os.close(tree)
    line = folder.remove()
    assert line is not None
    assert "letter.txt" in line or "more" in line
    assert sorted(path.name for path in place.iterdir()) == ["f0000000007", "f0000000008", "f0000000009", "letter.txt"]
    assert (folder.path / "tree-small/d0000001").is_symlink()
    assert outside.read_text() == "keep"
    assert entries() == [], "left files are reported once"


def test_the_next_start_removes_a_killed_runs_folder_and_says_so(leftover: Path) -> None:
    (swept,) = sweep_leftovers()
    assert swept.removed
    assert str(leftover) in swept.line
    assert not leftover.exists()
    assert entries() == []


def test_a_foreign_file_in_a_killed_runs_tree_stays_and_is_reported(leftover: Path) -> None:
    foreign = leftover / "tree-small/d0000001/photo.jpg"
    foreign.write_bytes(b"mine")
    (swept,) = sweep_leftovers()
    assert not swept.removed
    assert str(foreign) in swept.line
    assert foreign.read_bytes() == b"mine"
    assert [path.name for path in leftover.rglob("*")] == ["tree-small", "d0000001", "photo.jpg"]
    assert sweep_leftovers() == []


@pytest.mark.promise(8)
@pytest.mark.parametrize("old_entry", [False, True], ids=["parts noted", "entry of an older version"])
def test_a_file_in_a_killed_runs_tree_that_somebody_appended_to_stays_and_is_reported(
    leftover: Path, old_entry: bool
) -> None:
    if old_entry:
        entry = register.folder() / entries()[0]
        fields = json.loads(entry.read_bytes())
        del fields["parts"]
        entry.write_text(json.dumps(fields))
    appended = leftover / "tree-small/d0000000/f0000000001"
    appended.write_bytes(b"my notes")
    (swept,) = sweep_leftovers()
    assert not swept.removed
    assert str(appended) in swept.line
    assert "somebody else has written to it" in swept.line
    assert [path.read_bytes() for path in leftover.rglob("f*")] == [b"my notes"]
    assert sweep_leftovers() == []


@pytest.mark.promise(8)
def test_a_file_of_a_number_that_the_tree_does_not_have_stays(leftover: Path) -> None:
    added = leftover / "tree-small/d0000001/f0000000006"
    added.touch()
    (swept,) = sweep_leftovers()
    assert not swept.removed
    assert [*leftover.rglob("f*")] == [added]


@pytest.mark.promise(8)
def test_a_tree_that_nobody_announced_loses_no_file(tmp_path: Path) -> None:
    with TestFolder.create(tmp_path, parts={tree_folder("small"): FolderLimits(1, 0)}) as folder:
        other = folder.path / "tree-other/d0000000"
        other.mkdir(parents=True)
        (other / "f0000000000").touch()
        assert folder.remove() is not None
    assert (other / "f0000000000").exists()


def test_more_parts_than_an_entry_holds_are_noted_together(tmp_path: Path) -> None:
    parts = {tree_folder(f"{'x' * 60}{number}"): FolderLimits(number, 2 * number) for number in range(1, 400)}
    with TestFolder.create(tmp_path, parts=parts):
        (entry,) = entries()
        text = (register.folder() / entry).read_bytes()
        assert json.loads(text)["parts"] == {"": [399, 798]}
    assert list(tmp_path.glob("spindle-test-*")) == []


def test_another_folder_that_has_taken_the_name_is_left_alone(leftover: Path, tmp_path: Path) -> None:
    leftover.rename(tmp_path / "away")
    for take in (lambda: leftover.mkdir(), lambda: leftover.symlink_to(tmp_path), lambda: leftover.write_text("x")):
        take()
        swept = sweep_leftovers()
        assert not any(each.removed for each in swept)
        assert os.path.lexists(leftover)
        assert (tmp_path / "away/tree-small/d0000000/f0000000000").exists()
        leftover.rmdir() if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()


def test_killed_at_every_single_step_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for step in range(1, 400, 4):
        process = maker(place, step)
        status = end(process)
        sweep_leftovers()
        assert list(place.iterdir()) == [], f"killed at step {step}"
        if status == 0:
            return
    pytest.fail("it was killed every time")


def test_a_signal_at_any_step_leaves_nothing_at_all(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for step in range(1, 400, 7):
        status = end(maker(place, step, signal.SIGTERM))
        assert list(place.iterdir()) == [], f"step {step}"
        assert entries() == [], f"step {step}"
        if status == 0:
            return
    pytest.fail("it was ended every time")


def test_places_where_no_folder_can_be_made_get_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(TargetError, match=str(place)):
            TestFolder.create(place)
    with pytest.raises(Refusal, match="/dev"):
        TestFolder.create("/dev/shm")


def test_the_last_twentieth_of_space_and_inodes_is_not_taken(bench: Workbench) -> None:
    device = bench.loop(size=64 << 20)
    bench.run("mkfs.ext4", "-q", "-N", "2000", device)
    place = bench.mount(device)
    with pytest.raises(Refusal, match="inodes"):
        TestFolder.create(place, names=1990)
    with pytest.raises(Refusal, match="5%"):
        TestFolder.create(place, names=10, data_bytes=62 << 20)
    TestFolder.create(place, names=1000, data_bytes=10 << 20).remove()
    assert [path.name for path in place.iterdir()] == ["lost+found"]


def test_another_file_system_mounted_in_the_tree_is_left_alone(bench: Workbench, tmp_path: Path) -> None:
    folder = TestFolder.create(tmp_path)
    tree = make_tree(folder.fileno(), "small")
    os.mkdir("d0000000", dir_fd=tree)
    os.close(tree)
    mounted = folder.path / "tree-small/d0000000"
    bench.run("mount", "-t", "tmpfs", "none", str(mounted))
    try:
        (mounted / "f0000000000").touch()
        assert empty_folder(folder.fileno(), {}) == ["tree-small/d0000000"]
        assert (mounted / "f0000000000").exists()
    finally:
        bench.run("umount", str(mounted))
    assert folder.remove() is None


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_every_file_system_lists_files_made_after_the_folder_was_opened(kind: str, bench: Workbench) -> None:
    device = bench.loop(size={"ext4": 64, "xfs": 320, "btrfs": 128}[kind] << 20)
    bench.run(f"mkfs.{kind}", "-q", device)
    place = bench.mount(device)
    with TestFolder.create(place) as folder:
        for number in range(3):
            tree = make_tree(folder.fileno(), f"set{number}")
            os.mkdir("d0000000", dir_fd=tree)
            os.close(tree)
    assert not list(place.glob("spindle-test-*"))
