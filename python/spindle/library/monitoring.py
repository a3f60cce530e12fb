"""`spindle.monitor`: the activity of the machine, interval by interval."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spindle.library.arguments import public
from spindle.library.options import within
from spindle.library.table import Table
from spindle.monitor import DISK, Interval, Selection, Summary, signals_kept, watch
from spindle.run.errors import Usage

if TYPE_CHECKING:
    from spindle.fleet.monitoring import FleetWatch
    from spindle.library.stores import Store

__all__ = ["LONGEST_S", "SHORTEST_S", "Monitor", "monitor", "signals_kept"]

SHORTEST_S = 0.05
"""Shortest interval: reading all counters takes milliseconds on a machine with many devices."""
LONGEST_S = 86_400.0
"""Longest interval: the counters wrap after 50 days of I/O time, which a busy queue reaches within days."""


class Monitor:
    """Iterate over it: each step waits for the end of an interval and gives its activity.

    An interval has `seconds`, `disks["sda"].columns()` (iostat's), `host` (vmstat's columns) and `cgroups`; None:
    unknown. The first begins when the iteration begins. Ctrl-C ends the iteration in good order.
    """

    def __init__(
        self,
        devices: Sequence[str],
        interval_s: float,
        count: int | None,
        *,
        cgroups: bool,
        store: Store | str | os.PathLike[str] | bool | None,
        fleet: FleetWatch | None = None,
    ) -> None:
        self._selection = Selection(devices if fleet is None else ())
        self._fleet = fleet
        self._devices, self._count, self._cgroups, self._store = devices, count, cgroups, store
        self.interval_s = interval_s
        """Length of an interval, s."""
        self.summary = Summary()
        """Mean and maximum of every column, over the intervals so far."""
        self.recording: str | None = None
        """Identity of the recording in the store, from its first interval on; None: nothing is recorded."""

    @property
    def lost(self) -> dict[str, str]:
        """Host that is watched no longer -> why."""
        return self._fleet.lost if self._fleet is not None else {}

    @property
    def aliases(self) -> dict[str, str]:
        """Name as it was given -> name of the device, where they differ."""
        return self._selection.aliases

    def __iter__(self) -> Iterator[Interval]:
        with self._opened() as store:
            recorder = None
            if store is not None:
                from spindle.library.recording import Recorder

                recorder = Recorder(store.raw, self.interval_s, self._devices)
            own = watch(self._selection, self.interval_s, self._count, cgroups=self._cgroups)
            for each in self._fleet or own:
                if recorder is not None:
                    recorder.add(each)
                    self.recording = recorder.id
                self.summary.add(each)
                yield each

    def to_table(self) -> Table:
        """Watch to the end, then return a row for each interval and device.

        Columns: `end_ns` (since the epoch), `seconds`, `device`, and those of iostat (its units: MB/s are 2^20 bytes/s,
        sizes KiB, times ms; None: unknown).
        """
        names = [column.name for column in DISK]
        rows: list[dict[str, Any]] = [
            {"end_ns": each.end_ns, "seconds": each.seconds, "device": name, **activity.columns()}
            for each in self
            for name, activity in each.disks.items()
        ]
        return Table({name: [row.get(name) for row in rows] for name in ("end_ns", "seconds", "device", *names)})

    def __repr__(self) -> str:
        return f"<Monitor of {', '.join(self._devices) or 'all disks'}: {self.summary.intervals} intervals>"

    def _opened(self) -> AbstractContextManager[Store | None]:
        """The store of the recording: the caller's own, or one that is closed at the end."""
        from spindle.library.stores import Store, open_store

        if self._store is None or self._store is False:
            return nullcontext(None)
        if isinstance(self._store, Store):
            return nullcontext(self._store)
        return open_store(None if self._store is True else self._store)


@public
def monitor(
    *devices: str | os.PathLike[str],
    interval: float = 1.0,
    count: int | None = None,
    cgroups: bool = True,
    store: Store | str | os.PathLike[str] | bool | None = None,
    hosts: str | os.PathLike[str] | None = None,
    agent: str | os.PathLike[str] | None = None,
) -> Monitor:
    """Watch disks, processors and control groups; nothing is opened or changed.

    `devices`: any name, or a file on them; none: all disks that ever did I/O. `interval`: s. `count`: number of
    intervals; None: until the caller stops, or Ctrl-C. `cgroups`: read the control groups too. `store`: record each
    interval there, on the disk before the next begins. `hosts`: a file of hosts (docs/reference/fleet.md), which are
    watched instead of this machine; devices are then `HOST:DEVICE`, or names on every host. `agent`: the binary for
    hosts without spindle-agent. Raises `spindle.Error`.
    """
    within(interval, "`interval=`", SHORTEST_S, LONGEST_S)
    if count is not None:
        within(count, "`count=`", 1, float("inf"))
    names = [os.fspath(each) for each in devices]
    fleet = _fleet(hosts, agent, names, interval, count) if hosts is not None else None
    if fleet is not None and store is not None and store is not False:
        raise Usage("`store=`: a recording is of one machine; with `hosts=`, give `output=`")
    return Monitor(names, interval, count, cgroups=cgroups, store=store, fleet=fleet)


def _fleet(
    hosts: str | os.PathLike[str],
    agent: str | os.PathLike[str] | None,
    names: Sequence[str],
    interval_s: float,
    count: int | None,
) -> FleetWatch:
    from spindle import __version__
    from spindle.fleet.hosts import read
    from spindle.fleet.monitoring import FleetWatch
    from spindle.library.fleets import agent_for

    found = read(Path(os.fspath(hosts)))
    return FleetWatch(found, names, interval_s, count, agent_for(agent, found), __version__)
