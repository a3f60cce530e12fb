"""A figure with its uncertainty.

Every table and chart averages trials by the geometric mean: ratios are compared, and their noise is multiplicative. Its
interval is that of the logarithms, so it never reaches 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

TRIM = 0.2
"""Share of the values cut off at each end by the trimmed mean."""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    estimate: float
    low: float
    """-inf if the values do not show their spread, as with a single one."""
    high: float
    confidence: float
    n: int
    """Number of values."""
    effective_n: float
    """Number of independent values with the same precision."""
    method: Literal["t", "geometric", "trimmed", "series"]

    @property
    def relative(self) -> float:
        """Distance of the farther end, as a share of the estimate: 0.03 is +-3 %. inf if the estimate is 0 or an end
        unknown."""
        farther = max(self.high - self.estimate, self.estimate - self.low)
        if farther == 0:
            return 0.0
        return farther / abs(self.estimate) if self.estimate and math.isfinite(farther) else math.inf


def of_trials(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean of independent trials: geometric with the interval of their logarithms if all are above 0, else
    arithmetic (`method` says which). Raises ValueError as `interval`.
    """
    found = [value for value in values if math.isfinite(value)]
    if not found or min(found) <= 0:
        return interval(found, confidence)
    known = interval([math.log(value) for value in found], confidence)
    low, high = (math.exp(end) if end < 700 else math.inf for end in (known.low, known.high))
    return replace(known, estimate=math.exp(known.estimate), low=low, high=high, method="geometric")


def mean_of_trials(values: Sequence[float]) -> float:
    """Geometric if all are above 0, else arithmetic. Raises ValueError if there are none."""
    if min(values) <= 0:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def kind_of_mean(*values: Sequence[float]) -> str:
    """The kind of the means of these groups of trials."""
    every = [min(group) > 0 for group in values if group]
    if all(every):
        return "geometric means"
    return "geometric means (arithmetic where a value is 0)" if any(every) else "arithmetic means"


def interval(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    series: bool = False,
    method: Literal["t", "trimmed"] = "t",
) -> Interval:
    """The mean of `values` with its confidence interval. Values that are not finite are left out.

    Independent trials: Student's t. `trimmed`: the mean of the middle 60 % with its interval (Tukey and McLaughlin,
    Sankhya A 25 (1963) 331-352), robust against outliers. `series`: successive intervals of one run, with correlated
    neighbours (see `autocorrelation`). Raises ValueError if no value is finite, or if the confidence is not between 0
    and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    import numpy as np

    found = np.asarray([value for value in values if math.isfinite(value)], dtype=np.float64)
    n = len(found)
    if n == 0:
        raise ValueError("no values")
    from spindle.stats.autocorrelation import SHORTEST, long_run

    if series and n >= SHORTEST:
        known = long_run(found)
        return _around(
            float(found.mean()), known.variance_of_mean, known.freedom, confidence, n, known.effective, "series"
        )
    cut = int(TRIM * n) if method == "trimmed" and not series else 0
    ordered = np.sort(found)
    kept = ordered[cut : n - cut]
    if series or n == 1:  # a series too short to estimate its correlation
        return Interval(float(kept.mean()), -math.inf, math.inf, confidence, n, 1.0, "series" if series else method)
    winsorized = np.clip(ordered, kept[0], kept[-1])
    # Variance of a trimmed mean; without trimming the plain s^2/n.
    variance = float(winsorized.var(ddof=1)) / ((1 - 2 * cut / n) ** 2 * n)
    return _around(float(kept.mean()), variance, len(kept) - 1, confidence, n, float(n), method)


def _around(
    middle: float,
    variance: float,
    freedom: float,
    confidence: float,
    n: int,
    effective: float,
    method: Literal["t", "trimmed", "series"],
) -> Interval:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * math.sqrt(variance)
    return Interval(middle, middle - half, middle + half, confidence, n, effective, method)
