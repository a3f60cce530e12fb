"""Changes of a series over time: warm-up, drift, and sudden changes of level."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spindle import _core
from spindle.stats.autocorrelation import Numbers, mean_inflation

MOST = 1000
"""Longer series are averaged in groups first: this is the resolution of the search for changes."""
_NORMAL = 0.674489750196
"""Median of the absolute value of a standard normal number."""
_TREND = 8
_STRONGEST = 0.95
SURE = 0.001
"""p below which a change of level is significant: there were many places to choose it from."""

COLD = 0.005
"""The same for a warm-up, which has fewer places."""


@dataclass(frozen=True)
class WarmUp:
    """The beginning of a run that differs from the rest."""

    intervals: int
    """Intervals to leave out; 0: the beginning is like the rest."""
    off: float
    """Difference of its mean from the rest: -0.2 is 20 % below."""


@dataclass(frozen=True)
class Change:
    """A sudden change of the level."""

    at: int
    """The first value of the new level, from 0."""
    before: float
    after: float


@dataclass(frozen=True)
class Drift:
    """A trend."""

    p: float
    """p of the trend if there is none: the larger of two tests."""
    per_value: float
    """Relative change from one value to the next (Sen's slope)."""

    def over(self, count: int) -> float:
        """Relative change over `count` values."""
        return self.per_value * (count - 1)


def warm_up(series: Numbers) -> WarmUp:
    """MSER-5: the beginning whose removal makes the mean of the rest most precise (White, Simulation 69 (1997)
    323-334; batches of five: White, Cobb and Spratt, Winter Simulation Conference 2000). Nothing is removed if that
    is more than half of the run, which is then not steady, nor a beginning within the scatter of the rest, nor one
    that correlated neighbours may cause.
    """
    batches = len(series) // 5
    if batches < 6:
        return WarmUp(0, 0.0)
    means = series[: batches * 5].reshape(batches, 5).mean(axis=1)
    scores = [float(means[cut:].var()) / (batches - cut) for cut in range(batches // 2 + 1)]
    cut = int(np.argmin(scores))
    if cut == 0 or cut == batches // 2:
        return WarmUp(0, 0.0)
    begin, rest = float(means[:cut].mean()), means[cut:]
    if abs(begin - float(rest.mean())) <= 3 * float(rest.std(ddof=1)) or not rest.mean():
        return WarmUp(0, 0.0)
    if _by_chance(series[: 5 * cut], series[5 * cut :]) >= COLD:
        return WarmUp(0, 0.0)
    return WarmUp(5 * cut, begin / float(rest.mean()) - 1)


def _by_chance(begin: Numbers, rest: Numbers) -> float:
    """p of this beginning if it were like the rest: a t test with AR(1) noise, estimated from the rest alone."""
    from scipy.special import stdtr

    n = len(rest)
    residuals = rest - rest.mean()
    squares = float(residuals @ residuals)
    if squares == 0:
        return 0.0
    raw = float(residuals[1:] @ residuals[:-1]) / squares
    rho = min(max(raw + (1 + 4 * raw) / n, 0.0), _STRONGEST)
    own = mean_inflation(rho, n)
    noise = squares / max(n - own, 1.0)
    variance = noise * (own / n + mean_inflation(rho, len(begin)) / len(begin))
    freedom = max(n / own - 1, 1.0)
    return 2 * float(stdtr(freedom, -abs(float(begin.mean() - rest.mean())) / np.sqrt(variance)))


def drift(values: Sequence[float]) -> Drift | None:
    """Return the trend over time; None for fewer than `_TREND` values.

    Two tests must agree: Mann-Kendall with Hamed and Rao's correction (crates/measure/src/trend.rs), robust against
    outliers, and a straight line with AR(1) noise, fitted after quasi-differencing (Prais and Winsten 1954) with a
    coefficient corrected for its bias next to a trend (Kendall 1954), robust for short and strongly correlated series.
    The size is Sen's slope.
    """
    if len(values) < _TREND:
        return None
    trend = json.loads(_core.steady([float(value) for value in values]))["trend"]
    if trend is None:
        return None
    return Drift(
        max(float(trend["p_value"]), _line(np.asarray(values, dtype=np.float64))), float(trend["relative_slope"])
    )


def _line(values: Numbers) -> float:
    """p of the slope of a straight line under AR(1) noise."""
    from scipy.special import stdtr

    n = len(values)
    design = np.column_stack([np.ones(n), np.arange(n) - (n - 1) / 2])
    residuals = values - design @ np.linalg.lstsq(design, values)[0]
    squares = float(residuals @ residuals)
    if squares <= n * (1e-12 * float(np.abs(values).max())) ** 2:
        return 1.0 if float(np.ptp(values)) == 0 else 0.0
    raw = float(residuals[1:] @ residuals[:-1]) / squares
    rho = min(max(raw + (2 + 4 * raw) / n, 0.0), _STRONGEST)
    first = np.sqrt(1 - rho**2)
    white = np.concatenate([[first * values[0]], values[1:] - rho * values[:-1]])
    model = np.vstack([first * design[:1], design[1:] - rho * design[:-1]])
    inverse = np.linalg.inv(model.T @ model)
    found = inverse @ model.T @ white
    freedom = max(n * (1 - rho) / (1 + rho) - 2, 1.0)
    noise = float(((white - model @ found) ** 2).sum()) / (n - 3)
    return 2 * float(stdtr(freedom, -abs(found[1]) / np.sqrt(noise * inverse[1, 1])))


def changes(values: Numbers, shortest: int = 5) -> list[Change]:
    """Detect lasting changes of level: least squares with a penalty for each change, PELT (Killick, Fearnhead and
    Eckley, J. American Statistical Association 107 (2012) 1590-1598).

    Correlated neighbours wander and look like changes. So the correlation is removed first, with an estimate that is
    robust against changes of level (Chakar, Lebarbier, Levy-Leduc and Robin, Bernoulli 23 (2017) 1408-1447). Levels
    last at least `shortest` values.
    """
    group = -(-len(values) // MOST)
    count = len(values) // group
    if count < 2 * shortest + 1:
        return []
    coarse = values[: count * group].reshape(count, group).mean(axis=1)
    rho = _robust_correlation(coarse)
    white = np.concatenate([[coarse[0] * (1 - rho)], coarse[1:] - rho * coarse[:-1]])
    # Differences remove the level; the median ignores a change.
    sdev = float(np.median(np.abs(np.diff(white)))) / (_NORMAL * np.sqrt(2))
    least = 1e-6 * float(np.abs(coarse).max())
    if sdev <= least:  # most values are equal: every other value is a change
        sdev = least or 1.0
    ends = _pelt(white / sdev, 4 * np.log(count), shortest)
    ends = _standing(coarse, ends)
    levels = [float(coarse[begin:end].mean()) for begin, end in pairwise([0, *ends, count])]
    return [Change(at * group, *neighbours) for at, neighbours in zip(ends, pairwise(levels), strict=True)]


def _standing(values: Numbers, ends: list[int]) -> list[int]:
    """The changes that are significant in a t test with AR(1) noise. The weakest is removed first, until all
    remaining ones are significant.
    """
    from scipy.special import stdtr

    while ends:
        places = [0, *ends, len(values)]
        segments = [values[begin:end] for begin, end in pairwise(places)]
        residuals = np.concatenate([segment - segment.mean() for segment in segments])
        squares = float(residuals @ residuals)
        if squares == 0:
            return ends
        raw = float(residuals[1:] @ residuals[:-1]) / squares
        rho = min(max(raw + (1 + 4 * raw) * len(segments) / len(values), 0.0), _STRONGEST)
        freedom = max(len(values) / mean_inflation(rho, len(values)) - len(segments), 1.0)
        noise = squares / max(len(values) - sum(mean_inflation(rho, len(each)) for each in segments), 1.0)
        ps = []
        for one, other in pairwise(segments):
            variance = noise * sum(mean_inflation(rho, len(each)) / len(each) for each in (one, other))
            ps.append(2 * float(stdtr(freedom, -abs(float(one.mean() - other.mean())) / np.sqrt(variance))))
        weakest = int(np.argmax(ps))
        if ps[weakest] < SURE:
            return ends
        ends = [*ends[:weakest], *ends[weakest + 1 :]]
    return ends


def _robust_correlation(values: Numbers) -> float:
    """Correlation of neighbours, from medians of differences of values one and two places away."""
    one = float(np.median(np.abs(values[1:] - values[:-1])))
    two = float(np.median(np.abs(values[2:] - values[:-2])))
    if one == 0:
        return 0.0
    return min(max((two / one) ** 2 - 1, 0.0), 0.95)


def _pelt(values: Numbers, penalty: float, shortest: int) -> list[int]:
    """Beginnings of all segments but the first; `values` have standard deviation 1."""
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(count + 1, dtype=np.intp)
    candidates = np.asarray([0], dtype=np.intp)
    for end in range(shortest, count + 1):
        lengths = end - candidates
        costs = best[candidates] + squares[end] - squares[candidates] - (sums[end] - sums[candidates]) ** 2 / lengths
        at = int(np.argmin(costs))
        best[end], last[end] = costs[at] + penalty, candidates[at]
        candidates = np.append(candidates[costs <= best[end]], end - shortest + 1)
        candidates = candidates[np.isfinite(best[candidates])]
    found: list[int] = []
    place = int(last[count])
    while place > 0:
        found.append(place)
        place = int(last[place])
    return found[::-1]
