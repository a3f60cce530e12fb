"""Strategies: each is given all trials so far, and asked for the next point.

It keeps nothing between two questions, so a search that was killed goes on as if nothing had happened. A point asked
for twice is a replicate.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from spindle.search.prior import Prior
from spindle.search.space import Numbers, Point, Space
from spindle.search.trials import Belief, Goal, TrialPoint, belief

MOST_CANDIDATES = 1500
"""Points looked at for one answer; a larger space is sampled, with the neighbours of the best."""
_SAFE = 0.9
"""Probability of meeting the bounds from which a tried point is one to improve on."""
LIKELY = 0.5
"""Probability of meeting the bounds from which settings may be chosen."""
_LOCAL = 4
"""Every so many trials one is a step from the best settings."""
_HOPE = 2.0
"""Standard errors that such a step may turn out better than expected."""
_POSSIBLE = 0.2
"""Least probability of meeting the bounds for such a step."""
_BEST = 5
"""The number of best points whose neighbours are looked at."""


class Strategy(Protocol):
    """A way to search."""

    def ask(self, trials: Sequence[TrialPoint], taken: Collection[Point]) -> Point | None:
        """The next point, not one of `taken` (those of the block under way); None: there is no other."""


@dataclass(frozen=True)
class Grid:
    """Every point in order, then again: the truth, where it is affordable."""

    space: Space

    def ask(self, trials: Sequence[TrialPoint], taken: Collection[Point]) -> Point | None:
        times = Counter(one.point for one in trials)
        new = (point for point in self.space.every() if point not in times and point not in taken)
        # A space can be too large to go through; whoever has tried all of it can.
        return next(new, None) or min(
            (point for point in self.space.every() if point not in taken), key=lambda point: times[point], default=None
        )


@dataclass(frozen=True)
class Random:
    """Random points: the yardstick."""

    space: Space
    seed: int

    def ask(self, trials: Sequence[TrialPoint], taken: Collection[Point]) -> Point | None:
        return _drawn(self.space, random.Random(f"{self.seed}/random/{len(trials)}"), taken)


@dataclass(frozen=True)
class ExpectedImprovement:
    """The point with the largest expected improvement over the best that is sure, as far as one noisy trial can show
    it (Huang et al., J. Global Optimization 34 (2006) 441-466), times the probability that the bounds hold there.

    Where the best has wide surroundings, all of that goes into variations of them. So every fourth trial changes one
    setting of the best to a level that was not tried with the others, where that could be best.
    """

    space: Space
    goal: Goal
    seed: int
    prior: Prior | None = None

    def ask(self, trials: Sequence[TrialPoint], taken: Collection[Point]) -> Point | None:
        by = random.Random(f"{self.seed}/guided/{len(trials)}")
        found = belief(self.space, trials, self.goal, self.prior)
        if found is None:
            return _drawn(self.space, by, taken)
        if len(trials) % _LOCAL == 0 and (step := self._step(found, trials, taken)) is not None:
            return step
        candidates = [point for point in self._candidates(found, trials, by) if point not in taken]
        if not candidates:
            return _drawn(self.space, by, taken)
        return candidates[int(np.argmax(_worth(found, candidates, trials)))]

    def _step(self, found: Belief, trials: Sequence[TrialPoint], taken: Collection[Point]) -> Point | None:
        """A step from the best settings to some that were not tried."""
        tried = list(dict.fromkeys(one.point for one in trials))
        expected, _ = found.merit.at(tried)
        best = tried[int(np.argmax(where(expected, feasible(found, tried) >= LIKELY)))]
        done = {*tried, *taken}
        near = [point for point in dict.fromkeys(self.space.neighbours(best)) if point not in done]
        near = [point for point, safe in zip(near, feasible(found, near), strict=True) if safe >= _POSSIBLE]
        if not near:
            return None
        mean, error = found.merit.at(near)
        return near[int(np.argmax(mean + _HOPE * error))]

    def _candidates(self, found: Belief, trials: Sequence[TrialPoint], by: random.Random) -> list[Point]:
        if self.space.size <= MOST_CANDIDATES:
            return list(self.space.every())
        tried = list(dict.fromkeys(one.point for one in trials))
        expected = where(found.merit.at(tried)[0], feasible(found, tried) >= LIKELY)
        best = [tried[at] for at in np.argsort(-expected)[:_BEST]]
        near = [other for point in best for other in self.space.neighbours(point)]
        if self.prior is not None:
            return list(dict.fromkeys([*best, *near, *self.prior.screened]))
        far = [point for _ in range(MOST_CANDIDATES) if (point := self.space.draw(by)) is not None]
        return list(dict.fromkeys([*best, *near, *far]))[: 2 * MOST_CANDIDATES]


def _worth(found: Belief, candidates: Sequence[Point], trials: Sequence[TrialPoint]) -> Numbers:
    tried = list(dict.fromkeys(one.point for one in trials))
    mean_tried, error_tried = found.merit.at(tried)
    safe = feasible(found, tried) >= _SAFE
    if not safe.any():  # first of all, settings that meet the bounds
        return feasible(found, candidates)
    sure = where(mean_tried - error_tried, safe)
    best = float(mean_tried[int(np.argmax(sure))])
    mean, error = found.merit.at(candidates)
    score = (mean - best) / error
    density = np.exp(-0.5 * score**2) / np.sqrt(2 * np.pi)
    improvement = error * (score * ndtr(score) + density)
    noise = found.merit.noise
    found_by_one = 1 - noise / np.sqrt(error**2 + noise**2)
    worth: Numbers = np.maximum(improvement, 1e-300) * found_by_one * feasible(found, candidates)
    return worth


def where(values: Numbers, allowed: NDArray[np.bool_]) -> Numbers:
    """The values where they are allowed, elsewhere minus infinity; all of them if none is."""
    found: Numbers = np.where(allowed, values, -np.inf) if allowed.any() else values
    return found


def feasible(found: Belief, points: Sequence[Point]) -> Numbers:
    """Probability that every bound holds at each point."""
    share = np.ones(len(points))
    for process in found.margins:
        if process is not None:
            mean, error = process.at(points)
            share = share * ndtr(mean / error)
    return share


def _drawn(space: Space, by: random.Random, taken: Collection[Point]) -> Point | None:
    for _ in range(100):
        point = space.draw(by)
        if point is not None and point not in taken:
            return point
    return next((point for point in space.every() if point not in taken), None)
