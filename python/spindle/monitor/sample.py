"""All counters that the monitor reads, at one moment."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from spindle.host.devices import DevNumber, text_of

from . import disks, pressure, processors
from .cgroups import Groups, Hierarchy, hierarchy
from .disks import Disk
from .pressure import Pressure
from .processors import Processors
from .selection import Selection


@dataclass(frozen=True)
class Sample:
    """Counters since boot."""

    at_ns: int
    """Time when /proc/diskstats was read, by the monotonic clock."""
    wall_ns: int
    """The same by the wall clock, since 1970."""
    disks: dict[str, Disk]
    cpu: Processors
    pressure: Pressure
    cgroups: Groups | None
    """None: not asked for, or no groups on this machine count I/O."""


class Sampler:
    """Takes samples of the machine."""

    def __init__(self, selection: Selection, *, cgroups: bool = True) -> None:
        self._selection = selection
        self._machine = selection.machine
        self._hierarchy: Hierarchy | None = hierarchy(self._machine) if cgroups else None

    def take(self) -> Sample:
        """Take one sample."""
        machine = self._machine
        begin_ns = time.monotonic_ns()
        text = text_of(machine.proc / "diskstats") or ""
        at_ns, wall_ns = (begin_ns + time.monotonic_ns()) // 2, time.time_ns()
        cpu = processors.parse(text_of(machine.proc / "stat") or "")
        stalls = pressure.parse(text_of(machine.proc / "pressure/io") or "")
        picked = self._identified(self._selection.pick(disks.parse(text)))
        groups = self._hierarchy.read(self._whole_disks(picked)) if self._hierarchy else None
        return Sample(at_ns, wall_ns, picked, cpu, stalls, groups)

    def _identified(self, picked: dict[str, Disk]) -> dict[str, Disk]:
        """Add sequence numbers. They are read after the counters: if a device is replaced just then, its number differs
        from the sample before, so no difference is taken across two devices; the next sample sees that its counters
        were reset."""
        now = disks.diskseqs(picked, self._machine)
        return {name: replace(disk, diskseq=now[name]) for name, disk in picked.items()}

    def _whole_disks(self, picked: dict[str, Disk]) -> dict[DevNumber, str]:
        """Whole disks by number, the form in which groups count."""
        found = {}
        for name, disk in picked.items():
            place, number = disks.folder(name, self._machine), disk.number
            if os.path.exists(place / "partition"):
                whole = Path(os.path.realpath(place)).parent
                name, number = whole.name.replace("!", "/"), _number_in(whole)
            if number is not None:
                found[number] = name
        return found


def _number_in(folder: Path) -> DevNumber | None:
    try:
        return DevNumber.read(folder / "dev")
    except ValueError:
        return None
