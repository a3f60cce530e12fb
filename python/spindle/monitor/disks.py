"""/proc/diskstats, parsed line by line without trust, with the identity of each device."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from spindle.host.devices import DevNumber, Machine, text_of
from spindle.host.diskstats import Counters, DiskDelta, counters_of
from spindle.host.number import whole_number

_SUMS = [field.name for field in fields(DiskDelta) if field.name not in ("seconds", "in_flight")]
_LEAST, _DISCARD, _FLUSH = 11, 15, 17
"""Number of fields in a line: always; since Linux 4.18; since 5.5."""


@dataclass(frozen=True)
class Disk:
    """One device at one moment."""

    number: DevNumber | None
    """None: its line could not be read."""
    counters: Counters | None
    fields: int = _FLUSH
    """Number of fields that the kernel prints."""
    diskseq: int | None = None
    """Sequence number of the disk (Linux 5.15), which distinguishes devices that had the same name; None: not known."""

    @property
    def ever_used(self) -> bool:
        """True if it did any I/O since it appeared."""
        return self.counters is None or bool(self.counters.reads + self.counters.writes + self.counters.discards)

    def counts(self, since: str) -> bool:
        """True if the kernel counts that: 'discard', 'flush' or '' (counted by every kernel)."""
        return self.fields >= {"": _LEAST, "discard": _DISCARD, "flush": _FLUSH}[since]


UNREADABLE = Disk(None, None)


def number_in(path: Path) -> int | None:
    """The number in a file that contains nothing else; None: not readable."""
    return whole_number((text_of(path) or "").strip())


def parse(text: str) -> dict[str, Disk]:
    """Devices by name. A line with unreadable numbers gives a device without counters. A line without a device, or
    about a partition in the short form of Linux 2.6.0 to 2.6.24, is skipped."""
    found = {}
    for line in text.splitlines():
        parts = line.split(maxsplit=3 + _FLUSH)
        if len(parts) < 4 or len(parts) == 7:
            continue
        major, minor = whole_number(parts[0]), whole_number(parts[1])
        if major is None or minor is None:
            continue
        printed = parts[3 : 3 + _FLUSH]
        found[parts[2]] = Disk(DevNumber(major, minor), counters_of(printed), len(printed))
    return found


def diskseqs(names: Iterable[str], machine: Machine) -> dict[str, int | None]:
    """Sequence number of the device that has each name now."""
    return {name: number_in(folder(_disk_of(name, machine), machine) / "diskseq") for name in names}


def _disk_of(name: str, machine: Machine) -> str:
    """The disk of a partition, as a partition is as new as its disk."""
    place = folder(name, machine)
    if os.path.exists(place / "partition"):
        return os.path.basename(os.path.dirname(os.path.realpath(place)))
    return name


def folder(name: str, machine: Machine) -> Path:
    """A device's folder in sysfs, where a slash in the name is written `!`."""
    return machine.sys / "class/block" / name.replace("/", "!")


def same_device(old: Disk, new: Disk) -> bool:
    """True if two readings are of one device, as far as the kernel identifies it."""
    numbers = old.number is None or new.number is None or old.number == new.number
    return numbers and (old.diskseq is None or new.diskseq is None or old.diskseq == new.diskseq)


def added(one: DiskDelta, other: DiskDelta) -> DiskDelta:
    """Join two intervals; `other` is the later."""
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMS}
    return DiskDelta(seconds=one.seconds + other.seconds, in_flight=other.in_flight, **sums)
