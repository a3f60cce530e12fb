"""The same load in open loop: requests start at a rate, no matter if earlier ones are complete."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spindle.base.numbers import written
from spindle.result.record import RunRecord
from spindle.result.search import Capacity
from spindle.result.workload import Open, WorkloadStream
from spindle.run import knee
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import Measurer

LARGEST = 256
"""Largest number of outstanding requests in the closed loop."""
LEAST_SLOTS = 64
"""Fewest possible outstanding requests in open loop."""
MOST_SLOTS = 2048
LEAST_SHARE = 1e-4
"""A stream with a smaller share of the requests still gets a rate."""
SHORT = 0.97
"""Served over offered rate below which a target falls behind."""
DEVIATIONS = 3.0
"""Most standard deviations between the number of random arrivals and its mean."""
GROWING = 0.02
"""A latency that grows faster than this, in seconds a second, is that of an endless queue."""
EDGES = 2
FEWEST = 5
"""Fewest intervals in which growth is distinguishable from chance."""


@dataclass(frozen=True)
class Shares:
    """The split of a rate over the streams."""

    capacity: Capacity | None
    by_stream: dict[str, float]
    slots: int
    spacing: str | None = None
    """Spacing of the requests: `constant` or `poisson`; None: the workload's."""


def refuse_paced(resolved: ResolvedWorkload, option: str, *, open_loop: bool) -> None:
    """Raise Usage for a stream with another bound on its rate: it cannot be searched."""
    for stream in resolved.spec.streams:
        bound = stream.rate_limit is not None or stream.think is not None
        if bound or (not open_loop and isinstance(stream.arrival, Open)):
            wrong = "rate limit and think time" if open_loop else "rate, rate limit and think time"
            raise Usage(
                f"`{option}=`: stream {stream.name} is bound by its own pace; give a workload without {wrong}"
                + ("" if bound else ", or search over rates: `search=` rate")
            )


def shares_of(
    runner: Measurer,
    resolved: ResolvedWorkload,
    runs: list[RunRecord],
    *,
    measure: bool = True,
    spacing: str | None = None,
) -> Shares | None:
    """The share of each stream in a rate: from its own rates, or from a closed-loop run.

    None: a person stopped it, or nothing was measured.
    """
    spec = resolved.spec
    rates = {s.name: s.arrival.rate_iops for s in spec.streams if isinstance(s.arrival, Open)}
    if rates and len(rates) < len(spec.streams):
        closed = next(stream.name for stream in spec.streams if stream.name not in rates)
        raise Usage(f"stream {closed} has no rate while others have one; give all streams a rate, or none")
    if rates:
        whole = sum(rates.values())
        slots = max(LEAST_SLOTS * len(spec.streams), spec.outstanding)
        return Shares(None, {name: rate / whole for name, rate in rates.items()}, slots, spacing)
    if not measure:
        even = 1 / len(spec.streams)
        slots = max(LEAST_SLOTS, spec.outstanding)
        return Shares(None, {stream.name: even for stream in spec.streams}, slots, spacing)
    swept = knee.sweep(runner, resolved, largest=LARGEST)
    runs.extend(swept.runs)
    best = max(swept.knee.points, key=lambda point: point.iops, default=None)
    if swept.stopped or best is None or best.iops <= 0:
        return None
    record = next(run for run in swept.runs if run.id == best.run)
    capacity = Capacity(iops=best.iops, bytes_per_s=best.bytes_per_s, outstanding=best.outstanding)
    parts = {stream.name: max(stream.iops / best.iops, LEAST_SHARE) for stream in record.figures.streams}
    return Shares(capacity, parts, min(MOST_SLOTS, max(LEAST_SLOTS, 2 * best.outstanding)), spacing)


def at_rate(resolved: ResolvedWorkload, shares: Shares, iops: float) -> ResolvedWorkload:
    """The load in open loop at this rate, with room for as many requests as the target can take."""
    named = len(resolved.spec.streams) > 1
    per_stream = max(1, shares.slots // len(resolved.spec.streams))
    options = knee.concurrency(per_stream)
    for name, part in shares.by_stream.items():
        options.append((f"{name}.rate" if named else "rate", f"{written(iops * part)} IOPS"))
    if shares.spacing is not None:
        options.append(("spacing", shares.spacing))
    return resolved.with_overrides(options)


def keeps_up(record: RunRecord) -> bool:
    """True if each stream serves as many requests as arrive, and its queue does not grow during the whole run."""
    return not behind(record)


def behind(record: RunRecord) -> list[str]:
    """Names of the streams with a rate that fall behind it."""
    return [
        stream.name
        for index, stream in enumerate(record.workload.streams)
        if isinstance(stream.arrival, Open) and not _stream_keeps_up(record, index, stream, stream.arrival)
    ]


def _stream_keeps_up(record: RunRecord, index: int, asked: WorkloadStream, arrival: Open) -> bool:
    figures = record.figures
    seconds = max(figures.measured_s, 1e-9)
    offered = arrival.rate_iops
    chance = DEVIATIONS * math.sqrt(offered * seconds) / seconds if arrival.spacing == "poisson" else 0.0
    edge = min(asked.workers * asked.depth / seconds / 2, 0.01 * offered)
    # One request at each end may be uncounted, which is a large share of few arrivals.
    edge = max(edge, EDGES / seconds)
    if figures.streams[index].iops < SHORT * offered - chance - edge:
        return False
    return not _grows(record, index)


def _grows(record: RunRecord, index: int) -> bool:
    """True if the mean latencies of a stream's intervals rise like those of an endless queue (least squares)."""
    figures = record.figures
    points = [
        (
            (interval.start_ns + interval.length_ns / 2) / 1e9,
            (stream.read_latency_ns + stream.write_latency_ns) / requests / 1e9,
        )
        for interval in figures.series
        if interval.length_ns * 2 >= figures.interval_ns
        and (requests := (stream := interval.streams[index]).reads + stream.writes) > 0
    ]
    if len(points) < FEWEST:
        return False
    n = len(points)
    middle, level = sum(at for at, _ in points) / n, sum(value for _, value in points) / n
    spread = sum((at - middle) ** 2 for at, _ in points)
    slope = sum((at - middle) * (value - level) for at, value in points) / spread
    residual = sum((value - level - slope * (at - middle)) ** 2 for at, value in points) / (n - 2)
    return slope - DEVIATIONS * math.sqrt(residual / spread) > GROWING
