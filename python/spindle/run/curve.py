"""Latency over throughput in open loop: the view of users whose requests do not wait for the target.

A closed loop slows down with its target and so hides the effect of waiting; here requests start at a rate. Beyond
saturation the backlog grows during the whole run: the length of the run limits it, as a waiting request is only a
number, and latencies there are marked as depending on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spindle import _core
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.search import Curve, CurvePoint
from spindle.run import openloop
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import Measurer

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5)
"""Shares of the closed loop's highest rate."""
BEYOND = 2
"""Saturated points after which the curve ends."""
PERCENTILES = (50.0, 99.0, 99.9)
STEP_SECONDS = 5.0
"""Default length of a run."""
MOST_RATES = 100


@dataclass(frozen=True)
class CurveResult:
    """A finished curve."""

    curve: Curve
    runs: list[RunRecord]
    stopped: bool


def parse_rates(text: str) -> tuple[float, ...]:
    """`500,1000,2k` -> requests a second, ascending. Raises Usage."""
    found = []
    for part in text.split(","):
        word = part.strip()
        factor = {"k": 1e3, "m": 1e6}.get(word[-1:].lower(), 1.0)
        try:
            rate = float(word[:-1] if factor > 1 else word) * factor
        except ValueError:
            rate = 0.0
        if not 0 < rate < 1e9:
            raise Usage(f"`rates=`: {word!r} is not requests a second; write for example 500,1000,2k")
        found.append(rate)
    if len(found) > MOST_RATES:
        raise Usage(f"`rates=`: {len(found)} rates are too many; at most {MOST_RATES}")
    return tuple(sorted(set(found)))


def curve(
    runner: Measurer,
    resolved: ResolvedWorkload,
    rates: Sequence[float] = (),
    *,
    spacing: str | None = None,
    on_point: Callable[[CurvePoint], None] = lambda point: None,
) -> CurveResult:
    """Open-loop runs at these rates, or at shares of the closed loop's rate. Raises Usage."""
    openloop.refuse_paced(resolved, "curve", open_loop=True)
    runs: list[RunRecord] = []
    shares = openloop.shares_of(runner, resolved, runs, measure=not rates, spacing=spacing)
    if shares is None:
        empty = Curve(points=[], sustained_iops=None, saturated_iops=None, max_outstanding=0)
        return CurveResult(empty, runs, stopped=bool(runs) and runs[-1].figures.is_partial)
    whole = (
        shares.capacity.iops
        if shares.capacity
        else sum(getattr(stream.arrival, "rate_iops", 0.0) for stream in resolved.spec.streams)
    )
    offered = list(rates) or [share * whole for share in SHARES]
    points: list[CurvePoint] = []
    stopped = False
    for rate in offered:
        step = openloop.at_rate(resolved, shares, rate)
        measured = runner.measure(step, f"{resolved.spec.name} at {rate:.6g} requests/s")
        runs.append(measured.record)
        stopped = measured.stopped
        if measured.record.figures.is_partial:
            break
        points.append(point_of(measured.record, rate))
        on_point(points[-1])
        if not rates and sum(point.saturated for point in points) >= BEYOND:
            break
    saturated = min((point.offered_iops for point in points if point.saturated), default=None)
    below = [point.offered_iops for point in points if saturated is None or point.offered_iops < saturated]
    found = Curve(
        points=points,
        sustained_iops=max(below, default=None),
        saturated_iops=saturated,
        max_outstanding=shares.slots,
        capacity=shares.capacity,
    )
    return CurveResult(found, runs, stopped)


def point_of(record: RunRecord, offered: float) -> CurvePoint:
    """One point from its run."""
    figures = record.figures
    histograms = [op.latency.histogram for stream in figures.streams for _, op in stream.ops()]
    found = _core.histogram_percentiles(histograms, PERCENTILES)
    # With too few requests, a percentile is only the largest latency.
    p50, p99, p999 = [
        at if figures.requests * (1 - percentile / 100) >= 1 else None
        for percentile, at in zip(PERCENTILES, found or (None, None, None), strict=True)
    ]
    return CurvePoint(
        offered_iops=offered,
        iops=figures.iops,
        bytes_per_s=figures.bytes_per_s,
        mean_latency_ns=figures.mean_latency_ns(),
        p50_latency_ns=p50,
        p99_latency_ns=p99,
        p999_latency_ns=p999,
        max_lag_ns=max((stream.max_lag_ns for stream in figures.streams), default=0),
        saturated=not openloop.keeps_up(record),
        run=record.id,
    )


def verdicts(found: Curve, stopped: bool) -> list[Verdict]:
    """Verdicts on the curve as a whole."""
    if stopped:
        return [
            Verdict(
                check="interrupted",
                level=Level.INVALID,
                evidence=f"stopped after {len(found.points)} points: the curve is partial",
                advice="run it again to its end",
                numbers={"points": float(len(found.points))},
            )
        ]
    if not found.points:
        return [
            Verdict(
                check="curve",
                level=Level.INVALID,
                evidence="nothing was measured",
                advice="give it more time: `seconds=`",
            )
        ]
    if found.saturated_iops is None:
        last = found.points[-1].offered_iops
        return [
            Verdict(
                check="curve",
                level=Level.WARN,
                evidence=f"not saturated at {last:.6g} requests a second",
                advice="the limit is beyond the curve: give higher `rates=`",
                numbers={"offered_iops": last},
            )
        ]
    return []
