"""The activity between two samples, in the columns of iostat and vmstat."""

from __future__ import annotations

from dataclasses import dataclass, field

from spindle.host.diskstats import DiskDelta, difference

from . import cgroups, disks, pressure, processors
from .cgroups import CgroupIo, Groups
from .columns import DISK
from .disks import Disk
from .sample import Sample

Values = dict[str, float | None]
"""Column -> value; None: unknown."""


@dataclass(frozen=True)
class Activity:
    """Activity of one device."""

    delta: DiskDelta | None
    """None: its counters could not be read, or were reset."""
    disk: Disk
    """The reading at the end."""

    @property
    def active(self) -> bool:
        """True if a request completed or is in flight. Unknown counts as active, so that it is shown."""
        if self.delta is None:
            return True
        done = self.delta.reads + self.delta.writes + self.delta.discards + self.delta.flushes
        return bool(done or self.delta.in_flight or self.delta.busy_ms)

    def columns(self) -> Values:
        """iostat's columns, with rates in KiB/s."""
        if self.delta is None:
            return dict.fromkeys(column.name for column in DISK)
        known = self.delta.iostat()
        for letter in "rwd":
            known[f"{letter}kB/s"] = known[f"{letter}MB/s"] * 1024
        return {column.name: known[column.name] if self.disk.counts(column.since) else None for column in DISK}


@dataclass(frozen=True)
class CgroupRates:
    """I/O that one control group asked of one device."""

    group: str
    device: str
    io: CgroupIo
    seconds: float

    def columns(self) -> Values:
        """Requests and KiB per second."""
        io, seconds = self.io, self.seconds
        return {
            "r/s": io.reads / seconds,
            "rkB/s": io.read_bytes / 1024 / seconds,
            "w/s": io.writes / seconds,
            "wkB/s": io.write_bytes / 1024 / seconds,
            "d/s": io.discards / seconds,
            "dkB/s": io.discard_bytes / 1024 / seconds,
        }


@dataclass(frozen=True)
class Interval:
    """One interval."""

    seconds: float
    """The true length, by the monotonic clock."""
    end_ns: int
    """Wall clock at its end, since 1970."""
    disks: dict[str, Activity]
    host: Values
    cgroups: list[CgroupRates] | None
    """Groups that did I/O, the busiest first; None: not asked for or not known."""
    uncounted: list[str]
    """Active disks that the kernel counts for no group."""
    appeared: list[str]
    """Devices that are new, or replaced one of the same name; their first interval begins now."""
    gone: list[str]
    hosts: dict[str, Values] = field(default_factory=dict)
    """The same for each of several hosts, whose devices are named `host:device`; `host` is then empty."""
    lost: dict[str, str] = field(default_factory=dict)
    """Hosts that are watched no longer, and why."""

    @property
    def machines(self) -> dict[str, Values]:
        """vmstat's columns of each host; of one machine under the name ''."""
        return self.hosts or {"": self.host}

    def machine_of(self, device: str) -> Values:
        """Those of the host that has a device."""
        return self.machines[device.partition(":")[0] if self.hosts else ""]


def between(before: Sample, after: Sample) -> Interval:
    """The interval between two samples."""
    seconds = max(after.at_ns - before.at_ns, 1) / 1e9
    activities, appeared = {}, []
    for name, disk in after.disks.items():
        old = before.disks.get(name)
        if old is None or not disks.same_device(old, disk):
            appeared.append(name)
        else:
            activities[name] = _activity(old, disk, seconds)
    return Interval(
        seconds=seconds,
        end_ns=after.wall_ns,
        disks=activities,
        host={
            "r": _as_float(after.cpu.running),
            "b": _as_float(after.cpu.blocked),
            **processors.shares(before.cpu.times, after.cpu.times),
            **pressure.columns(before.pressure, after.pressure, seconds),
        },
        cgroups=_cgroups(before.cgroups, after.cgroups, seconds),
        uncounted=_uncounted(after.cgroups, activities),
        appeared=appeared,
        gone=[name for name in before.disks if name not in after.disks],
    )


def _activity(old: Disk, new: Disk, seconds: float) -> Activity:
    if old.counters is None or new.counters is None:
        return Activity(None, new)
    return Activity(difference(old.counters, new.counters, seconds), new)


def _as_float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _cgroups(before: Groups | None, after: Groups | None, seconds: float) -> list[CgroupRates] | None:
    if before is None or after is None:
        return None
    rates = []
    for key, io in after.io.items():
        change = cgroups.difference(before.io.get(key), io)
        # A new device has groups whose counters began before the watch.
        if key.number in before.disks and change != CgroupIo():
            rates.append(CgroupRates(key.group, after.disks[key.number], change, seconds))
    return sorted(rates, key=lambda rate: -(rate.io.read_bytes + rate.io.write_bytes + rate.io.discard_bytes))


def _uncounted(groups: Groups | None, activities: dict[str, Activity]) -> list[str]:
    names = [groups.disks[number] for number in sorted(groups.uncounted)] if groups else []
    return [name for name in names if name not in activities or activities[name].active]
