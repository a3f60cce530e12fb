"""A requirement: the space, the loads with their bounds, and the limits. Times are ns, sizes bytes, shares 0 to 1."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""Key of a bound on latency -> percentile."""
LATENCIES = ("mean", *PERCENTILES)


class State(StrEnum):
    """The state of an array."""

    WHOLE = "whole"
    DEGRADED = "degraded"
    """One drive is missing."""
    REBUILDING = "rebuilding"
    """A new drive takes the place of the missing one."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load with its bounds."""

    name: str
    streams: str
    """JSON of its streams, as of a workload."""
    filesets: str = "[]"
    """JSON of its sets of files."""
    bounds: dict[State, dict[str, int]] = field(default_factory=dict)
    """State -> `mean`, `p99` ... -> most, ns, for each operation. A state that is missing has no bound at all."""
    least_iops: float | None = None
    """Least rate of a load without a rate of its own, requests/s."""
    least_bytes_per_s: float | None = None
    period: str | None = None
    """Time of day at which it runs; None: always."""
    apart_bytes: int | None = None
    """Size of an array of its own that it may get; None: it may not."""
    may_split: bool = False
    """True if its hot places may get an array of their own."""

    @property
    def hot(self) -> tuple[float, float]:
        """Shares of the places that are hot and of the requests that go there; of loads that may be split."""
        pattern = self.parsed()[0]["pattern"]
        return float(pattern["space"]), float(pattern["access"])

    def split(self, name: str, share: float) -> Load:
        """The part with `share` of its requests, even over its places."""
        streams = self.parsed()
        for stream in streams:
            stream["pattern"] = {"kind": "uniform"}
            stream["arrival"]["rate_iops"] *= share
        return replace(self, name=name, streams=json.dumps(streams), may_split=False)

    def parsed(self) -> list[dict[str, Any]]:
        """Its streams."""
        found: list[dict[str, Any]] = json.loads(self.streams)
        return found

    @property
    def rate_iops(self) -> float:
        """Requests that start in a second; 0: as many as its workers manage."""
        return float(sum(of["arrival"].get("rate_iops", 0.0) for of in self.parsed()))

    @property
    def is_checked_when_degraded(self) -> bool:
        """True if something is asked for in another state than whole."""
        return State.DEGRADED in self.bounds or State.REBUILDING in self.bounds


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Growth in a year, compound."""

    capacity: float = 0.0
    load: float = 0.0
    years: float = 0.0

    @property
    def capacity_factor(self) -> float:
        """Space at the end, as a multiple of that at the start."""
        return float((1 + self.capacity) ** self.years)

    @property
    def load_factor(self) -> float:
        """Rates at the end, as multiples of those at the start."""
        return float((1 + self.load) ** self.years)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of the whole machine; None: no limit."""

    budget: float | None = None
    """In the currency of the prices."""
    bays: int = 24
    watts: float | None = None
    yearly_loss: float | None = None
    """Most probability of losing data in a year."""
    rebuild_hours: float | None = None


@dataclass(frozen=True, kw_only=True)
class Space:
    """The choices. Empty: all."""

    drives: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    """Names as in `schemes.SCHEMES`."""
    chunks: tuple[int, ...] = (64 << 10, 256 << 10, 512 << 10, 1 << 20)
    schedulers: tuple[str, ...] = ("mq-deadline", "none")
    regions: tuple[float, ...] = (1.0, 0.5, 0.25)
    """Shares of each disk that are used, from its fast outer edge on."""
    spares: tuple[int, ...] = (0, 1, 2)
    filesystem: str = "xfs"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The need."""

    about: str = ""
    usable_bytes: int
    survive: int = 1
    """Drives of each array, any of them, that may fail without a loss."""
    loads: tuple[Load, ...]
    growth: Growth = field(default_factory=Growth)
    limits: Limits = field(default_factory=Limits)
    space: Space = field(default_factory=Space)
    seed: int = 1

    @property
    def needed_bytes(self) -> int:
        """Space at the end of the years."""
        return round(self.usable_bytes * self.growth.capacity_factor)
