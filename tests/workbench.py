"""Loop devices, mounts and helper processes of a test; each is removed again."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.queue import Queue

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
LOOPS = f"{tempfile.gettempdir()}/spindle-test-loops"
"""Tests set up loop devices only while they hold a lock on this file."""
NEW_LOOP = ("flock", LOOPS, "losetup", "--find", "--show")
DETACH_LOOP = ("flock", LOOPS, "losetup", "--detach")
"""One after another: losetup opens a free device for writing before it knows that another process has taken it, and
still has a device open for a moment when it is free again."""
MIB = 1 << 20


@contextmanager
def no_new_loops() -> Iterator[None]:
    """Other tests wait before they take a free loop device, such as one that this test has detached."""
    with open(LOOPS, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def after_other_tests(refusal: Callable[[], str]) -> str:
    """The text of a refusal that is not for another test's losetup: it has a device open for a moment that another one
    has taken before it, or that it has detached itself."""
    text = refusal()
    while "(losetup)" in text:
        text = refusal()
    return text


def disk_sequence(device: str) -> str:
    """A number that no other disk has or had, also of the same name."""
    return Path("/sys/class/block", Path(device).name, "diskseq").read_text()


def mounted_devices() -> set[str]:
    """Devices that are mounted now. (A text has /dev/loop1 within /dev/loop15.)"""
    return {line.split()[0] for line in Path("/proc/mounts").read_text().splitlines()}


class Workbench:
    """Loop devices, mounts and processes in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.undo = ExitStack()
        self._count = 0
        self._set_up: dict[str, str] = {}
        """Loop device -> the disk that had its name when the test set it up: a test that ends detaches no other's."""

    def new_path(self, stem: str) -> Path:
        self._count += 1
        return self.folder / f"{stem}{self._count}"

    def run(self, *command: str | Path, check: bool = True, text: str | None = None) -> str:
        """Run a tool; a missing one skips the test."""
        name = str(command[0])
        if shutil.which(name, path=PATH) is None:
            pytest.skip(f"{name} is not installed")
        done = subprocess.run(
            [str(part) for part in command],
            input=text,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": PATH, "LC_ALL": "C"},
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def image(self, size: int = 32 * MIB) -> Path:
        path = self.new_path("image")
        with path.open("xb") as file:
            file.truncate(size)
        return path

    def loop(self, backing: Path | str | None = None, *options: str, size: int = 32 * MIB) -> str:
        """A free loop device over a file (a new sparse one by default) or a device, without an elevator.

        Its queue is as it was afterwards: the next one to use the device inherits it.
        """
        backing = backing or self.image(size)
        device = self.run(*NEW_LOOP, *options, str(backing)).strip()
        self._set_up[device] = disk_sequence(device)
        queue = Queue(Path(device).name)
        queue.drop_elevator()
        self.undo.callback(self._detach, device, queue, queue.settings())
        return device

    def exchange(self, device: str, backing: Path | str) -> None:
        """Set the loop device up anew, over another file."""
        with no_new_loops():
            self.run("losetup", "--detach", device)
            self.run("losetup", device, backing)
            self._set_up[device] = disk_sequence(device)

    def _detach(self, device: str, queue: Queue, settings: dict[str, str]) -> None:
        with no_new_loops():
            is_attached = Path("/sys/block", Path(device).name, "loop").exists()
            if is_attached and disk_sequence(device) != self._set_up[device]:
                return  # by another test
            queue.put_back(settings)
            self.run("losetup", "--detach", device, check=False)

    def mount(self, device: str | Path, *options: str) -> Path:
        point = self.new_path("mnt")
        point.mkdir()
        self.run("mount", *options, device, point)
        self.undo.callback(self.run, "umount", "--lazy", point, check=False)
        return point

    def partition(self, device: str, number: int, start_sector: int, sectors: int) -> str:
        """Announce a partition to the kernel, which finds only those of tables that it was built to read."""
        node = f"{device}p{number}"
        if not os.path.exists(node):
            self.run("addpart", device, str(number), str(start_sector), str(sectors))
        self.undo.callback(self.run, "delpart", device, str(number), check=False)
        return node

    def partitioned(self, device: str) -> list[str]:
        """Two partitions of 12 MiB each in a DOS table."""
        self.run("sfdisk", "--quiet", "--no-reread", device, text="label: dos\n2048,24576,83\n26624,24576,83\n")
        return [self.partition(device, 1, 2048, 24576), self.partition(device, 2, 26624, 24576)]

    def python(self, code: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """A helper process that has printed its first line when this returns; it ends when its input closes."""
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.undo.callback(_end, process)
        assert process.stdout is not None
        process.stdout.readline()
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
