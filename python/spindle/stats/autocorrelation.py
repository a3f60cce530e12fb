"""How much a series of measurements knows about its mean when neighbours resemble each other.

The variance of the mean of n values is omega^2/n with the long-run variance omega^2 = sum over all lags of the
autocovariance; with positive autocorrelation it is larger than the plain variance, and the n values are worth only
n x variance/omega^2 independent ones.

omega^2 is estimated as the mean square of the first nu = 0.4 n^(2/3) cosine coefficients of the series (Lazarus,
Lewis, Stock and Watson, J. Business & Economic Statistics 36 (2018) 541-559), after an AR(1) has been taken out
(prewhitening: Andrews and Monahan, Econometrica 60 (1992) 953-966) whose coefficient is corrected for its bias in short
series (Kendall, Biometrika 41 (1954) 403-404). Student's t with nu degrees of freedom then holds even for short,
strongly correlated series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SHORTEST = 8
"""Shorter series give no information on their autocorrelation."""
_STRONGEST = 0.97
"""A series with stronger correlation is indistinguishable from one without a mean."""


@dataclass(frozen=True)
class LongRun:
    """The mean of a series with its precision."""

    variance_of_mean: float
    freedom: float
    """Degrees of freedom of that variance."""
    effective: float
    """Number of independent values with the same precision."""


def lag_one(values: Numbers) -> float:
    """Correlation of neighbours, corrected for the bias of short series; 0 for a constant series."""
    n = len(values)
    centred = values - values.mean()
    squares = float(centred @ centred)
    if n < 3 or squares <= n * (1e-12 * abs(float(values.mean()))) ** 2:
        return 0.0
    raw = float(centred[1:] @ centred[:-1]) / squares
    return min(max(raw + (1 + 4 * raw) / n, -_STRONGEST), _STRONGEST)


def long_run(values: Numbers) -> LongRun:
    """Estimate for a series of at least `SHORTEST` equally long intervals."""
    n = len(values)
    rho = max(lag_one(values), 0.0)
    innovations = values[1:] - rho * values[:-1]
    count = len(innovations)
    freedom = max(2, int(0.4 * count ** (2 / 3)))
    times = np.pi * (np.arange(count) + 0.5) / count
    waves = np.cos(np.outer(np.arange(1, freedom + 1), times)) * np.sqrt(2 / count)
    spectrum = float(np.mean((waves @ (innovations - innovations.mean())) ** 2)) / (1 - rho) ** 2
    plain = float(values.var(ddof=1))
    return LongRun(
        variance_of_mean=spectrum / n,
        freedom=float(freedom),
        effective=min(float(n), n * plain / spectrum) if spectrum > 0 else float(n),
    )


def mean_inflation(rho: float, n: int) -> float:
    """Factor, at least 1, by which correlation of neighbours raises the variance of the mean of n values of an
    AR(1).
    """
    if rho <= 0 or n < 2:
        return 1.0
    return (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)
