"""A metric of a run second by second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spindle.result.figures import Figures, Interval, StreamInterval
from spindle.result.record import RunRecord
from spindle.stats.autocorrelation import Numbers
from spindle.stats.trial import Trial

_RATES: dict[str, Callable[[StreamInterval], float]] = {
    "iops": lambda at: at.reads + at.writes,
    "bytes_per_s": lambda at: at.read_bytes + at.write_bytes,
    "read.iops": lambda at: at.reads,
    "read.bytes_per_s": lambda at: at.read_bytes,
    "write.iops": lambda at: at.writes,
    "write.bytes_per_s": lambda at: at.write_bytes,
}
_MEANS: dict[str, tuple[Callable[[StreamInterval], float], Callable[[StreamInterval], float]]] = {
    "mean_ns": (lambda at: at.read_latency_ns + at.write_latency_ns, _RATES["iops"]),
    "read.mean_ns": (lambda at: at.read_latency_ns, _RATES["read.iops"]),
    "write.mean_ns": (lambda at: at.write_latency_ns, _RATES["write.iops"]),
}
"""Sum of latencies, and their number. `writes` of an interval include trims and zeroing: see `_kept_apart`."""


def of_run(trial: Trial, metric: str) -> Numbers | None:
    """The metric in each whole interval of the run; None: the series does not contain it (percentiles), or there is no
    series.

    A mean latency is linearised: its mean is the run's, and its spread that of the ratio of sums.
    """
    record = trial.load() if trial.load is not None else None
    if not isinstance(record, RunRecord):
        return None
    figures = record.figures
    prefix, _, name = metric.rpartition("/")
    streams = [at for at, stream in enumerate(figures.streams) if not prefix or stream.name == prefix]
    if not streams or not _kept_apart(figures, name):
        return None
    whole = [part for part in figures.series if part.length_ns >= 0.95 * figures.interval_ns]
    if name in _RATES:
        rates: Numbers = _sums(whole, streams, _RATES[name]) / np.asarray([part.length_ns / 1e9 for part in whole])
        return rates
    if name in _MEANS:
        latencies, counts = (_sums(whole, streams, of) for of in _MEANS[name])
        if counts.sum() == 0:
            return None
        mean = latencies.sum() / counts.sum()
        linear: Numbers = mean + (latencies - mean * counts) / counts.mean()
        return linear
    return None


def _sums(series: list[Interval], streams: list[int], of: Callable[[StreamInterval], float]) -> Numbers:
    return np.asarray(
        [sum(of(part.streams[at]) for at in streams if at < len(part.streams)) for part in series], dtype=np.float64
    )


def _kept_apart(figures: Figures, name: str) -> bool:
    """True if the series' writes are the metric's."""
    return not name.startswith("write.") or all(each.trim is None and each.zero is None for each in figures.streams)
