"""Groups of trials in strata: the one linear model behind every comparison.

value = stratum + group + noise, each group with its own noise. A stratum is a block of a campaign, or whatever else was
the same for the trials in it (the levels of the other factors). With two groups in one stratum this is Welch's t test
(Biometrika 34 (1947) 28-35), with two groups and blocks the paired t test, with more the analysis of randomised blocks;
missing trials are no special case. Solved as block designs are (John and Williams, Cyclic and Computer Generated
Designs, 1995, ch. 1): strata are eliminated, what is left has one equation a group, so thousands of trials cost
milliseconds.

The variance of a group comes from its own residuals, divided by its share of the degrees of freedom (the sum of one
minus leverage); that of a difference has the degrees of freedom of Satterthwaite (Biometrics Bulletin 2 (1946)
110-114).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spindle.stats.autocorrelation import SHORTEST, mean_inflation

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]

_NOTHING = 1e-9
"""Fewer degrees of freedom count as none."""
_NOTICEABLE = 1.645
"""Standard errors from which on a correlation counts."""


@dataclass(frozen=True)
class Contrast:
    """A difference of two groups."""

    difference: float
    variance: float
    """Variance of the difference."""
    freedom: float
    """0: the trials do not show their spread."""
    spread: float
    """Standard deviation of a trial within its stratum, of both groups together."""
    correlation: float = 0.0
    """Correlation of successive trials, if it was detected and widened the variance."""
    resolution: float = 0.0
    """Resolution of the instrument: no interval is narrower on either side."""
    also: Contrast | None = None
    """The same difference under another assumption; claims must be significant under both."""
    doubt: float = 1.0
    """Factor on every p: the order of the trials alone does not exclude a drift."""

    def reach(self, confidence: float) -> float:
        """Distance from the difference to the end of its one-sided interval."""
        from scipy.special import stdtrit

        confidence = 1 - (1 - confidence) / self.doubt
        own = max(float(stdtrit(self.freedom, confidence)) * math.sqrt(self.variance), self.resolution)
        return own if self.also is None else max(own, self.also.reach(confidence) + self._off)

    def beyond(self, margin: float, way: float) -> float:
        """One-sided p of such trials if the difference were at most `margin` in the direction of `way`."""
        from scipy.special import stdtr

        excess = way * (self.difference - margin)
        if excess <= self.resolution + _NOTHING * (abs(self.difference) + abs(margin)):
            return 1.0
        own = 0.0 if self.variance == 0 else float(stdtr(self.freedom, -excess / math.sqrt(self.variance)))
        both = own if self.also is None else max(own, self.also.beyond(margin + way * self._off, way))
        return min(1.0, self.doubt * both)

    @property
    def p(self) -> float:
        """Two-sided p."""
        return min(1.0, 2 * self.beyond(0.0, 1.0 if self.difference > 0 else -1.0))

    @property
    def _off(self) -> float:
        """Distance between the two estimates."""
        return abs(self.difference - self.also.difference) if self.also is not None else 0.0


@dataclass(frozen=True)
class Fit:
    """The fitted model."""

    effects: Numbers
    """Effect of each group."""
    levels: Numbers
    """Level of each stratum."""
    inverse: Numbers
    counts: Numbers
    """Trials of each group (row) in each stratum."""
    variances: Numbers
    """Variance of a trial of each group; nan: unknown."""
    freedoms: Numbers
    """Degrees of freedom of each variance."""
    inflation: Numbers
    """Factor by which correlation of successive trials raises the variance of each group's mean."""
    most: float
    """Degrees of freedom of all groups together: no difference has more."""
    correlation: float
    """Correlation of successive trials; 0 if not tested or not detected."""

    def contrast(self, of: int, against: int) -> Contrast | None:
        """Group `of` less group `against`; None: no strata connect them."""
        wanted = np.zeros(len(self.effects))
        wanted[of], wanted[against] = 1.0, -1.0
        solution = self.inverse @ wanted
        totals = self.counts.sum(axis=0)
        information = np.diag(self.counts.sum(axis=1)) - (self.counts / totals) @ self.counts.T
        if not np.allclose(information @ solution, wanted, atol=1e-6):
            return None
        weights = solution[:, None] - (solution @ self.counts) / totals
        shares = (self.counts * weights**2).sum(axis=1)
        used = shares > _NOTHING * shares.max()
        difference = float(self.effects[of] - self.effects[against])
        known = self.freedoms > _NOTHING
        if not known[used].any():
            return Contrast(difference, np.nan, 0.0, np.nan)
        variances, freedoms = self.variances, self.freedoms
        if not known[used].all():  # a group of a single trial gets the spread of the others
            weight = np.where(known & used, freedoms, 0.0)
            common = float((weight * np.where(known, variances, 0.0)).sum() / weight.sum())
            total = float((shares * self.inflation)[used].sum())
            return Contrast(difference, total * common, float(weight.sum()), float(np.sqrt(common)), self.correlation)
        parts = (shares * variances * self.inflation)[used]
        variance = float(parts.sum())
        freedom = (
            float(variance**2 / (parts**2 / freedoms[used]).sum()) if variance > 0 else float(freedoms[used].sum())
        )
        freedom = min(freedom, self.most)
        spread = float(np.sqrt((variances[of] + variances[against]) / 2))
        return Contrast(difference, variance, freedom, spread, self.correlation)


def fit(values: Numbers, groups: Indices, strata: Indices, *, in_time: bool) -> Fit:
    """Fit the model. `in_time`: the trials are in order of time, and groups ran one after the other, so that
    correlated neighbours look like a difference; not so in blocks or in turns.
    """
    count, layers = int(groups.max()) + 1, int(strata.max()) + 1
    counts = np.zeros((count, layers))
    np.add.at(counts, (groups, strata), 1.0)
    totals = counts.sum(axis=0)
    of_groups = np.bincount(groups, values, count)
    of_strata = np.bincount(strata, values, layers)
    share = counts / totals
    inverse = np.linalg.pinv(np.diag(counts.sum(axis=1)) - share @ counts.T, hermitian=True, rcond=1e-9)
    effects = inverse @ (of_groups - share @ of_strata)
    levels = (of_strata - effects @ counts) / totals
    residuals = values - levels[strata] - effects[groups]
    solved = inverse @ share
    leverage = 1 / totals + np.diag(inverse)[:, None] - 2 * solved + (share * solved).sum(axis=0)
    freedoms = (counts * (1 - leverage)).sum(axis=1)
    freedoms[freedoms < _NOTHING * counts.sum(axis=1)] = 0.0
    squares = np.bincount(groups, residuals**2, count)
    # Differences below the precision of the numbers count as 0.
    squares[squares <= counts.sum(axis=1) * (1e-12 * (1 + np.abs(values).max())) ** 2] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = squares / freedoms
    inflation = np.ones(count)
    correlation = _correlation([residuals[groups == group] for group in range(count)]) if in_time else 0.0
    for group, trials in enumerate(counts.sum(axis=1)):
        factor = mean_inflation(correlation, int(trials))
        if factor > 1:
            effective = max(trials / factor, 1.5)
            variances[group] *= (trials - 1) / trials * effective / (effective - 1)
            freedoms[group] = min(freedoms[group], effective - 1)
            inflation[group] = factor
    return Fit(effects, levels, inverse, counts, variances, freedoms, inflation, float(freedoms.sum()), correlation)


def paired(differences: Numbers) -> Contrast:
    """The same as `fit` for two groups with one trial each in every stratum, in a tenth of the time."""
    n = len(differences)
    variance = _spread(differences, 1 / 2)
    return Contrast(float(differences.mean()), 2 * variance / n, float(n - 1), math.sqrt(variance))


def welch(a: Numbers, b: Numbers) -> Contrast:
    """The same as `fit` for two groups of several trials in one stratum, `b` less `a`, in a tenth of the time."""
    variances = [_spread(part) for part in (a, b)]
    parts = [variance / len(part) for variance, part in zip(variances, (a, b), strict=True)]
    freedoms = [len(part) - 1 for part in (a, b)]
    total = sum(parts)
    squares = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    freedom = total**2 / squares if total > 0 else float(sum(freedoms))
    return Contrast(float(b.mean() - a.mean()), total, freedom, math.sqrt(sum(variances) / 2))


def _spread(values: Numbers, share: float = 1.0) -> float:
    """`share` of the variance; differences below the precision of the numbers count as 0."""
    left = values - values.mean()
    squares = float(left @ left)
    if squares <= len(values) * (1e-12 * (1 + float(np.abs(values).max()))) ** 2:
        return 0.0
    return share * squares / (len(values) - 1)


def _correlation(parts: Sequence[Numbers]) -> float:
    """Correlation of successive trials, all groups together; 0 if chance alone gives as much in one case of twenty."""
    long = [part for part in parts if len(part) >= SHORTEST]
    squares = sum(float(part @ part) for part in long)
    if not long or squares == 0:
        return 0.0
    raw = sum(float(part[1:] @ part[:-1]) for part in long) / squares
    rho = raw + (1 + 4 * raw) * len(long) / sum(len(part) for part in long)
    return min(rho, 0.97) if rho * math.sqrt(sum(len(part) for part in long)) > _NOTICEABLE else 0.0


def in_turns(groups: Indices) -> bool:
    """True if trials in order of time went from group to group about as often as in random order."""
    shares = np.bincount(groups) / len(groups)
    expected = (len(groups) - 1) * (1 - float(shares @ shares))
    return float(np.count_nonzero(np.diff(groups))) >= 0.5 * expected


def numbered(labels: Sequence[object]) -> Indices:
    """Equal labels -> equal numbers from 0, in order of appearance."""
    seen: dict[object, int] = {}
    return np.asarray([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)
