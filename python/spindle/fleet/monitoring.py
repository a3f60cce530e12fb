"""The activity of many hosts, interval by interval: their agents read the kernel's counters, all at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spindle.base.words import listed
from spindle.fleet.channel import Channel
from spindle.fleet.errors import HostError
from spindle.fleet.hosts import Host
from spindle.host.signals import noted
from spindle.monitor import Interval, Sample, between, disks, pressure, processors
from spindle.run.errors import Usage

PATIENCE_S = 5.0
"""Time for a host's counters, after which it counts as lost."""
_LOOK_S = 0.1


@dataclass
class _Watched:
    """One host, and its counters at the end of the last interval."""

    host: Host
    names: list[str]
    """Devices as they were asked for."""
    channel: Channel | None = None
    devices: list[str] = field(default_factory=list)
    """Those that it has, by its kernel's names."""
    before: Sample | None = None


@dataclass
class FleetWatch:
    """Iterate over it: intervals whose devices are named `host:device`. An ending signal ends the iteration in good
    order.

    `asked`: HOST:DEVICE, or DEVICE, watched on every host that has it; none: every disk that ever did I/O. Raises
    Usage, and HostError once no host is left.
    """

    hosts: Sequence[Host]
    asked: Sequence[str]
    interval_s: float
    count: int | None
    agent: Path | None
    """spindle-agent for hosts that have none."""
    version: str
    lost: dict[str, str] = field(default_factory=dict)
    """Host -> why it is no longer watched."""

    def __post_init__(self) -> None:
        known = [host.name for host in self.hosts]
        self._wanted = [_host_and_device(word) for word in self.asked]
        for host, _ in self._wanted:
            if host is not None and host not in known:
                raise Usage(f"{host}: no such host; there are {listed(known[:8])}")
        self._watched = [
            _Watched(one, [device for host, device in self._wanted if host in (None, one.name)]) for one in self.hosts
        ]
        self._told: set[str] = set()

    def __iter__(self) -> Iterator[Interval]:
        with noted() as stopped, asyncio.Runner() as runner:
            try:
                runner.run(self._begin())
                start, step, made = time.monotonic(), 0, 0
                while self.count is None or made < self.count:
                    step = max(step + 1, int((time.monotonic() - start) / self.interval_s) + 1)
                    if runner.run(_stopped_before(start + step * self.interval_s, stopped)):
                        return
                    yield runner.run(self._interval())
                    made += 1
            finally:
                runner.run(self._end())

    async def _begin(self) -> None:
        watched = [one for one in self._watched if one.names or not self.asked]
        await self._of_each(watched, self._connect)
        for host, device in self._wanted:
            among = [one for one in watched if host in (None, one.host.name)]
            if all(one.channel is not None and device not in one.names for one in among):
                where = "any host" if host is None else host
                raise Usage(f"{device}: no block device of {where}; leave it out to watch all disks")
        await self._of_each(self._open(), self._take)

    async def _connect(self, one: _Watched) -> None:
        one.channel = await Channel.open(one.host, self.agent if one.host.agent is None else None)
        one.channel.check_version(self.version)
        if not one.names:
            return
        await one.channel.order("devices", names=one.names)
        found = (await one.channel.report(PATIENCE_S)).get("found")
        if not isinstance(found, list) or len(found) != len(one.names):
            raise HostError(one.host.name, "its agent does not answer in order")
        one.names = [name for name, device in zip(one.names, found, strict=True) if device is not None]
        one.devices = [str(device) for device in found if device is not None]

    async def _take(self, one: _Watched) -> None:
        assert one.channel is not None
        await one.channel.order("sample")
        found = await one.channel.report(PATIENCE_S)
        try:
            one.before = _sample(found, one.devices if self.asked else None)
        except (KeyError, TypeError, AttributeError):
            raise HostError(one.host.name, "its agent does not answer in order") from None

    async def _interval(self) -> Interval:
        before = {one.host.name: one.before for one in self._open()}
        await self._of_each(self._open(), self._take)
        parts = {}
        for one in self._open():
            old = before[one.host.name]
            assert old is not None
            assert one.before is not None
            parts[one.host.name] = between(old, one.before)
        newly = {host: why for host, why in self.lost.items() if host not in self._told}
        self._told |= newly.keys()
        return _joined(parts, newly)

    async def _of_each(self, hosts: Sequence[_Watched], step: Callable[[_Watched], Awaitable[None]]) -> None:
        """Take the step on all of them at the same time; those that fail are lost."""

        async def carried_out(one: _Watched) -> None:
            try:
                await step(one)
            except HostError as error:
                self.lost[one.host.name] = error.why
                await _closed(one)

        await asyncio.gather(*(carried_out(one) for one in hosts))
        if not self._open():
            raise HostError(*next(iter(self.lost.items())))

    def _open(self) -> list[_Watched]:
        return [one for one in self._watched if one.channel is not None]

    async def _end(self) -> None:
        await asyncio.gather(*(_closed(one) for one in self._open()))


def _host_and_device(word: str) -> tuple[str | None, str]:
    """`db1:sda`; a path may have a colon of its own."""
    host, colon, device = word.partition(":")
    return (host, device) if colon and "/" not in host else (None, word)


async def _closed(one: _Watched) -> None:
    channel, one.channel = one.channel, None
    if channel is not None:
        await channel.close()


async def _stopped_before(due: float, stopped: Callable[[], bool]) -> bool:
    """Wait. Return True if a signal came first."""
    while not stopped() and (left := due - time.monotonic()) > 0:
        await asyncio.sleep(min(left, _LOOK_S))
    return stopped()


def _sample(found: Mapping[str, Any], names: Sequence[str] | None) -> Sample:
    """A report of counters (crates/agent/src/counters.rs), as of this machine. `names`: None: all disks."""
    counted, whole = disks.parse(found["diskstats"]), found["disks"]
    if names is None:
        picked = {name: disk for name, disk in counted.items() if name in whole and disk.ever_used}
    else:
        picked = {name: counted.get(name, disks.UNREADABLE) for name in names}
    return Sample(
        at_ns=found["at_ns"],
        wall_ns=found["wall_ns"],
        disks={name: replace(disk, diskseq=whole.get(name)) for name, disk in picked.items()},
        cpu=processors.parse(found["stat"]),
        pressure=pressure.parse(found["pressure"]),
        cgroups=None,
    )


def _joined(parts: Mapping[str, Interval], lost: dict[str, str]) -> Interval:
    """The intervals of all hosts as one, by this machine's clock. Rates are those of each host's own time."""
    return Interval(
        seconds=sum(part.seconds for part in parts.values()) / len(parts),
        end_ns=time.time_ns(),
        disks={f"{host}:{name}": one for host, part in parts.items() for name, one in part.disks.items()},
        host={},
        cgroups=None,
        uncounted=[],
        appeared=[f"{host}:{name}" for host, part in parts.items() for name in part.appeared],
        gone=[f"{host}:{name}" for host, part in parts.items() for name in part.gone],
        hosts={host: part.host for host, part in parts.items()},
        lost=lost,
    )
