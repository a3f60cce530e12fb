"""Does a bound on latency hold? From the counts of a load's histograms, with an interval that knows how noisy they are.

The share of requests over the limit gets Wilson's 95 % interval (J. Am. Stat. Assoc. 22 (1927) 209-212), for as many
independent requests as the load is worth: latencies of neighbours in time are alike, so their number is divided
by the design effect, the variance of the share from interval to interval, or from run to run, over that of independent
requests (L. Kish, Survey Sampling, 1965).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import fmean, variance

from spindle import _core
from spindle.result.buckets import bounds_ns
from spindle.result.figures import Interval, Latency, StreamInterval
from spindle.result.record import RunRecord
from spindle.result.search import Bound, BoundCheck, Decision
from spindle.run.errors import Usage

NORMAL_95 = 1.959963984540054
LEAST_OVER = 5
"""Requests over the limit from which on a percentile fails: fewer may be one disturbance."""
LEAST_REQUESTS = 30
"""Fewest requests for an interval of a mean."""
FEWEST = 4
"""Fewest intervals, or runs, for a variance."""
_STREAM = r"(?:([A-Za-z0-9_-]+)/)?"
_OPERATION = r"(?:(all|both|read|write|trim|zero|fsync)s?[:.])?"
_FIGURE = r"(mean|avg|max|p[0-9]{1,3}(?:\.[0-9]{1,6})?)"
_BOUND = re.compile(rf"{_STREAM}{_OPERATION}{_FIGURE}\s*(?:<=|[:=<])\s*(.+)")


def parse_bounds(texts: Sequence[str]) -> list[Bound]:
    """`p99:5ms`, `read:p99.9:10ms,write:mean:1ms` -> bounds. Raises Usage."""
    return [_parsed(part.strip()) for text in texts for part in text.split(",")]


def _parsed(text: str) -> Bound:
    example = "write for example p99:5ms, read:p99.9:20ms or write:mean:1ms"
    match = _BOUND.fullmatch(text)
    if match is None:
        raise Usage(f"`latency_target=`: {text!r} is not [[STREAM/]OPERATION:]FIGURE:TIME; {example}")
    stream, operation, figure, time = match.groups()
    try:
        limit_ns = _core.parse_duration(time)
    except _core.ConfigError as error:
        raise Usage(f"`latency_target=` {text}: {error}; {example}") from None
    percentile = None if figure in ("mean", "avg") else 100.0 if figure == "max" else float(figure[1:])
    if limit_ns <= 0 or (percentile is not None and not 0 < percentile <= 100):
        wrong = "the time must be above 0" if limit_ns <= 0 else f"{figure} is no percentile: above p0, at most p100"
        raise Usage(f"`latency_target=` {text}: {wrong}")
    wanted = "all" if operation in (None, "all", "both") else operation
    return Bound(operation=wanted, percentile=percentile, limit_ns=limit_ns, stream=stream)  # type: ignore[arg-type]


def seen(bound: Bound, records: Sequence[RunRecord]) -> BoundCheck:
    """Check a bound against the runs of one point, taken together."""
    latencies = [list(latencies_of(bound, record)) for record in records]
    parts = [latency for of_run in latencies for latency in of_run]
    count = sum(requests for requests, _ in parts)
    if count == 0:
        return BoundCheck(latency_ns=None, fraction_over=None, low=0.0, high=0.0, decision="undecided")
    return _of_mean(bound, records, parts) if bound.percentile is None else _of_share(bound, records, latencies)


def latencies_of(bound: Bound, record: RunRecord) -> Iterator[tuple[int, Latency]]:
    """(requests, latency) of each stream and operation of the bound."""
    for stream in record.figures.streams:
        if bound.stream not in (None, stream.name):
            continue
        if bound.operation == "fsync":
            if stream.fsync is not None:
                yield stream.fsync.requests, stream.fsync.latency
            continue
        for name, op in stream.ops():
            if bound.operation in ("all", name) and op.requests:
                yield op.requests, op.latency


def _of_share(bound: Bound, records: Sequence[RunRecord], runs: Sequence[Sequence[tuple[int, Latency]]]) -> BoundCheck:
    assert bound.percentile is not None
    allowed = 1 - bound.percentile / 100
    counts = [_over(bound, [latency for _, latency in run]) for run in runs]
    over, count = sum(part for part, _ in counts), sum(whole for _, whole in counts)
    share = over / count
    at = _core.histogram_percentiles([latency.histogram for run in runs for _, latency in run], [bound.percentile])[0]
    if bound.percentile == 100:  # one slow request is one too many, and no interval can rule one out
        decided: Decision = "held" if over == 0 else "failed"
        return BoundCheck(latency_ns=float(at), fraction_over=share, low=share, high=share, decision=decided)
    effect = max(_effect_of_intervals(bound, records), _effect([(k, n) for k, n in counts if n]))
    low, high = wilson(share, count / effect)
    decision: Decision = "held" if high <= allowed else "undecided"
    if low > allowed and over >= LEAST_OVER:
        decision = "failed"
    return BoundCheck(latency_ns=float(at), fraction_over=share, low=low, high=high, decision=decision)


def _over(bound: Bound, latencies: Sequence[Latency]) -> tuple[int, int]:
    """Requests over the limit, and all."""
    pairs = [pair for latency in latencies for pair in _core.histogram_counts(latency.histogram)]
    return sum(times for ns, times in pairs if ns > bound.limit_ns), sum(times for _, times in pairs)


def _of_mean(bound: Bound, records: Sequence[RunRecord], parts: Sequence[tuple[int, Latency]]) -> BoundCheck:
    count = sum(requests for requests, _ in parts)
    mean = sum(requests * latency.mean_ns for requests, latency in parts) / count
    squares = sum(requests * (latency.sdev_ns**2 + latency.mean_ns**2) for requests, latency in parts) / count
    error = math.sqrt(max(0.0, squares - mean * mean) * _effect_of_means(bound, records) / count)
    low, high = mean - NORMAL_95 * error, mean + NORMAL_95 * error
    decision: Decision = "held" if high <= bound.limit_ns else "failed" if low > bound.limit_ns else "undecided"
    if count < LEAST_REQUESTS:
        decision = "undecided"
    return BoundCheck(latency_ns=mean, fraction_over=None, low=max(0.0, low), high=high, decision=decision)


def wilson(share: float, count: float) -> tuple[float, float]:
    """95 % interval of a share among `count`."""
    square = NORMAL_95**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    # At the ends the differences are rounding alone.
    return max(0.0, middle - half) if share > 0 else 0.0, min(1.0, middle + half) if share < 1 else 1.0


def needed(bound: Bound) -> int:
    """Fewest requests for a bound to hold: with that many independent ones, none over the limit, the interval ends
    at the allowed share.
    """
    if bound.percentile is None:
        return LEAST_REQUESTS
    allowed = 1 - bound.percentile / 100
    return math.ceil(NORMAL_95**2 * (1 - allowed) / allowed) if allowed > 0 else 1


def _effect(counts: Sequence[tuple[float, float]]) -> float:
    """Variance of the share over parts (k of n each) against that of independent requests; at least 1."""
    whole = sum(n for _, n in counts)
    share = sum(k for k, _ in counts) / whole if whole else 0.0
    if len(counts) < FEWEST or not 0 < share < 1:
        return 1.0
    # Chi-square of homogeneity over its degrees of freedom.
    chi = sum((k - n * share) ** 2 / (n * share * (1 - share)) for k, n in counts)
    return max(1.0, chi / (len(counts) - 1))


def _effect_of_intervals(bound: Bound, records: Sequence[RunRecord]) -> float:
    """The design effect from the coarse counts of each interval: buckets that are over the limit with more than half
    count.
    """
    counts = []
    for record in records:
        for interval in record.figures.series:
            pairs = [pair for stream in _streams_of(bound, record, interval) for pair in stream.latency_counts]
            whole = sum(times for _, times in pairs)
            if whole:
                over = sum(times for bucket, times in pairs if sum(bounds_ns(bucket)) / 2 > bound.limit_ns)
                counts.append((float(over), float(whole)))
    return _effect(counts)


def _streams_of(bound: Bound, record: RunRecord, interval: Interval) -> list[StreamInterval]:
    """The streams of an interval that the bound is about."""
    names = [stream.name for stream in record.figures.streams]
    return [stream for name, stream in zip(names, interval.streams, strict=True) if bound.stream in (None, name)]


def _effect_of_means(bound: Bound, records: Sequence[RunRecord]) -> float:
    """The same for the mean latency, from interval to interval."""
    means, weights, squares = [], [], []
    for record in records:
        for interval in record.figures.series:
            streams = _streams_of(bound, record, interval)
            requests = sum(stream.reads + stream.writes for stream in streams)
            total = sum(stream.read_latency_ns + stream.write_latency_ns for stream in streams)
            if requests:
                means.append(total / requests)
                weights.append(requests)
        named = [stream for stream in record.figures.streams if bound.stream in (None, stream.name)]
        squares += [op.latency.sdev_ns**2 for stream in named for _, op in stream.ops()]
    if len(means) < FEWEST or not squares or (alone := fmean(squares)) <= 0:
        return 1.0
    return max(1.0, variance(means) * fmean(weights) / alone)
