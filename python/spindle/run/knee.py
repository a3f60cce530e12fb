"""Where more concurrency stops to pay: the same load at 1, 2, 4 ... outstanding requests.

A subsystem that is saturated keeps its throughput and trades latency for concurrency, so the sweep ends when throughput
has stopped growing, and the knee is the least concurrency that reaches nearly all of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from spindle.result.record import Knee, KneePoint, Level, RunRecord, Verdict
from spindle.run.bench import Bench
from spindle.run.errors import Usage
from spindle.run.modelled import ModelledBench
from spindle.run.resolve import Resolved

NEARLY_ALL = 0.95
"""Share of the highest throughput that the knee reaches."""
GROWTH = 1.05
"""A doubling of concurrency that gains less than 5 % has not paid."""
PATIENCE = 2
"""Steps without growth before the sweep ends: one may be bad luck."""
LARGEST = 2048
"""The largest concurrency people have tried on such systems."""
STEP_SECONDS = 5.0
"""Length of a step unless another one is asked for."""


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    knee: Knee
    runs: list[RunRecord]
    stopped: bool


def sweep(
    bench: Bench | ModelledBench,
    resolved: Resolved,
    *,
    largest: int = LARGEST,
    on_point: Callable[[KneePoint], None] = lambda point: None,
) -> Sweep:
    """Double the concurrency until throughput stops growing."""
    paced = [stream.name for stream in resolved.spec.streams if stream.paced]
    if paced:
        raise Usage(
            f"--find-knee: stream {paced[0]} is bound by its rate or think time, not by concurrency; "
            "give a workload without rate, rate limit and think time"
        )
    points: list[KneePoint] = []
    runs: list[RunRecord] = []
    best, flat, per_stream = 0.0, 0, 1
    while per_stream <= largest:
        step = resolved.with_overrides(concurrency(per_stream))
        total = step.spec.outstanding
        measured = bench.measure(step, f"{resolved.spec.name} with {total} outstanding")
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
    """Options for so many outstanding requests of each stream, spread over the CPUs."""
    workers = 1
    while workers * 2 <= min(outstanding, os.cpu_count() or 1):
        workers *= 2
    return [("workers", str(workers)), ("depth", str(outstanding // workers))]


def point_of(record: RunRecord, outstanding: int) -> KneePoint:
    """One step of a sweep from its run."""
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
    )


def knee_of(points: list[KneePoint]) -> Knee:
    """The knee of a series of points in order of concurrency."""
    best = max((point.bytes_per_s for point in points), default=0.0)
    if best <= 0:
        return Knee(points=points, knee=None, levelled_off=False)
    knee = next(point for point in points if point.bytes_per_s >= NEARLY_ALL * best)
    tail = points[points.index(knee) :]
    levelled_off = len(tail) > PATIENCE or (
        len(points) > 1 and points[-1].bytes_per_s < points[-2].bytes_per_s * GROWTH
    )
    return Knee(points=points, knee=knee.outstanding, levelled_off=levelled_off)


def verdicts(knee: Knee, stopped: bool) -> list[Verdict]:
    """About the sweep as a whole."""
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
                advice="give it more time: --seconds",
            )
        )
    elif not knee.levelled_off:
        last = knee.points[-1].outstanding
        found.append(
            Verdict(
                check="knee",
                level=Level.WARN,
                evidence=f"throughput still grew at {last} outstanding requests",
                advice="the knee lies beyond the sweep",
                numbers={"outstanding": float(last)},
            )
        )
    return found
