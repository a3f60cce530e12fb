"""A folder for one run of the fuzzer, taken down however the run ends.

A run holds a lock on its folder. SIGTERM, SIGINT and SIGHUP end it like an error, so everything is undone on the way
out. After SIGKILL the lock is free: the next start takes down what is in that folder, and leaves the folders of runs
that still hold theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from spindle.host.signals import ENDING

PREFIX = "spindle-fuzz-"
LOCK = "lock"
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """For the length of a run; what dead runs left is taken down first."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _clear_if_dead(folder)
    before = {number: signal.signal(number, _end) for number in ENDING}
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(folder / "locking", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(folder / "locking", folder / LOCK)  # another start never sees a lock that is still free
        yield folder
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # a second one is not to stop this
        _clear(folder)
        os.close(lock)
        for number, handler in before.items():
            signal.signal(number, handler)


def be_killed_with_parent() -> None:
    """For a child that has children of its own to end when it gets a signal."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with_parent() -> None:
    """For a child, before anything else: it ends when the fuzzer does, and signals end it at once."""
    be_killed_with_parent()
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _clear_if_dead(folder: Path) -> None:
    """Nothing where there is no lock, or somebody holds it."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        _clear(folder)
    finally:
        os.close(lock)


def instance_of(folder: Path) -> str:
    """Name of its instance of the tracer: all instances of the machine are in one folder."""
    return f"{folder.parent.name}-{folder.name}"


def kill_those_in(folder: Path) -> None:
    """Kill processes that work in a folder of ours: jobs of a killed fio go on without it."""
    for link in Path("/proc").glob("[0-9]*/cwd"):
        pid = int(link.parent.name)
        with contextlib.suppress(OSError):
            if pid != os.getpid() and link.readlink().is_relative_to(folder):
                os.kill(pid, signal.SIGKILL)


def _clear(folder: Path) -> None:
    """Processes that work in it, the instances of the tracer, mounts and loop devices of it, and the folder."""
    kill_those_in(folder)
    for runner in folder.glob("*"):
        with contextlib.suppress(OSError):
            (runner / "tracefs/instances" / instance_of(runner)).rmdir()
    for mount in reversed(_mounts(folder)):
        _try("umount", "--lazy", str(mount))
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if Path(backing.read_text().strip()).is_relative_to(folder):
                _try("losetup", "--detach", f"/dev/{backing.parents[1].name}")
    if not _mounts(folder):  # never remove what is on a file system that stayed
        shutil.rmtree(folder, ignore_errors=True)


def _mounts(folder: Path) -> list[Path]:
    """Under it, in the order in which they were made."""
    points = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.is_relative_to(folder)]


def _try(*command: str) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PATH": path})
