"""The watch beside a load, once a second, from a few kernel files: each sample costs 0.4 ms of one CPU. It also watches
the settings in force."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spindle.host.cputimes import CpuTimes
from spindle.host.devices import HERE, Device, Machine
from spindle.host.diskstats import DiskDelta, Snapshot, delta, fetched_bytes, snapshot
from spindle.host.memory import swapped_pages
from spindle.result.record import Sample, TemporaryChange

from .arrays import WORKING, action_of, arrays_of
from .intervals import Intervals
from .own import OwnLoad
from .processors import cpu_times, throttle_events
from .sample import COLUMNS
from .temperature import Sensor, sensors
from .watch import SettingsWatch

INTERVAL_S = 1.0
LEAST_S = 0.2
"""A shorter last interval is not recorded: the kernel counts CPU times in steps of 10 ms or 4 ms."""
MOST = 1024
"""Most samples that are kept. In longer runs neighbours are joined and the interval doubles."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that the load had read and written at one moment."""

    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class _Moment:
    """The machine's counters at one moment."""

    at_s: float
    cpu: CpuTimes | None
    own_user_s: float
    disks: Snapshot
    fetched_bytes: int | None
    moved: Traffic
    swapped: int | None
    throttled: int | None


class Sampler:
    """Takes a sample when a second has passed and `look` is called; it has no thread of its own."""

    def __init__(
        self,
        devices: Sequence[Device],
        under_test: Iterable[str],
        *,
        writes_directly: bool = True,
        interval_s: float = INTERVAL_S,
        most: int = MOST,
        machine: Machine = HERE,
        own: OwnLoad | None = None,
    ) -> None:
        """`own`: a load outside this process; its I/O cannot be distinguished from that of others."""
        self._own = own
        self._devices = devices
        names = set(under_test)
        self._tested = [device for device in devices if device.name in names]
        self._writes_directly = writes_directly
        self._machine = machine
        self._arrays = arrays_of(devices, machine)
        self._sensors: list[Sensor] = sensors(devices, machine)
        self.interval_s = interval_s
        counted = list(snapshot(self._tested, machine).counters)
        self._kept = Intervals([sensor.name for sensor in self._sensors], counted, most)
        self._settings = SettingsWatch(devices, machine)
        self.limits = {sensor.name: sensor.limit_celsius for sensor in self._sensors if sensor.limit_celsius}

    @property
    def samples(self) -> list[Sample]:
        """The samples in order of time."""
        return self._kept.samples()

    @property
    def passing(self) -> list[TemporaryChange]:
        """Settings that changed and changed back."""
        return sorted(self._settings.seen, key=lambda change: change.from_s)

    def begin(self, moved: Traffic) -> None:
        """Call it when the load begins, before all other calls."""
        self._start = self._last = self._moment(moved)

    def look(self, moved: Traffic) -> None:
        """Call it often while the load runs; cheap before the second has passed."""
        self._settings.look(time.monotonic() - self._start.at_s)
        if time.monotonic() - self._last.at_s >= self.interval_s:
            self._take(moved)

    def end(self, moved: Traffic) -> None:
        """Call it when the load has ended."""
        self._settings.look(time.monotonic() - self._start.at_s)
        if time.monotonic() - self._last.at_s >= LEAST_S:
            self._take(moved)

    def close(self) -> None:
        """Close the files; no samples after this."""
        self._settings.close()

    def _take(self, moved: Traffic) -> None:
        now, then = self._moment(moved), self._last
        self._last = now
        if self._kept.add(self._sample(then, now)):
            self.interval_s *= 2

    def _moment(self, moved: Traffic) -> _Moment:
        return _Moment(
            at_s=time.monotonic(),
            cpu=cpu_times(self._machine),
            own_user_s=self._own_user_s(),
            disks=snapshot(self._tested, self._machine),
            fetched_bytes=fetched_bytes(self._machine),
            moved=moved,
            swapped=swapped_pages(self._machine),
            throttled=throttle_events(self._machine),
        )

    def _own_user_s(self) -> float:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        return own + (self._own.user_ticks(self._machine) / os.sysconf("SC_CLK_TCK") if self._own is not None else 0.0)

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
            array_actions={name: action for name, action in working.items() if action in WORKING},
            devices={name: _columns(change) for name, change in changes.items()},
        )

    def _others(
        self, changes: Mapping[str, DiskDelta], then: _Moment, now: _Moment, seconds: float
    ) -> tuple[float | None, float | None]:
        if self._own is not None or not self._tested or len(changes) < len(self._tested):
            return None, None
        read = sum(change.read_bytes for change in changes.values())
        written = sum(change.write_bytes for change in changes.values())
        own = _since(then.fetched_bytes, now.fetched_bytes)
        if own is None:
            own = now.moved.read_bytes - then.moved.read_bytes
        wrote = now.moved.write_bytes - then.moved.write_bytes
        return max(0, read - own) / seconds, max(0, written - wrote) / seconds if self._writes_directly else None


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
