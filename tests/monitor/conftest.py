"""A machine made of files, for the monitor: tests write its /proc and /sys."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from spindle.host.devices import Machine
from spindle.monitor import Interval, Sampler, Selection, between

STAT = "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nprocs_running 2\nprocs_blocked 1\n"
PRESSURE = "some avg10=1.50 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=500000\n"


class Tree:
    """The devices and counters of the machine."""

    def __init__(self, root: Path) -> None:
        self.machine = Machine(sys=root / "sys", proc=root / "proc", dev=root / "dev")
        for folder in ("sys/class/block", "sys/dev/block", "sys/devices", "proc/self", "proc/pressure", "dev"):
            (root / folder).mkdir(parents=True)
        self.proc("self/mountinfo", "")
        self.proc("stat", STAT)
        self.proc("pressure/io", PRESSURE)

    def proc(self, name: str, text: str) -> None:
        (self.machine.proc / name).write_text(text)

    def disk(self, name: str, number: str, *, diskseq: int | None = None, size: int = 8, parent: str = "") -> Path:
        place = self.machine.sys / "devices" / parent / name
        place.mkdir(parents=True)
        (place / "dev").write_text(f"{number}\n")
        (place / "size").write_text(f"{size}\n")
        if parent:
            (place / "partition").write_text("1\n")
        for link in (self.machine.sys / "class/block" / name, self.machine.sys / "dev/block" / number):
            link.unlink(missing_ok=True)
            link.symlink_to(place)
        if diskseq is not None:
            self.diskseq(name, diskseq)
        return place

    def diskseq(self, name: str, value: int) -> None:
        (self.machine.sys / "class/block" / name / "diskseq").write_text(f"{value}\n")

    def unplug(self, name: str) -> None:
        link = self.machine.sys / "class/block" / name
        shutil.rmtree(link.resolve())
        link.unlink()

    def stats(self, *lines: str) -> None:
        self.proc("diskstats", "".join(f"{line}\n" for line in lines))

    def sampler(self, *given: str, cgroups: bool = False) -> Sampler:
        return Sampler(Selection(given, self.machine), cgroups=cgroups)

    def interval(self, before: Sequence[str], after: Sequence[str], *given: str) -> Interval:
        """The interval between two texts of /proc/diskstats."""
        self.stats(*before)
        sampler = self.sampler(*given)
        first = sampler.take()
        self.stats(*after)
        return between(first, sampler.take())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "machine")
