"""What the machine does beside a load, once a second, from a few kernel files: a look costs 0.4 ms of one CPU."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..cputimes import CpuTimes
from ..devices import HERE, Device, Machine, text_of
from ..diskstats import DiskDelta, Snapshot, delta, snapshot
from ..memory import swapped_pages
from .arrays import WORKING, action_of, arrays_of
from .processors import cpu_times, throttle_events
from .temperature import Sensor, sensors

INTERVAL_S = 1.0
LEAST_S = 0.2
"""A last interval shorter than this tells nothing: CPU times are counted in steps of 10 ms, or 4."""
COLUMNS = ("r/s", "w/s", "rMB/s", "wMB/s", "r_await", "w_await", "aqu-sz", "%util")
"""Columns of `iostat -mx` that are kept of each interval."""
MOST = 1024
"""Samples that are kept; of longer runs neighbours are joined and the interval doubles."""


@dataclass(frozen=True)
class Sample:
    """One interval. None: not known. CPU times are shares of all CPUs' time."""

    at_s: float
    """Its end, from the beginning of the load."""
    seconds: float
    cpu_others: float | None
    """Used by other programs in user mode: what the kernel does may be the load's own work."""
    cpu_iowait: float | None
    cpu_steal: float | None
    other_read_bytes_per_s: float | None
    """Read by the devices under test beyond what this program had them read."""
    other_write_bytes_per_s: float | None
    """The same for writes; None where the load's own writes pass through a cache."""
    swapped_pages: int | None
    throttle_events: int | None
    temperatures: dict[str, float]
    """Celsius, of each drive and of the CPUs."""
    working: dict[str, str]
    """Arrays that are busy with themselves, and with what."""
    devices: dict[str, dict[str, float]]
    """What the devices under test did: name -> `COLUMNS` of iostat."""


@dataclass(frozen=True)
class Moved:
    """Bytes that the load had read and written by now."""

    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class _Moment:
    """Counters at one moment."""

    at_s: float
    cpu: CpuTimes | None
    own_user_s: float
    disks: Snapshot
    fetched_bytes: int | None
    moved: Moved
    swapped: int | None
    throttled: int | None


class Sampler:
    """Looks at the machine whenever a second is over and it is told so; it has no thread of its own."""

    def __init__(
        self,
        devices: Sequence[Device],
        under_test: Iterable[str],
        *,
        writes_directly: bool = True,
        interval_s: float = INTERVAL_S,
        most: int = MOST,
        machine: Machine = HERE,
    ) -> None:
        self._devices = devices
        names = set(under_test)
        self._tested = [device for device in devices if device.name in names]
        self._writes_directly = writes_directly
        self._most = most
        self._machine = machine
        self._arrays = arrays_of(devices, machine)
        self._sensors: list[Sensor] = sensors(devices, machine)
        self._start = self._last = self._moment(Moved(0, 0))
        self.interval_s = interval_s
        self.samples: list[Sample] = []
        self.limits = {sensor.name: sensor.limit_celsius for sensor in self._sensors if sensor.limit_celsius}

    def begin(self, moved: Moved) -> None:
        """The load begins now."""
        self._start = self._last = self._moment(moved)

    def look(self, moved: Moved) -> None:
        """The load goes on; cheap when the second is not over."""
        if time.monotonic() - self._last.at_s >= self.interval_s:
            self._take(moved)

    def end(self, moved: Moved) -> None:
        """The load is over."""
        if time.monotonic() - self._last.at_s >= LEAST_S:
            self._take(moved)

    def _take(self, moved: Moved) -> None:
        now, then = self._moment(moved), self._last
        self._last = now
        self.samples.append(self._sample(then, now))
        if len(self.samples) > self._most:
            pairs = zip(self.samples[::2], self.samples[1::2], strict=False)
            odd = self.samples[-1:] if len(self.samples) % 2 else []
            self.samples = [*(_joined(one, other) for one, other in pairs), *odd]
            self.interval_s *= 2

    def _moment(self, moved: Moved) -> _Moment:
        return _Moment(
            at_s=time.monotonic(),
            cpu=cpu_times(self._machine),
            own_user_s=resource.getrusage(resource.RUSAGE_SELF).ru_utime,
            disks=snapshot(self._tested, self._machine),
            fetched_bytes=fetched_bytes(self._machine),
            moved=moved,
            swapped=swapped_pages(self._machine),
            throttled=throttle_events(self._machine),
        )

    def _sample(self, then: _Moment, now: _Moment) -> Sample:
        seconds = max(now.at_s - then.at_s, 1e-9)
        others, iowait, steal = _cpu_shares(then, now)
        changes = delta(then.disks, now.disks)
        reads, writes = self._others(changes, then, now, seconds)
        working = {array.name: action_of(array) or "" for array in self._arrays}
        return Sample(
            at_s=now.at_s - self._start.at_s,
            seconds=seconds,
            cpu_others=others,
            cpu_iowait=iowait,
            cpu_steal=steal,
            other_read_bytes_per_s=reads,
            other_write_bytes_per_s=writes,
            swapped_pages=_since(then.swapped, now.swapped),
            throttle_events=_since(then.throttled, now.throttled),
            temperatures={sensor.name: value for sensor in self._sensors if (value := sensor.celsius()) is not None},
            working={name: action for name, action in working.items() if action in WORKING},
            devices={name: _columns(change) for name, change in changes.items()},
        )

    def _others(
        self, changes: Mapping[str, DiskDelta], then: _Moment, now: _Moment, seconds: float
    ) -> tuple[float | None, float | None]:
        if not self._tested or len(changes) < len(self._tested):
            return None, None
        read = sum(change.read_bytes for change in changes.values())
        written = sum(change.write_bytes for change in changes.values())
        own = _since(then.fetched_bytes, now.fetched_bytes)
        if own is None:
            own = now.moved.read_bytes - then.moved.read_bytes
        wrote = now.moved.write_bytes - then.moved.write_bytes
        return max(0, read - own) / seconds, max(0, written - wrote) / seconds if self._writes_directly else None


def fetched_bytes(machine: Machine = HERE) -> int | None:
    """`read_bytes` of proc_pid_io(5): counted where a read is handed to a block device, for every thread of ours."""
    found = re.search(r"^read_bytes: ([0-9]{1,20})$", text_of(Path(machine.proc / "self/io")) or "", re.MULTILINE)
    return int(found[1]) if found is not None else None


def _cpu_shares(then: _Moment, now: _Moment) -> tuple[float | None, float | None, float | None]:
    if then.cpu is None or now.cpu is None or (ticks := now.cpu.total - then.cpu.total) <= 0:
        return None, None, None
    own = (now.own_user_s - then.own_user_s) * os.sysconf("SC_CLK_TCK") / ticks
    return (
        max(0.0, (now.cpu.user - then.cpu.user) / ticks - own),
        max(0, now.cpu.iowait - then.cpu.iowait) / ticks,
        max(0, now.cpu.steal - then.cpu.steal) / ticks,
    )


def _columns(change: DiskDelta) -> dict[str, float]:
    known = change.iostat()
    return {name: round(known[name], 4) for name in COLUMNS}


def _since(then: int | None, now: int | None) -> int | None:
    return None if then is None or now is None else max(0, now - then)


def _joined(one: Sample, other: Sample) -> Sample:
    """Two neighbours as one."""
    seconds = one.seconds + other.seconds

    def mean(name: str) -> float | None:
        a, b = getattr(one, name), getattr(other, name)
        return None if a is None or b is None else (a * one.seconds + b * other.seconds) / seconds

    def total(name: str) -> int | None:
        a, b = getattr(one, name), getattr(other, name)
        return None if a is None or b is None else a + b

    return Sample(
        at_s=other.at_s,
        seconds=seconds,
        cpu_others=mean("cpu_others"),
        cpu_iowait=mean("cpu_iowait"),
        cpu_steal=mean("cpu_steal"),
        other_read_bytes_per_s=mean("other_read_bytes_per_s"),
        other_write_bytes_per_s=mean("other_write_bytes_per_s"),
        swapped_pages=total("swapped_pages"),
        throttle_events=total("throttle_events"),
        temperatures={
            name: max(one.temperatures.get(name, value), value) for name, value in other.temperatures.items()
        },
        working={**one.working, **other.working},
        devices={
            name: _joined_columns(one.devices[name], one.seconds, columns, other.seconds)
            for name, columns in other.devices.items()
            if name in one.devices
        },
    )


def _joined_columns(
    one: Mapping[str, float], seconds: float, other: Mapping[str, float], more: float
) -> dict[str, float]:
    """Means over time; those of a request's wait over requests."""
    found = {}
    for column, value in other.items():
        count = column.replace("_await", "/s")
        weight, weight_more = (seconds * one[count], more * other[count]) if count != column else (seconds, more)
        both = weight + weight_more
        found[column] = (one[column] * weight + value * weight_more) / both if both else 0.0
    return found
