"""Checks that the figures agree with each other."""

from __future__ import annotations

from spindle.base import units
from spindle.result.figures import EndedByError, Figures, Stream
from spindle.result.record import Level, RunRecord, Verdict

TOLERANCE = 0.05
"""Largest difference that rounding and the run's edges explain."""


def littles_law(record: RunRecord) -> list[Verdict]:
    """Little 1961: outstanding = rate x time in the system. The two sides are counted independently of each other."""
    figures = record.figures
    if figures.generator.timestamps != "request" or figures.requests == 0:
        return []
    if any(stream.errors for stream in figures.streams) or isinstance(figures.ended_by, EndedByError):
        return []  # a request that failed was outstanding, but has no latency
    counted = sum(stream.mean_outstanding for stream in figures.streams)
    implied = sum(_implied_outstanding(stream) for stream in figures.streams)
    if counted <= 0:
        return []
    difference = implied / counted - 1
    # Requests that are under way at the ends of the measured time count on one side only.
    edges = 2 * record.workload.outstanding / figures.requests + _late_outstanding(figures) / counted
    numbers = {"counted": counted, "implied": implied, "difference": difference}
    seen = f"IOPS x mean latency gives {units.significant(implied)}, counted were {units.significant(counted)}"
    if abs(difference) > TOLERANCE + edges:
        return [
            Verdict(
                check="littles-law",
                level=Level.INVALID,
                evidence=f"{seen} outstanding requests: {abs(difference) * 100:.1f} % apart",
                advice="rates and latencies contradict each other: the clock or the load was disturbed; run it again",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="littles-law",
            level=Level.OK,
            evidence=f"{seen} outstanding requests",
            numbers=numbers,
        )
    ]


def _late_outstanding(figures: Figures) -> float:
    """Most that requests in flight at the end add to the outstanding ones; their latencies are not counted."""
    return sum(
        stream.late.requests * min(1.0, stream.late.max_latency_ns / max(1, stream.measured_ns))
        for stream in figures.streams
    )


def _implied_outstanding(stream: Stream) -> float:
    ops = [op for _, op in stream.ops()]
    if stream.fsync is not None:
        ops.append(stream.fsync)
    return sum(op.iops * (op.service or op.latency).mean_ns / 1e9 for op in ops)
