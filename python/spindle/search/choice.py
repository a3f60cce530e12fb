"""The choice of finalists and of the winner: by expected value, never by the best observed trial."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr
from scipy.stats import f as fisher

from spindle.search.prior import Prior
from spindle.search.space import IGNORED, Point, Space
from spindle.search.strategies import LIKELY, feasible, where
from spindle.search.trials import Goal, TrialPoint, belief, is_relative, merits

LEAST_SPREAD = 0.03
"""Standard deviation, relative, below which nobody would call settings unstable."""
LEAST_GAP = 0.5
"""Two modes: the largest gap between neighbours takes at least this share of the range."""
DOUBT = 0.005
"""Probability that settings as stable as the others are called unstable by their spread alone."""
GIVEN_UP = 0.1
"""Share of the expected gain that may be lost for fewer changes."""
GIVEN_UP_AT_MOST = 0.005
"""The most that may be lost, relative: a tenth of a large gain is much."""
POWER = 0.9
"""Probability with which a confirmation shows the gain that is expected, and that the bounds hold."""
_NEAREST = 8
"""The best points that were tried, of which untried neighbours may be finalists too."""


def has_two_modes(values: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """True if trials of the same settings fall into two groups: they spread more than those of other settings do
    (F test), and have a gap. `values`, and those of each other alternative, on the scale of logarithms.
    """
    if len(values) < 3:
        return False
    own = float(np.var(values, ddof=1))
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    reach = float(ordered[-1] - ordered[0])
    if own < LEAST_SPREAD**2 or float(np.diff(ordered).max()) < LEAST_GAP * reach:
        return False
    freedom = sum(len(one) - 1 for one in others if len(one) > 1)
    if freedom == 0:
        return False
    noise = sum(float(np.var(one, ddof=1)) * (len(one) - 1) for one in others if len(one) > 1) / freedom
    return noise == 0 or float(fisher.sf(own / noise, len(values) - 1, freedom)) < DOUBT


def ranked(
    space: Space,
    trials: Sequence[TrialPoint],
    goal: Goal,
    start: Point,
    among: Collection[Point] | None = None,
    prior: Prior | None = None,
) -> list[tuple[Point, float]]:
    """Points by their expected gain over the start: only where the bounds are likely to hold, and only gains, unless
    the start is likely to break a bound. `among`: these points; None: those tried and their neighbours, and those that
    a model has screened.
    """
    found = belief(space, trials, goal, prior)
    if found is None:
        return []
    tried = list(dict.fromkeys(one.point for one in trials))
    if among is None:
        expected = where(found.merit.at(tried)[0], feasible(found, tried) >= LIKELY)
        best = [tried[at] for at in np.argsort(-expected)[:_NEAREST]]
        screened = prior.screened if prior is not None else ()
        near = (other for point in best for other in space.neighbours(point))
        points = list(dict.fromkeys([*tried, *near, *screened]))
    else:
        points = list(among)
    points = [point for point in points if point != start]
    if not points:
        return []
    expected, _ = found.merit.at(points)
    gains = expected - found.merit.at([start])[0][0]
    safe, breaks = feasible(found, points), feasible(found, [start])[0] < LIKELY
    kept = [at for at in np.argsort(-gains, kind="stable") if (gains[at] > 0 or breaks) and safe[at] >= LIKELY]
    return [(points[at], float(gains[at])) for at in kept]


def surest(
    space: Space,
    trials: Sequence[TrialPoint],
    goal: Goal,
    points: Sequence[Point],
    blocks: int,
    confidence: float,
    prior: Prior | None = None,
) -> list[Point]:
    """First the points of which a confirmation of so many blocks is likely to show that they meet the bounds, in their
    order, then the others by how likely that is. `confidence`: of the interval that shows it.
    """
    found = belief(space, trials, goal, prior) if goal.limits and points else None
    if found is None:
        return list(points)
    reach = NormalDist().inv_cdf((1 + confidence) / 2)
    shown = np.ones(len(points))
    for process in found.margins:
        if process is not None:
            mean, error = process.at(points)
            own = process.noise / math.sqrt(blocks)
            shown = shown * ndtr((mean - reach * own) / np.hypot(error, own))
    return [points[at] for at in np.argsort(-np.minimum(shown, POWER), kind="stable")]


def unstable(trials: Sequence[TrialPoint], points: Sequence[Point], goal: Goal) -> list[Point]:
    """The points, of those tried side by side, whose trials have two modes."""
    by_point: dict[Point, list[float]] = {}
    for one, merit in zip(trials, merits(trials, goal), strict=True):
        if merit is not None:
            by_point.setdefault(one.point, []).append(merit)
    return [
        point
        for point in points
        if has_two_modes(by_point.get(point, []), [own for other, own in by_point.items() if other != point])
    ]


def simplified(
    space: Space, trials: Sequence[TrialPoint], goal: Goal, start: Point, point: Point, prior: Prior | None = None
) -> Point:
    """The point with as many settings as possible back at the start's, as long as no more than `GIVEN_UP` of the
    expected change is lost, and no more than `GIVEN_UP_AT_MOST` of the value: settings that do not matter stay as they
    are.
    """
    found = belief(space, trials, goal, prior)
    if found is None:
        return point
    most = GIVEN_UP * abs(found.merit.contrast([point], [start])[0])
    if is_relative(trials):
        most = min(most, GIVEN_UP_AT_MOST)
    least = min(POWER, feasible(found, [point])[0])
    while True:
        towards = _towards(space, start, point)
        simpler = [other for other, safe in zip(towards, feasible(found, towards), strict=True) if safe >= least]
        lost = {other: found.merit.contrast([point], [other])[0] for other in simpler}
        best = min(lost, key=lost.__getitem__, default=None)
        if best is None or best == start or lost[best] > most:
            return point
        most -= max(0.0, lost[best])
        point = best


def blocks_to_show(
    space: Space,
    trials: Sequence[TrialPoint],
    goal: Goal,
    start: Point,
    point: Point,
    worth: float,
    confidence: float,
    prior: Prior | None = None,
) -> float:
    """Blocks, with a trial of the point and one of the start in each, that show with probability `POWER` the gain which
    the point promises, less its standard error: the choice of the best promises too much. 0 if it promises less than
    `worth`, relative. `confidence`: of the interval that shows it.
    """
    found = belief(space, trials, goal, prior)
    if found is None:
        return 0.0
    gain, error = found.merit.contrast([point], [start])
    least = worth if is_relative(trials) else 0.0
    if gain <= least:
        return 0.0
    normal = NormalDist()
    reach = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)
    sure = max(gain - error, least)
    return 2 * (reach * found.merit.noise / sure) ** 2 if sure > 0 else math.inf


def _towards(space: Space, start: Point, point: Point) -> list[Point]:
    """Points with one more setting as at the start."""
    moved = [at for at in range(len(point)) if point[at] not in (start[at], IGNORED) and start[at] != IGNORED]
    found = []
    for at in moved:
        levels = [max(0, level) for level in point]
        levels[at] = start[at]
        found.append(space.canonical(levels))
    return [other for other in found if space.allowed(other)]
