"""Shapes of what a search finds: the highest throughput within a bound on latency, and the curve of latency over rate.

Times are ns, rates requests a second of all streams together, fsyncs apart.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from spindle.result import units

RunId = Annotated[
    str,
    Meta(
        pattern="^([0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}|model-[0-9a-f]{16})$",
        description="time of the start and six random digits; of a modelled run a digest of what was asked",
    ),
]


class Bound(Struct, frozen=True, kw_only=True):
    """A bound on latency: so large a share of the requests must not take longer, or their mean."""

    operation: Literal["all", "read", "write", "trim", "zero", "fsync"]
    """`all`: every request that moves or frees data."""
    percentile: Annotated[float, Meta(gt=0, le=100)] | None
    """None: the mean."""
    limit_ns: int

    @property
    def figure(self) -> str:
        """`p99 of reads`."""
        name = "mean" if self.percentile is None else f"p{self.percentile:g}"
        return name if self.operation == "all" else f"{name} of {OPERATIONS[self.operation]}"

    @property
    def asked(self) -> str:
        """As on the command line: `read:p99:5000000ns`."""
        figure = "mean" if self.percentile is None else f"p{self.percentile!r}"
        return f"{'' if self.operation == 'all' else f'{self.operation}:'}{figure}:{self.limit_ns}ns"

    @property
    def words(self) -> str:
        """`p99 of reads at most 5.00 ms`."""
        return f"{self.figure} at most {units.duration(self.limit_ns)}"


OPERATIONS = {"read": "reads", "write": "writes", "trim": "trims", "zero": "zeroings", "fsync": "fsyncs"}


class Seen(Struct, frozen=True, kw_only=True):
    """One bound at one point."""

    latency_ns: float | None
    """The percentile or mean, of all runs of the point together; None: no such request."""
    over: float | None
    """Share of the requests that took longer than the limit; None: a mean is bounded."""
    low: float
    """95 % confidence interval of the share over the limit, or of the mean, ns."""
    high: float
    decision: Literal["held", "failed", "undecided"]


Decision = Literal["held", "failed", "undecided"]


class TargetPoint(Struct, frozen=True, kw_only=True):
    """One load of the search, run as often as it took to decide."""

    value: float
    """Requests outstanding, or requests a second asked for."""
    iops: float
    bytes_per_s: float
    mean_latency_ns: float
    seen: list[Seen]
    """In the order of the bounds."""
    kept_up: bool
    """Open loop: whether as many requests were served as arrived. If not, the bounds do not hold for long."""
    decision: Decision
    """`held`: all bounds; `undecided`: too near to tell, taken as not held."""
    runs: list[RunId]
    requests: int = 0
    """Of all its runs."""


class Capacity(Struct, frozen=True, kw_only=True):
    """The most a closed loop reached: what rates are measured by."""

    iops: float
    bytes_per_s: float
    outstanding: int


class TargetSearch(Struct, frozen=True, kw_only=True):
    """The highest throughput at which bounds on latency hold."""

    bounds: list[Bound]
    variable: Literal["depth", "rate"]
    """What was varied: requests outstanding (closed loop), or their rate (open loop)."""
    points: list[TargetPoint]
    """In the order of `value`."""
    held: float | None
    """Largest value at which all bounds held; None: not even the least."""
    failed: float | None
    """The next value above it at which they did not, or could not be said to; None: none was found."""
    outcome: Literal["bracketed", "none-held", "never-failed", "generator", "interrupted", "nothing"]
    monotone: bool
    """Whether no bound failed below a value at which all held."""
    capacity: Capacity | None = None
    """Search over rates: where the rates come from."""

    def at(self, value: float | None) -> TargetPoint | None:
        """The point of a value."""
        return next((point for point in self.points if point.value == value), None)


class CurvePoint(Struct, frozen=True, kw_only=True):
    """One open-loop run."""

    offered_iops: float
    """Requests a second that were to start."""
    iops: float
    """That were completed."""
    bytes_per_s: float
    mean_latency_ns: float | None
    """From the intended start to completion, all requests together."""
    p50_latency_ns: int | None
    p99_latency_ns: int | None
    p999_latency_ns: int | None
    max_lag_ns: int
    """Largest lag of an issue behind its intended start."""
    saturated: bool
    """Fewer were served than arrived, or the backlog grew throughout: latencies depend on the length of the run."""
    run: RunId


class Curve(Struct, frozen=True, kw_only=True):
    """Latency over throughput in open loop."""

    points: list[CurvePoint]
    """In the order of the offered rate."""
    carried: float | None
    """Highest offered rate below saturation."""
    saturated: float | None
    """Lowest offered rate at which it was saturated; None: none of them saturates it."""
    slots: int
    """Requests that may be outstanding at once; later ones wait their turn, and their wait counts."""
    capacity: Capacity | None = None
    """The most a closed loop reached, where the rates were chosen from it."""
