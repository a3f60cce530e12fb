"""Types of search results: the highest throughput within a bound on latency, and the curve of latency over rate.

Times are ns; rates are requests a second of all streams together, without fsyncs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from spindle.base import units

RunId = Annotated[
    str,
    Meta(
        pattern="^([0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}|model-[0-9a-f]{16})$",
        description="time of the start and six random digits; of a modelled run a digest of the request",
    ),
]


class Bound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bound on latency: a percentile or the mean must not exceed it."""

    operation: Literal["all", "read", "write", "trim", "zero", "fsync"]
    """`all`: every request that moves or frees data."""
    percentile: Annotated[float, Meta(gt=0, le=100)] | None
    """None: the mean."""
    limit_ns: int
    stream: str | None = None
    """The stream whose requests count; None: those of all."""

    @property
    def figure(self) -> str:
        """`p99 of reads`, `p99 of log writes`."""
        name = "mean" if self.percentile is None else f"p{self.percentile:g}"
        requests = [] if self.operation == "all" else [OPERATIONS[self.operation]]
        words = [*([self.stream] if self.stream is not None and [self.stream] != requests else []), *requests]
        return f"{name} of {' '.join(words)}" if words else name

    @property
    def asked(self) -> str:
        """As on the command line: `read:p99:5000000ns`, `log/write:p99:5000000ns`."""
        figure = "mean" if self.percentile is None else f"p{self.percentile!r}"
        operation = "" if self.operation == "all" and self.stream is None else f"{self.operation}:"
        return f"{'' if self.stream is None else f'{self.stream}/'}{operation}{figure}:{self.limit_ns}ns"

    @property
    def words(self) -> str:
        """`p99 of reads at most 5.00 ms`."""
        return f"{self.figure} at most {units.duration(self.limit_ns)}"


OPERATIONS = {"read": "reads", "write": "writes", "trim": "trims", "zero": "zeroings", "fsync": "fsyncs"}


class BoundCheck(Struct, frozen=True, kw_only=True):
    """The check of one bound at one point."""

    latency_ns: float | None
    """The percentile or mean over all runs of the point; None: no such request."""
    fraction_over: float | None
    """Share of the requests that took longer than the limit; None: the bound is on a mean."""
    low: float
    """95 % confidence interval of the share over the limit, or of the mean, ns."""
    high: float
    decision: Literal["held", "failed", "undecided"]


Decision = Literal["held", "failed", "undecided"]


class TargetPoint(Struct, frozen=True, kw_only=True):
    """One load of the search, repeated until it was decided."""

    value: float
    """Outstanding requests, requests a second, or multiples of a need."""
    iops: float
    bytes_per_s: float
    mean_latency_ns: float
    checks: list[BoundCheck]
    """In the order of the bounds."""
    sustained: bool
    """Open loop: true if requests were served as fast as they arrived. Otherwise the bounds do not last."""
    decision: Decision
    """`held`: within all bounds; `undecided`: too close to a bound, treated as failed."""
    runs: list[RunId]
    requests: int = 0
    """Requests of all its runs."""


class Capacity(Struct, frozen=True, kw_only=True):
    """The highest throughput of a closed loop, the base of the rates."""

    iops: float
    bytes_per_s: float
    outstanding: int


class TargetSearch(Struct, frozen=True, kw_only=True):
    """The highest throughput at which bounds on latency hold."""

    bounds: list[Bound]
    variable: Literal["depth", "rate", "need"]
    """The variable: outstanding requests (closed loop), their rate (open loop), or multiples of a need (open loop)."""
    points: list[TargetPoint]
    """In the order of `value`."""
    held: float | None
    """Largest value within all bounds; None: not even the smallest."""
    failed: float | None
    """The next larger value that failed or was undecided; None: there was none."""
    outcome: Literal["bracketed", "none-held", "never-failed", "generator", "interrupted", "nothing"]
    monotone: bool
    """True if no bound failed below a value that held."""
    capacity: Capacity | None = None
    """Search over rates: the base of the rates."""

    def at(self, value: float | None) -> TargetPoint | None:
        """The point of a value."""
        return next((point for point in self.points if point.value == value), None)


class CurvePoint(Struct, frozen=True, kw_only=True):
    """One open-loop run."""

    offered_iops: float
    """Requested rate."""
    iops: float
    """Completion rate."""
    bytes_per_s: float
    mean_latency_ns: float | None
    """From the intended start to completion, all requests together."""
    p50_latency_ns: int | None
    p99_latency_ns: int | None
    p999_latency_ns: int | None
    max_lag_ns: int
    """Largest lag of an issue behind its intended start."""
    saturated: bool
    """True if fewer were served than arrived, or the backlog kept growing: latencies depend on the length of the
    run.
    """
    run: RunId


class Curve(Struct, frozen=True, kw_only=True):
    """Latency over throughput in open loop."""

    points: list[CurvePoint]
    """In order of the offered rate."""
    sustained_iops: float | None
    """Highest offered rate below saturation."""
    saturated_iops: float | None
    """Lowest offered rate that saturated it; None: none did."""
    max_outstanding: int
    """Most requests outstanding at once; later ones wait, and their wait counts."""
    capacity: Capacity | None = None
    """The highest throughput of a closed loop, if the rates were derived from it."""
