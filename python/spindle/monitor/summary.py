"""Mean and maximum of every column, over all intervals.

The mean of a device's column is computed over the whole time: an await is the total wait divided by all requests, not
the mean of the intervals' awaits. All other means are weighted with the length of the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spindle.host.diskstats import DiskDelta

from .disks import Disk, added
from .interval import Activity, Interval, Values


@dataclass(frozen=True)
class Extent:
    """Mean and maximum of one column; None: never known."""

    mean: float | None
    maximum: float | None


class GroupOnDevice(NamedTuple):
    """A control group on a device."""

    group: str
    device: str


@dataclass
class _Device:
    disk: Disk
    delta: DiskDelta | None = None
    most: Values = field(default_factory=dict)


@dataclass
class _Weighted:
    seconds: dict[str, float] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    most: Values = field(default_factory=dict)

    def add(self, values: Values, seconds: float) -> None:
        for name, value in values.items():
            if value is not None:
                self.seconds[name] = self.seconds.get(name, 0.0) + seconds
                self.sums[name] = self.sums.get(name, 0.0) + value * seconds
        _raise(self.most, values)

    def extents(self, over_s: float | None = None) -> dict[str, Extent]:
        """`over_s`: time without values counts as zeros."""
        return {name: Extent(self._mean(name, over_s), most) for name, most in self.most.items()}

    def _mean(self, name: str, over_s: float | None) -> float | None:
        return self.sums[name] / (over_s or self.seconds[name]) if name in self.sums else None


def _raise(most: Values, values: Values) -> None:
    for name, value in values.items():
        known = most.get(name)
        most[name] = value if known is None else known if value is None else max(known, value)


class Summary:
    """Adds up intervals; its size does not grow with their number."""

    def __init__(self) -> None:
        self.intervals = 0
        self.seconds = 0.0
        self._disks: dict[str, _Device] = {}
        self._machines: dict[str, _Weighted] = {}
        self._cgroups: dict[GroupOnDevice, _Weighted] = {}

    def add(self, interval: Interval) -> None:
        """Add one interval."""
        self.intervals += 1
        self.seconds += interval.seconds
        for name, activity in interval.disks.items():
            device = self._disks.setdefault(name, _Device(activity.disk))
            _raise(device.most, activity.columns())
            if activity.delta is not None:
                device.disk = activity.disk
                device.delta = activity.delta if device.delta is None else added(device.delta, activity.delta)
        for name, values in interval.machines.items():
            self._machines.setdefault(name, _Weighted()).add(values, interval.seconds)
        for rates in interval.cgroups or []:
            key = GroupOnDevice(rates.group, rates.device)
            self._cgroups.setdefault(key, _Weighted()).add(rates.columns(), interval.seconds)

    @property
    def disks(self) -> dict[str, dict[str, Extent]]:
        """Device -> column -> extent. Time when a device was absent or unreadable does not count."""
        found = {}
        for name, device in self._disks.items():
            mean = Activity(device.delta, device.disk).columns()
            found[name] = {column: Extent(mean[column], most) for column, most in device.most.items()}
        return found

    @property
    def machines(self) -> dict[str, dict[str, Extent]]:
        """Host -> column -> extent; one machine has the name ''."""
        return {name: found.extents() for name, found in self._machines.items()}

    @property
    def host(self) -> dict[str, Extent]:
        """Column -> extent, of one machine."""
        return self.machines.get("", {})

    @property
    def cgroups(self) -> dict[GroupOnDevice, dict[str, Extent]]:
        """Group on a device -> column -> extent; the group's idle intervals count. The busiest first."""
        found = {key: weighted.extents(self.seconds) for key, weighted in self._cgroups.items()}
        return dict(sorted(found.items(), key=lambda item: -_bytes_per_s(item[1])))


def _bytes_per_s(extents: dict[str, Extent]) -> float:
    return sum(extents[name].mean or 0.0 for name in ("rkB/s", "wkB/s", "dkB/s"))
