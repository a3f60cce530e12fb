"""Measures a device that has no data sheet, with reads of two sizes: a service time, a transfer rate, their ranges.

A read of n bytes takes service + n / rate. Two sizes give both numbers; trials give the ranges. Reads go to random
places, one at a time, past the page cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spindle.inspect.machine import MeasuredDrive
from spindle.result.record import RunRecord
from spindle.run.errors import Usage
from spindle.run.resolve import resolve
from spindle.run.targets import Target
from spindle.run.watch import Watch

SMALL, LARGE = 4096, 256 << 10
"""Sizes of the reads, bytes: below the longest request of every queue."""
TRIALS = 3
SECONDS = 1.0
"""Length of a trial of one size."""
DEEP = 16
"""Requests outstanding in the trial that shows whether the device serves several at once."""
SEVERAL = 1.25
"""A device that serves more than this many times the requests at that depth serves several at once."""


@dataclass(frozen=True)
class Trial:
    """Mean latencies of both sizes, ns."""

    small_ns: float
    large_ns: float

    @property
    def per_byte_ns(self) -> float:
        """Time of a byte; never below nothing."""
        return max(0.0, (self.large_ns - self.small_ns) / (LARGE - SMALL))

    @property
    def service_ns(self) -> float:
        """Time of a read without its bytes."""
        return max(1000.0, self.small_ns - SMALL * self.per_byte_ns)


def calibrate(target: Target, watch: Watch) -> MeasuredDrive:
    """Measure a device by reading it for some seconds. Raises as a run does."""
    trials = []
    for number in range(1, TRIALS + 1):
        small, large = (_read(target, watch, size, 1, number) for size in (SMALL, LARGE))
        trials.append(Trial(_mean_ns(small), _mean_ns(large)))
    deep = _read(target, watch, SMALL, DEEP, TRIALS + 1)
    return measured(trials, deep.figures.iops)


def measured(trials: Sequence[Trial], deep_iops: float) -> MeasuredDrive:
    """The numbers of the trial in the middle, with the range of all."""
    services = sorted(trial.service_ns for trial in trials)
    per_byte = sorted(trial.per_byte_ns for trial in trials)
    alone_iops = 1e9 / sorted(trial.small_ns for trial in trials)[len(trials) // 2]
    return MeasuredDrive(
        service_ns=(services[0], services[len(services) // 2], services[-1]),
        per_byte_ns=(per_byte[0], per_byte[len(per_byte) // 2], per_byte[-1]),
        at_once=max(1.0, deep_iops / alone_iops),
    )


def _read(target: Target, watch: Watch, size: int, depth: int, seed: int) -> RunRecord:
    overrides = [
        ("size", str(size)), ("depth", str(depth)), ("seed", str(seed)), ("seconds", str(SECONDS)),
        ("workers", "1"), ("write_fraction", "0"), ("fsync_fraction", "0"), ("direct", "true"), ("pattern", "uniform"),
    ]  # fmt: skip
    resolved = resolve("randomio", overrides)
    with target.open(resolved, watch) as opened:
        return opened.measure(resolved, f"calibration: {size} bytes, {depth} outstanding").record


def _mean_ns(record: RunRecord) -> float:
    read = record.figures.streams[0].read
    if read is None or not read.requests:
        raise Usage(f"{record.target.asked}: the calibration read nothing; is the device readable?")
    return read.latency.mean_ns
