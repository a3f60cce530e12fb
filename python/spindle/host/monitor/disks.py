"""/proc/diskstats, line by line and without trust: which device each line is about, and what it tells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from ..devices import DevNumber, Machine, text_of
from ..diskstats import Counters, DiskDelta, counters_of
from ..number import whole_number

_SUMS = [field.name for field in fields(DiskDelta) if field.name not in ("seconds", "in_flight")]
_LEAST, _DISCARD, _FLUSH = 11, 15, 17
"""How many fields a line has: always; since Linux 4.18; since 5.5."""


@dataclass(frozen=True)
class Disk:
    """One device at one moment."""

    number: DevNumber | None
    """None: the kernel's line for it could not be read."""
    counters: Counters | None
    told: int = _FLUSH
    """How many fields the kernel gives."""
    diskseq: int | None = None
    """Which device this is, of all that ever had its name (Linux 5.15); None: not known."""

    @property
    def ever_used(self) -> bool:
        """Whether it did any I/O since it came up."""
        return self.counters is None or bool(self.counters.reads + self.counters.writes + self.counters.discards)

    def counts(self, since: str) -> bool:
        """Whether the kernel counts that: 'discard', 'flush' or '' (what every kernel counts)."""
        return self.told >= {"": _LEAST, "discard": _DISCARD, "flush": _FLUSH}[since]


UNREADABLE = Disk(None, None)


def number_in(path: Path) -> int | None:
    """The same, from a file of its own."""
    return whole_number((text_of(path) or "").strip())


def parse(text: str) -> dict[str, Disk]:
    """Devices by name. A line whose numbers are no numbers gives a device without counters; one that names no device,
    or a partition in the short form of Linux 2.6.0 to 2.6.24, gives nothing."""
    found = {}
    for line in text.splitlines():
        parts = line.split(maxsplit=3 + _FLUSH)
        if len(parts) < 4 or len(parts) == 7:
            continue
        major, minor = whole_number(parts[0]), whole_number(parts[1])
        if major is None or minor is None:
            continue
        told = parts[3 : 3 + _FLUSH]
        found[parts[2]] = Disk(DevNumber(major, minor), counters_of(told), len(told))
    return found


def diskseqs(names: Iterable[str], machine: Machine) -> dict[str, int | None]:
    """Which device bears each name now."""
    return {name: number_in(folder(_disk_of(name, machine), machine) / "diskseq") for name in names}


def _disk_of(name: str, machine: Machine) -> str:
    """A partition is as new as the disk it lies on."""
    place = folder(name, machine)
    if os.path.exists(place / "partition"):
        return os.path.basename(os.path.dirname(os.path.realpath(place)))
    return name


def folder(name: str, machine: Machine) -> Path:
    """A device's folder in sysfs, where a slash in its name is a `!`."""
    return machine.sys / "class/block" / name.replace("/", "!")


def same_device(old: Disk, new: Disk) -> bool:
    """Whether two readings are of one device, as far as the kernel tells."""
    numbers = old.number is None or new.number is None or old.number == new.number
    return numbers and (old.diskseq is None or new.diskseq is None or old.diskseq == new.diskseq)


def added(one: DiskDelta, other: DiskDelta) -> DiskDelta:
    """Two intervals as one; `other` is the later."""
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMS}
    return DiskDelta(seconds=one.seconds + other.seconds, in_flight=other.in_flight, **sums)
