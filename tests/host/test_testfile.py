"""Test files are complete, never replace anything, and are removed whatever happens to their maker."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spindle.host import register, testfile
from spindle.host.durably import sync_folder
from spindle.host.errors import Refusal, TargetError
from spindle.host.guard import StreamAccess, open_target
from spindle.host.register import MARKER, Entry, FileIdentity
from spindle.host.testfile import TestFile, sweep_leftovers
from tests.workbench import Workbench

MIB = 1 << 20

MAKER = """
import os, signal, sys
from spindle.host import testfile
from spindle.host.signals import unwinding
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
mode, path, size, kill_at, number = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
if mode == 'named':
    def unsupported(*_):
        raise OSError(95, 'Operation not supported')
    testfile._make_unnamed = unsupported
steps = {'open', 'link', 'setxattr', 'flock', 'pwrite', 'fsync', 'rename', 'unlink', 'close', 'mkdir', 'stat', 'fstat'}
count = 0
def kill_at_step(_frame, event, function):
    # Before and after each system call that matters.
    global count
    if event in ('c_call', 'c_return') and function.__name__ in steps:
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), number)
print('ready', flush=True)
with unwinding():
    if kill_at:
        sys.setprofile(kill_at_step)
    with testfile.TestFile.create(path, size) as file:
        if mode == 'wait':
            print('made', flush=True)
            sys.stdin.read()
"""


def maker(mode: str, path: Path, size: int, kill_at: int = 0, number: int = signal.SIGKILL) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, mode, str(path), str(size), str(kill_at), str(int(number))]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def waiting_maker(path: Path, size: int = MIB) -> subprocess.Popen[str]:
    process = maker("wait", path, size)
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def end(process: subprocess.Popen[str], number: int) -> int:
    process.send_signal(number)
    process.communicate(timeout=10)
    return process.returncode


def entries() -> list[str]:
    return sorted(path.name for path in register.folder().glob("*.json"))


# --- making ----------------------------------------------------------------------------------------------------------


def test_a_test_file_has_its_size_and_is_really_written(tmp_path: Path) -> None:
    with TestFile.create(tmp_path / "t.bin", 20 * MIB + 123) as file:
        status = file.path.stat()
        assert status.st_size == 20 * MIB + 123
        assert status.st_blocks * 512 >= 20 * MIB
        assert stat.S_IMODE(status.st_mode) == 0o600
        data = file.path.read_bytes()
    assert len(zlib.compress(data, 1)) > 0.999 * len(data)
    pages = [data[place : place + 4096] for place in range(0, len(data), 4096)]
    assert len(set(pages)) == len(pages)


def test_a_folder_gets_a_file_with_a_name_of_its_own(tmp_path: Path) -> None:
    with TestFile.create(tmp_path, MIB) as first, TestFile.create(tmp_path, MIB) as second:
        assert first.path.parent == tmp_path
        assert first.path.name.startswith("spindle-test-")
        assert first.path != second.path
    assert list(tmp_path.glob("spindle-test-*")) == []


def test_progress_is_reported_and_ends_with_the_total(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    with TestFile.create(tmp_path / "t.bin", 20 * MIB, on_progress=lambda done, total: calls.append((done, total))):
        pass
    assert calls == sorted(calls)
    assert calls[-1] == (20 * MIB, 20 * MIB)


def test_the_file_and_its_entry_are_gone_at_the_end(tmp_path: Path) -> None:
    with TestFile.create(tmp_path / "t.bin", MIB) as file:
        assert entries() == [f"{os.getxattr(file.path, MARKER).decode()}.json"]
    assert not file.path.exists()
    assert entries() == []
    assert file.remove() is None


def test_a_file_that_is_forgotten_is_removed(tmp_path: Path) -> None:
    TestFile.create(tmp_path / "t.bin", MIB)
    assert not (tmp_path / "t.bin").exists()
    assert entries() == []


def test_a_test_file_is_written_through_the_guard(tmp_path: Path) -> None:
    streams = [StreamAccess(write=True), StreamAccess(direct=False), StreamAccess(write=True, direct=False, dsync=True)]
    with TestFile.create(tmp_path / "t.bin", MIB) as file, open_target(file, streams) as target:
        assert target.kind == "file"
        assert target.writes
        assert [entry.size_bytes for entry in target.files] == [MIB] * 3
        assert target.files[0].block_bytes >= 512
        assert target.files[1].block_bytes == 1
        os.pwrite(target.files[2].fd, b"x", 7)
        target.drop_cache()
        assert target.trouble() is None


def _what_lies_there(place: Path) -> tuple[int, ...]:
    """All but the access time, which following a link may change (relatime)."""
    now = place.lstat()
    return now.st_dev, now.st_ino, now.st_mode, now.st_nlink, now.st_size, now.st_mtime_ns, now.st_ctime_ns


@pytest.mark.parametrize("kind", ["file", "folder link", "dangling link", "pipe"])
def test_a_name_that_is_taken_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "t.bin"
    if kind == "file":
        place.write_bytes(b"mine")
    elif kind == "folder link":
        (tmp_path / "other").write_bytes(b"mine")
        place.symlink_to(tmp_path / "other")
    elif kind == "dangling link":
        place.symlink_to(tmp_path / "none")
    else:
        os.mkfifo(place)
    before = _what_lies_there(place)
    with pytest.raises(Refusal, match="already exists") as refused:
        TestFile.create(place, MIB)
    assert refused.value.exit_code == 3
    assert _what_lies_there(place) == before
    assert not (tmp_path / "none").exists()
    assert entries() == []


@pytest.mark.parametrize("way", ["unnamed", "named"])
def test_a_name_taken_at_the_last_moment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    place = tmp_path / "t.bin"

    def not_supported(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if way == "named":
        monkeypatch.setattr(testfile, "_make_unnamed", not_supported)
    create = register.Record.create

    def interfere(entry: register.Entry) -> register.Record:
        place.write_bytes(b"mine")
        return create(entry)

    monkeypatch.setattr(register.Record, "create", interfere)
    with pytest.raises(Refusal, match="already exists"):
        TestFile.create(place, MIB)
    assert place.read_bytes() == b"mine"
    assert entries() == []


@pytest.mark.parametrize("place", ["/dev/spindle-test", "/dev/shm/spindle-test", "/dev/../dev/spindle-test"])
def test_no_file_is_ever_made_under_dev(place: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.path.dirname(place))
    for name in (place, tmp_path / "link" / "spindle-test"):
        with pytest.raises(Refusal, match="under /dev"):
            TestFile.create(name, MIB)
        assert not os.path.lexists(name)


def test_places_where_no_file_can_be_made_get_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "none" / "t.bin", tmp_path / "file" / "t.bin", "", f"{tmp_path}/none/"):
        with pytest.raises(TargetError) as error:
            TestFile.create(place, MIB)
        assert "\n" not in str(error.value)
    with pytest.raises(TargetError, match="0 bytes"):
        TestFile.create(tmp_path / "t.bin", 0)


def test_a_register_that_cannot_be_written_means_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("x")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
    with pytest.raises(TargetError, match="set XDG_STATE_HOME"):
        TestFile.create(tmp_path / "t.bin", MIB)
    assert not (tmp_path / "t.bin").exists()


# --- space -----------------------------------------------------------------------------------------------------------


def small_file_system(bench: Workbench, *options: str, size: int = 64 * MIB) -> Path:
    device = bench.loop(size=size)
    bench.run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,nodiscard", device)
    return Path(bench.mount(device, *options))


def test_the_last_twentieth_of_a_file_system_is_not_taken(bench: Workbench) -> None:
    place = small_file_system(bench)
    space = os.statvfs(place)
    free, keep = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize // 20
    with pytest.raises(Refusal, match="the last 5% of the file system") as refused:
        TestFile.create(place, free - keep + 4096)
    assert refused.value.exit_code == 3
    assert list(place.glob("*.bin")) == []
    with TestFile.create(place, free - keep - MIB):
        left = os.statvfs(place)
        assert left.f_bavail * left.f_frsize >= keep


def test_space_reserved_for_root_is_not_counted_as_free(bench: Workbench) -> None:
    device = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", "-m", "50", "-E", "lazy_itable_init=0,nodiscard", device)
    place = bench.mount(device)
    with pytest.raises(Refusal, match="at most"):
        TestFile.create(place, 32 * MIB)


def test_a_file_system_that_fills_up_gives_one_line_and_no_partial_file(bench: Workbench) -> None:
    place = small_file_system(bench)

    def take_the_rest(_done: int, _total: int) -> None:
        if not (place / "other").exists():
            with (place / "other").open("wb") as other:
                os.posix_fallocate(other.fileno(), 0, os.statvfs(place).f_bavail * os.statvfs(place).f_frsize)

    with pytest.raises(TargetError, match=r"full before .* the part written is removed") as error:
        TestFile.create(place / "t.bin", 40 * MIB, on_progress=take_the_rest)
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in place.iterdir()) == ["lost+found", "other"]
    assert entries() == []


def test_a_read_only_file_system_gets_one_line(bench: Workbench) -> None:
    place = small_file_system(bench, "-o", "ro")
    with pytest.raises(TargetError, match="read-only file system"):
        TestFile.create(place / "t.bin", MIB)


@pytest.mark.parametrize("kind", ["xfs", "btrfs", "tmpfs"])
def test_other_file_systems_work_too(bench: Workbench, kind: str, tmp_path: Path) -> None:
    if kind not in Path("/proc/filesystems").read_text():
        pytest.skip(f"the kernel has no {kind}")
    if kind == "tmpfs":
        place = bench.mount("none", "-t", "tmpfs", "-o", "size=64m")
    else:
        device = bench.loop(size=320 * MIB)
        bench.run(f"mkfs.{kind}", "-q", device)
        place = bench.mount(device)
    direct = [StreamAccess(write=True, direct=kind != "tmpfs")]
    with TestFile.create(place, 4 * MIB) as file, open_target(file, direct) as target:
        assert os.getxattr(file.path, MARKER) or kind == "tmpfs"
        assert (target.device is None) == (kind == "tmpfs")
    process = waiting_maker(place / "t.bin")
    end(process, signal.SIGKILL)
    assert [found.removed for found in sweep_leftovers()] == [True]
    assert not (place / "t.bin").exists()


# --- the end of the maker --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_the_file(tmp_path: Path, number: int) -> None:
    process = waiting_maker(tmp_path / "t.bin")
    end(process, number)
    assert not (tmp_path / "t.bin").exists()
    assert entries() == []


def test_a_signal_while_the_file_is_filled_removes_it(tmp_path: Path) -> None:
    process = maker("fill", tmp_path / "t.bin", 4096 * MIB)
    until = time.monotonic() + 10
    while not (tmp_path / "t.bin").exists() and time.monotonic() < until:
        time.sleep(0.005)
    end(process, signal.SIGTERM)
    assert not (tmp_path / "t.bin").exists()
    assert entries() == []


def test_the_next_start_removes_files_of_a_killed_run_and_says_so(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    process = waiting_maker(tmp_path / "t.bin", 2 * MIB)
    assert sweep_leftovers() == []  # it lives
    end(process, signal.SIGKILL)
    assert (tmp_path / "t.bin").exists()
    swept = sweep_leftovers()
    assert [(found.path, found.size_bytes, found.removed) for found in swept] == [
        (str(tmp_path / "t.bin"), 2 * MIB, True)
    ]
    assert swept[0].line.startswith(f"removed {tmp_path}/t.bin (2.1 MB)")
    assert not (tmp_path / "t.bin").exists()
    assert mine.read_bytes() == b"mine"
    assert sweep_leftovers() == []
    assert entries() == []


def test_killed_at_random_moments_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    before = mine.stat()
    source = random.Random(7)
    left = 0
    for turn in range(25):
        process = maker("fill", tmp_path / "t.bin", 64 * MIB)
        time.sleep(source.uniform(0, 0.12))
        end(process, signal.SIGKILL)
        left += (tmp_path / "t.bin").exists()
        sweep_leftovers()
        assert set(os.listdir(tmp_path)) <= {"mine", "state"}, turn
        assert entries() == []
    assert left > 0
    assert mine.stat() == before


@pytest.mark.parametrize("mode", ["fill", "named"])
def test_killed_at_every_single_step_leaves_nothing_after_the_next_start(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "t.bin"
    for step in range(1, 400):
        process = maker(mode, place, 4096, kill_at=step)
        process.communicate(timeout=10)
        existed = place.exists()
        swept = sweep_leftovers()
        assert not place.exists(), f"step {step}"
        assert [found.removed for found in swept] == [True] * existed
        assert entries() == []
        if process.returncode == 0:
            assert step > 40
            return
    raise AssertionError("the maker never came to its end")


@pytest.mark.parametrize("mode", ["fill", "named"])
def test_a_signal_at_any_step_leaves_nothing_at_all(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "t.bin"
    for step in range(1, 400):
        process = maker(mode, place, 4096, kill_at=step, number=signal.SIGTERM)
        process.communicate(timeout=10)
        assert not place.exists(), f"step {step}"
        assert entries() == [], f"step {step}"
        if process.returncode == 0:
            assert step > 40
            return
    raise AssertionError("the maker never came to its end")


# --- what a sweep must not touch -------------------------------------------------------------------------------------


@pytest.fixture
def leftover(tmp_path: Path) -> Path:
    """A file that a killed run left."""
    end(waiting_maker(tmp_path / "t.bin"), signal.SIGKILL)
    return tmp_path / "t.bin"


def replaced_by_a_file(place: Path) -> None:
    place.unlink()
    place.write_bytes(b"mine")


def replaced_by_a_copy(place: Path) -> None:
    """The content, the size and even the marker are the same."""
    data, token = place.read_bytes(), os.getxattr(place, MARKER)
    copy = place.with_name("copy")
    copy.write_bytes(data)
    os.setxattr(copy, MARKER, token)
    copy.rename(place)


def replaced_in_the_same_inode(place: Path) -> None:
    """ext4 gives the inode of a removed file to the next one."""
    inode = place.stat().st_ino
    place.unlink()
    for number in range(64):
        place.write_bytes(b"mine")
        if place.stat().st_ino == inode:
            return
        place.rename(place.with_name(f"spare{number}"))
    pytest.skip("the file system does not give the same inode again")


def replaced_by_a_link(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


def replaced_by_a_hard_link_to_something(place: Path) -> None:
    other = place.with_name("other")
    other.write_bytes(b"mine")
    place.unlink()
    place.hardlink_to(other)


def replaced_by_a_pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def replaced_by_a_folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


def unmarked_by_the_user(place: Path) -> None:
    os.removexattr(place, MARKER)


@pytest.mark.parametrize(
    "change",
    [
        replaced_by_a_file,
        replaced_by_a_copy,
        replaced_in_the_same_inode,
        replaced_by_a_link,
        replaced_by_a_hard_link_to_something,
        replaced_by_a_pipe,
        replaced_by_a_folder,
        unmarked_by_the_user,
    ],
)
def test_another_file_that_has_taken_the_name_is_left_alone(leftover: Path, change: Any) -> None:
    change(leftover)
    before = {name: (leftover.parent / name).lstat() for name in os.listdir(leftover.parent) if name != "state"}
    swept = sweep_leftovers()
    assert [(found.removed, "left" in found.line and "alone" in found.line) for found in swept] == [(False, True)]
    after = {name: (leftover.parent / name).lstat() for name in os.listdir(leftover.parent) if name != "state"}
    assert after == before
    assert sweep_leftovers() == []


def test_a_leftover_that_the_user_removed_is_forgotten_silently(leftover: Path) -> None:
    leftover.unlink()
    assert sweep_leftovers() == []
    assert entries() == []


def test_a_kept_file_is_not_swept_even_if_power_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that came back would have it removed: that the entry is gone is synced."""
    synced: list[tuple[Path, list[str]]] = []

    def sync(folder: Path) -> None:
        synced.append((folder, entries()))
        sync_folder(folder)

    monkeypatch.setattr(register, "sync_folder", sync)
    TestFile.create(tmp_path / "t.bin", MIB).keep()
    assert synced[-1] == (register.folder(), [])


def test_another_name_of_a_leftover_is_kept(leftover: Path) -> None:
    other = leftover.with_name("kept")
    other.hardlink_to(leftover)
    assert [found.removed for found in sweep_leftovers()] == [True]
    assert other.exists()
    assert not leftover.exists()


def test_a_leftover_on_a_file_system_that_is_not_mounted_now_waits(bench: Workbench) -> None:
    device = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    place = bench.mount(device)
    end(waiting_maker(place / "t.bin"), signal.SIGKILL)
    bench.run("umount", place)
    (place / "t.bin").write_bytes(b"mine")
    assert [found.removed for found in sweep_leftovers()] == [False]
    (place / "t.bin").unlink()


def test_an_unmounted_leftover_is_removed_when_it_is_back(bench: Workbench) -> None:
    device = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    place = bench.mount(device)
    end(waiting_maker(place / "t.bin"), signal.SIGKILL)
    bench.run("umount", place)
    assert sweep_leftovers() == []
    bench.run("mount", device, place)
    assert [found.removed for found in sweep_leftovers()] == [True]


def test_an_entry_that_somebody_else_wrote_is_not_trusted(leftover: Path, need_root: None) -> None:
    entry = next(register.folder().glob("*.json"))
    os.chown(entry, 65534, 65534)
    assert [(found.removed, str(entry) in found.line) for found in sweep_leftovers()] == [(False, True)]
    assert leftover.exists()
    os.chown(entry, 0, 0)
    os.chown(register.folder(), 65534, 65534)
    assert sweep_leftovers() == []
    os.chown(register.folder(), 0, 0)
    register.folder().chmod(0o777)
    assert sweep_leftovers() == []
    register.folder().chmod(0o700)
    assert [found.removed for found in sweep_leftovers()] == [True]


def test_a_forged_entry_cannot_point_at_somebody_elses_file(leftover: Path, need_root: None) -> None:
    os.chown(leftover, 65534, 65534)
    assert [found.removed for found in sweep_leftovers()] == [False]
    assert leftover.exists()


def test_an_entry_of_another_machine_in_a_shared_home_is_left_to_it(
    leftover: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = next(register.folder().glob("*.json"))
    entry.write_text(entry.read_text().replace(f'"{os.uname().nodename}"', '"elsewhere"'))
    assert sweep_leftovers() == []
    assert leftover.exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"identity": 7}', '{"identity": {"x": 1}}', "\0" * 100])
def test_an_entry_that_makes_no_sense_harms_nothing(leftover: Path, text: str) -> None:
    entry = next(register.folder().glob("*.json"))
    entry.write_text(text)
    assert sweep_leftovers() == []
    assert leftover.exists()


def test_the_draft_of_an_entry_is_removed_when_its_maker_is_long_dead(leftover: Path) -> None:
    draft = register.folder() / "0123.new"
    draft.write_bytes(b"")
    sweep_leftovers()
    assert draft.exists()  # its maker may be about to lock it
    os.utime(draft, (time.time() - 600, time.time() - 600))
    sweep_leftovers()
    assert not draft.exists()


def test_the_lock_of_the_entry_alone_keeps_a_living_file(tmp_path: Path) -> None:
    with TestFile.create(tmp_path / "t.bin", MIB) as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)  # as on a file system that has no locks
        assert sweep_leftovers() == []
        assert file.path.exists()


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("part", ["device", "inode", "birth_ns"])
def test_every_part_of_the_identity_counts(tmp_path: Path, marked: bool, part: str) -> None:
    entry = Entry.intent("token", str(tmp_path / "t.bin"), MIB)
    with (tmp_path / "t.bin").open("x") as file:
        if marked:
            os.setxattr(file.fileno(), MARKER, b"token")
        identity = FileIdentity.of(file.fileno(), "token")
        assert identity.marked == marked
        assert replace(entry, identity=identity).matches(file.fileno())
        changed: dict[str, Any] = {part: 7}
        other = replace(identity, **changed)
        assert not replace(entry, identity=other).matches(file.fileno())


def test_after_a_boot_the_marker_identifies_a_file_on_a_file_system_with_another_number(tmp_path: Path) -> None:
    entry = replace(Entry.intent("token", str(tmp_path / "t.bin"), MIB), boot="an earlier one")
    with (tmp_path / "t.bin").open("x") as file:
        unmarked = replace(FileIdentity.of(file.fileno(), "token"), device=7)
        assert not replace(entry, identity=unmarked).matches(file.fileno())
        os.setxattr(file.fileno(), MARKER, b"token")
        marked = replace(FileIdentity.of(file.fileno(), "token"), device=7)
        assert replace(entry, identity=marked).matches(file.fileno())


def test_a_descriptor_that_lives_on_in_a_child_keeps_the_file(leftover: Path) -> None:
    with leftover.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert sweep_leftovers() == []
        assert leftover.exists()
    assert [found.removed for found in sweep_leftovers()] == [True]


def test_two_sweeps_at_once_remove_it_once(leftover: Path) -> None:
    code = "from spindle.host.testfile import sweep_leftovers; print(len(sweep_leftovers()))"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert sorted(run.communicate()[0].strip() for run in runs) == ["0", "0", "0", "1"]
    assert not leftover.exists()


@pytest.mark.promise(8)
def test_a_leftover_that_somebody_appended_to_is_left_alone(leftover: Path) -> None:
    with leftover.open("ab") as file:
        file.write(b"my notes")
    swept = sweep_leftovers()
    assert [found.removed for found in swept] == [False]
    assert "somebody else has written to it" in swept[0].line
    assert leftover.read_bytes().endswith(b"my notes")
    assert sweep_leftovers() == []  # it belongs to the user now
    assert entries() == []


@pytest.mark.promise(8)
def test_a_test_file_that_somebody_appended_to_is_left_at_the_end_of_the_run(tmp_path: Path) -> None:
    with TestFile.create(tmp_path / "t.bin", MIB) as file:
        with (tmp_path / "t.bin").open("ab") as other:
            other.write(b"my notes")
        line = file.remove()
    assert line is not None
    assert "somebody else has written to it" in line
    assert (tmp_path / "t.bin").read_bytes().endswith(b"my notes")
    assert entries() == []


@pytest.mark.promise(4)
@pytest.mark.parametrize("spoil", ["group", "others", "link", "hard link"])
def test_an_entry_that_others_may_write_to_is_not_trusted_and_reported(leftover: Path, spoil: str) -> None:
    entry = register.folder() / entries()[0]
    match spoil:
        case "group":
            entry.chmod(0o660)
        case "others":
            entry.chmod(0o606)
        case "link":
            entry.rename(entry.with_suffix(".elsewhere"))
            entry.symlink_to(entry.with_suffix(".elsewhere"))
        case _:
            os.link(entry, entry.with_suffix(".second"))
    swept = sweep_leftovers()
    assert [found.removed for found in swept] == [False]
    assert str(entry) in swept[0].line
    assert leftover.exists()
