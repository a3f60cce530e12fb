"""The difference of two alternatives in one metric.

Ratios are compared on the scale of logarithms, as noise and effects of storage are multiplicative (Kalibera and Jones,
Rigorous benchmarking in reasonable time, ISMM 2013); where a value is 0 or less, plain differences are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spindle.stats.autocorrelation import SHORTEST, long_run
from spindle.stats.model import Contrast, Numbers
from spindle.stats.pair import Basis, between
from spindle.stats.strata import Strata
from spindle.stats.trial import Side, Trial


@dataclass(frozen=True)
class Difference:
    """`b` relative to `a`: a ratio less 1 (`relative`), else a plain difference in the metric's unit."""

    metric: str
    a: str
    b: str
    trials_a: int
    trials_b: int
    mean_a: float
    """Geometric if `relative`."""
    mean_b: float
    relative: bool
    change: float
    """0.12: b is 12 % above a."""
    low: float | None
    high: float | None
    """The interval of the decision; None: the trials do not show their spread."""
    confidence: float
    """Confidence of this interval alone: higher than requested if many comparisons share one error probability."""
    p: float | None
    p_adjusted: float | None
    """Holm's p, as if this were the only comparison."""
    significant: bool
    """True if the interval excludes no difference."""
    effect: float | None
    """In standard deviations of a trial (Hedges' g)."""
    noise: float | None
    """Standard deviation of a trial within its stratum; relative if `relative`."""
    freedom: float
    basis: Basis
    correlation: float = 0.0
    """Correlation of successive trials, if it was detected and widened the interval."""
    identical: bool = False
    """True if the trials of each side are equal, as those of a model with one seed."""
    resolution: float = 0.0
    """Resolution of the instrument, which widened the interval; relative if `relative`."""
    obstacle: str = ""
    """Reason why no test is possible; empty: a test is possible."""
    left_out: int = 0
    """Trials without this metric."""


@dataclass(frozen=True)
class TestedDifference:
    """A tested difference on the scale of its test, before the correction for many comparisons."""

    found: Difference
    contrast: Contrast | None

    def at(self, confidence: float, p_adjusted: float | None, significant: bool) -> Difference:
        """The difference with the interval of this confidence."""
        contrast = self.contrast
        if contrast is None or contrast.freedom == 0:
            return self.found
        reach = contrast.reach(0.5 + confidence / 2)
        low, high = contrast.difference - reach, contrast.difference + reach
        if self.found.relative:
            low, high = math.expm1(low), _expm1(high)
        return replace(
            self.found, low=low, high=high, confidence=confidence, p_adjusted=p_adjusted, significant=significant
        )


def examine(
    metric: str,
    a: Side,
    b: Side,
    strata: Strata,
    series: Callable[[Trial, str], Numbers | None],
) -> TestedDifference:
    """Test two sides in one metric. `series`: the metric second by second, used if there are only single runs."""
    have_a, have_b = _having(a.trials, metric), _having(b.trials, metric)
    left_out = len(a.trials) + len(b.trials) - len(have_a) - len(have_b)
    values_a, values_b = _values(have_a, metric), _values(have_b, metric)
    relative = bool(len(values_a) and len(values_b) and values_a.min() > 0 and values_b.min() > 0)
    scaled_a, scaled_b = (np.log(values_a), np.log(values_b)) if relative else (values_a, values_b)
    mean_a, mean_b = (_mean(scaled, relative) for scaled in (scaled_a, scaled_b))
    blank = Difference(
        metric=metric,
        a=a.label,
        b=b.label,
        trials_a=len(have_a),
        trials_b=len(have_b),
        mean_a=mean_a,
        mean_b=mean_b,
        relative=relative,
        change=_change(mean_a, mean_b, relative),
        low=None,
        high=None,
        confidence=math.nan,
        p=None,
        p_adjusted=None,
        significant=False,
        effect=None,
        noise=None,
        freedom=0.0,
        basis="none",
        left_out=left_out,
    )
    if not have_a or not have_b:
        return TestedDifference(blank, None)
    if len(have_a) == len(have_b) == 1:
        return _within(blank, series(have_a[0], metric), series(have_b[0], metric))
    groups = np.repeat(np.asarray([0, 1], dtype=np.intp), [len(have_a), len(have_b)])
    pair = between(np.concatenate([scaled_a, scaled_b]), groups, [*have_a, *have_b], strata, metric, relative)
    if pair.contrast is None:
        return TestedDifference(replace(blank, basis=pair.basis, obstacle=pair.obstacle), None)
    return _tested(blank, pair.contrast, pair.basis, modelled=strata.modelled if pair.contrast.variance == 0 else False)


def _tested(blank: Difference, contrast: Contrast, basis: Basis, *, modelled: bool = False) -> TestedDifference:
    if contrast.freedom == 0:
        return TestedDifference(blank, contrast)
    change = _expm1(contrast.difference) if blank.relative else contrast.difference
    hedges = 1 - 3 / (4 * contrast.freedom - 1) if contrast.freedom > 1 else 0.5642  # J(1) = 1/sqrt(pi)
    effect = hedges * contrast.difference / contrast.spread if contrast.spread > 0 else None
    noise = _expm1(contrast.spread) if blank.relative else contrast.spread
    found = replace(
        blank,
        change=change,
        p=contrast.p,
        effect=effect if basis != "within-run" else None,
        noise=noise if basis != "within-run" else None,
        freedom=contrast.freedom,
        correlation=contrast.correlation,
        basis=basis,
        identical=modelled and contrast.variance == 0,
        resolution=_expm1(contrast.resolution) if blank.relative else contrast.resolution,
    )
    return TestedDifference(found, contrast)


def _within(blank: Difference, a: Numbers | None, b: Numbers | None) -> TestedDifference:
    """One run each: their seconds show the precision of each run's own mean, but not how much runs differ."""
    if a is None or b is None or not blank.relative or min(len(a), len(b)) < SHORTEST:
        return TestedDifference(blank, None)
    means = [float(part.mean()) for part in (a, b)]
    if min(means) <= 0:
        return TestedDifference(blank, None)
    parts = [long_run(part / mean) for part, mean in zip((a, b), means, strict=True)]
    variance = sum(part.variance_of_mean for part in parts)
    freedom = (
        variance**2 / sum(part.variance_of_mean**2 / part.freedom for part in parts)
        if variance > 0
        else sum(part.freedom for part in parts)
    )
    difference = math.log(blank.mean_b / blank.mean_a)
    return _tested(blank, Contrast(difference, variance, freedom, math.nan), "within-run")


def _having(trials: Sequence[Trial], metric: str) -> list[Trial]:
    """The trials that have the metric, in order of time."""
    having = [trial for trial in trials if math.isfinite(trial.values.get(metric, math.nan))]
    return sorted(having, key=lambda trial: trial.order)


def _values(trials: Sequence[Trial], metric: str) -> Numbers:
    return np.asarray([trial.values[metric] for trial in trials], dtype=np.float64)


def _mean(scaled: Numbers, relative: bool) -> float:
    if len(scaled) == 0:
        return math.nan
    mean = float(scaled.mean())
    return math.exp(mean) if relative else mean


def _change(mean_a: float, mean_b: float, relative: bool) -> float:
    return mean_b / mean_a - 1 if relative else mean_b - mean_a


def _expm1(value: float) -> float:
    return math.expm1(value) if value < 700 else math.inf
