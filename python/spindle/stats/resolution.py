"""The smallest difference that an instrument can show: trials that agree more closely are rounded, not equal.

A rate counts whole requests of a window, a percentile is a slot of a histogram, a clock has ticks, and another tool
prints a few digits. If trials repeat each other's figures, their scatter is meaningless below that.
"""

from __future__ import annotations

import math

import numpy as np

from spindle.result.record import RunRecord
from spindle.stats.model import Numbers
from spindle.stats.trial import Trial

_SLOT = 1 / 256
"""Width of a histogram's slot as a share of its latency: twice the `RELATIVE_ERROR` of crates/measure."""
_DIGITS = 12
"""More decimals than any tool prints."""


def resolution(trial: Trial, metric: str, values: Numbers) -> float:
    """Half a step of the metric, in its own unit; 0 if no value of `values` repeats another.

    `values`: of all compared trials. `trial`: one of them, whose record shows what was counted.
    """
    if len(np.unique(values)) == len(values):
        return 0.0
    record = trial.load() if trial.load is not None else None
    name = metric.rpartition("/")[2].rpartition(".")[2]
    value = abs(trial.values[metric])
    if isinstance(record, RunRecord) and not metric.startswith("device."):
        if name == "iops" and record.figures.measured_ns:
            return 0.5 / record.figures.measured_s
        if name == "bytes_per_s" and record.figures.measured_ns and record.figures.requests:
            size = value * record.figures.measured_s / record.figures.requests
            return size / record.figures.measured_s / 2
        if name.startswith("p") and name.endswith("_ns"):
            return value * _SLOT / 2
    return _step(values) / 2


def _step(values: Numbers) -> float:
    """The last decimal place of the values."""
    for digits in range(_DIGITS):
        step = 10.0**-digits
        if np.allclose(values / step, np.round(values / step), rtol=1e-12, atol=1e-6):
            return step
    return math.ulp(float(np.abs(values).max()))
