"""The knee: the point from which more concurrency does not pay, with the same load at 1, 2, 4 ... outstanding requests.

A saturated system keeps its throughput and trades latency for concurrency. So the sweep ends when throughput stops
growing, and the knee is the lowest concurrency that reaches nearly all of it.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from spindle.result.record import Knee, KneePoint, Level, RunRecord, Verdict
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import Measurer

NEARLY_ALL = 0.95
"""Share of the highest throughput that the knee reaches."""
GROWTH = 1.05
"""A doubling of concurrency that gains less than 5 % does not pay."""
PATIENCE = 2
"""Steps without growth before the sweep ends: one may be an exception."""
FEWEST = 8
"""Fewest whole intervals of a step for an estimate of its error."""
WHOLE = 0.9
"""Share of an interval from which on it counts."""
STRONGEST = 0.9
DRAWS = 2000
LARGEST = 2048
"""The largest concurrency in common use."""
STEP_SECONDS = 5.0
"""Default length of a step."""


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    knee: Knee
    runs: list[RunRecord]
    stopped: bool


def sweep(
    runner: Measurer,
    resolved: ResolvedWorkload,
    *,
    largest: int = LARGEST,
    on_point: Callable[[KneePoint], None] = lambda point: None,
) -> Sweep:
    """Double the concurrency until throughput stops growing."""
    paced = [stream.name for stream in resolved.spec.streams if stream.paced]
    if paced:
        raise Usage(
            f"`find_knee=`: stream {paced[0]} is bound by its rate or think time, not by concurrency; "
            "give a workload without rate, rate limit and think time"
        )
    points: list[KneePoint] = []
    runs: list[RunRecord] = []
    best, flat, per_stream = 0.0, 0, 1
    while per_stream <= largest:
        step = resolved.with_overrides(concurrency(per_stream))
        total = step.spec.outstanding
        measured = runner.measure(step, f"{resolved.spec.name} with {total} outstanding")
        runs.append(measured.record)
        points.append(point_of(measured.record, total))
        on_point(points[-1])
        if measured.stopped:
            return Sweep(knee_of(points[:-1] or points), runs, stopped=True)
        if measured.record.figures.requests == 0 or any(
            verdict.check == "interrupted" for verdict in measured.record.verdicts
        ):
            break
        flat = flat + 1 if points[-1].bytes_per_s < GROWTH * best else 0
        best = max(best, points[-1].bytes_per_s)
        if flat >= PATIENCE:
            break
        per_stream *= 2
    return Sweep(knee_of(points), runs, stopped=False)


def concurrency(outstanding: int) -> list[tuple[str, str]]:
    """Options for that many outstanding requests of each stream, spread over the CPUs."""
    workers = 1
    while workers * 2 <= min(outstanding, os.cpu_count() or 1):
        workers *= 2
    return [("workers", str(workers)), ("depth", str(outstanding // workers))]


def point_of(record: RunRecord, outstanding: int) -> KneePoint:
    """Make a step of a sweep from its run."""
    tails = [
        tail
        for stream in record.figures.streams
        for _, op in stream.ops()
        if (tail := op.latency.percentile(99.0)) is not None
    ]
    return KneePoint(
        outstanding=outstanding,
        iops=record.figures.iops,
        bytes_per_s=record.figures.bytes_per_s,
        mean_latency_ns=record.figures.mean_latency_ns() or 0.0,
        p99_latency_ns=max(tails, default=None),
        run=record.id,
        bytes_per_s_error=_error(record),
    )


def _error(record: RunRecord) -> float | None:
    """Standard error of the mean throughput, from the whole intervals; correlated neighbours count for less (AR(1))."""
    figures = record.figures
    values = [
        sum(stream.read_bytes + stream.write_bytes for stream in interval.streams) / (interval.length_ns / 1e9)
        for interval in figures.series
        if interval.length_ns >= WHOLE * figures.interval_ns
    ]
    n = len(values)
    if n < FEWEST:
        return None
    mean = fmean(values)
    squares = sum((value - mean) ** 2 for value in values)
    if squares <= 0:
        return 0.0
    alike = sum((one - mean) * (other - mean) for one, other in pairwise(values)) / squares
    rho = min(max(alike + 1 / n, 0.0), STRONGEST)
    return math.sqrt(squares / (n - 1) / n * (1 + rho) / (1 - rho))


def knee_of(points: list[KneePoint]) -> Knee:
    """The knee of a series of points in order of concurrency."""
    best = max((point.bytes_per_s for point in points), default=0.0)
    if best <= 0:
        return Knee(points=points, knee=None, levelled_off=False)
    knee = _at_knee(points, [point.bytes_per_s for point in points])
    tail = points[points.index(knee) :]
    levelled_off = len(tail) > PATIENCE or (
        len(points) > 1 and points[-1].bytes_per_s < points[-2].bytes_per_s * GROWTH
    )
    return Knee(points=points, knee=knee.outstanding, knee_range=_range(points), levelled_off=levelled_off)


def _at_knee(points: Sequence[KneePoint], rates: Sequence[float]) -> KneePoint:
    """The lowest concurrency that reaches nearly all, at these rates."""
    enough = NEARLY_ALL * max(rates)
    return next(point for point, rate in zip(points, rates, strict=True) if rate >= enough)


def _range(points: Sequence[KneePoint]) -> tuple[int, int] | None:
    """Range of the knee in 95 % of draws of all rates from their errors (parametric bootstrap: Efron and Tibshirani,
    An Introduction to the Bootstrap, 1993).
    """
    errors = [point.bytes_per_s_error for point in points]
    if any(error is None for error in errors):
        return None
    draw = random.Random(0)
    found = sorted(
        _at_knee(
            points,
            [point.bytes_per_s + (error or 0.0) * _student(draw) for point, error in zip(points, errors, strict=True)],
        ).outstanding
        for _ in range(DRAWS)
    )
    return found[round(0.025 * (DRAWS - 1))], found[round(0.975 * (DRAWS - 1))]


def _student(draw: random.Random) -> float:
    """Student's t with the degrees of freedom of the shortest series."""
    return draw.gauss(0, 1) / math.sqrt(draw.gammavariate((FEWEST - 1) / 2, 2.0) / (FEWEST - 1))


def verdicts(knee: Knee, stopped: bool) -> list[Verdict]:
    """Verdicts on the sweep as a whole."""
    found = []
    if stopped:
        found.append(
            Verdict(
                check="interrupted",
                level=Level.INVALID,
                evidence=f"stopped after {len(knee.points)} steps: the sweep is partial",
                advice="run it again to its end",
                numbers={"steps": float(len(knee.points))},
            )
        )
    if knee.knee is None:
        found.append(
            Verdict(
                check="knee",
                level=Level.INVALID,
                evidence="nothing was measured",
                advice="give it more time: `seconds=`",
            )
        )
    elif not knee.levelled_off:
        last = knee.points[-1].outstanding
        found.append(
            Verdict(
                check="knee",
                level=Level.WARN,
                evidence=f"throughput still grew at {last} outstanding requests",
                advice="the knee is beyond the sweep",
                numbers={"outstanding": float(last)},
            )
        )
    return found
