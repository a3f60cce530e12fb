"""Trials as a search sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from spindle.search.prior import Prior
from spindle.search.process import Mean, Process, fitted, nothing
from spindle.search.space import Numbers, Point, Space


@dataclass(frozen=True)
class Goal:
    """The goal of a search."""

    higher: bool
    """True if more of the metric is better."""
    limits: tuple[tuple[float, bool], ...] = ()
    """Bounds on other metrics: the limit, and True if it is an upper one."""


@dataclass(frozen=True)
class TrialPoint:
    """One trial."""

    point: Point
    block: int
    value: float | None
    """The metric's value; None: the trial failed."""
    bounded: tuple[float | None, ...] = ()
    """The value of each bound's metric."""


@dataclass(frozen=True)
class Belief:
    """Processes fitted to the trials so far: of the merit (higher is better), and of the distance to each bound."""

    merit: Process
    margins: tuple[Process | None, ...]
    """Above 0: the bound is met. None: no trial has this metric."""


def is_relative(trials: Sequence[TrialPoint]) -> bool:
    """True if values are compared as ratios: all are above 0."""
    return all(one.value > 0 for one in trials if one.value is not None)


def merits(trials: Sequence[TrialPoint], goal: Goal) -> list[float | None]:
    """Values on the scale of the search, higher is better: logarithms of ratios."""
    merit = _merit(is_relative(trials), goal)
    return [None if one.value is None else merit(one.value) for one in trials]


def expected_merits(prior: Prior, points: Sequence[Point], goal: Goal) -> Numbers:
    """The model's values on the same scale, as ratios."""
    return prior.of(0, points, _merit(True, goal))


def _merit(relative: bool, goal: Goal) -> Callable[[float], float]:
    sign = 1.0 if goal.higher else -1.0
    return lambda value: sign * (math.log(value) if relative else value)


def belief(space: Space, trials: Sequence[TrialPoint], goal: Goal, prior: Prior | None = None) -> Belief | None:
    """Fit the trials; None: none has a value. A failed trial counts as the worst one, so that the search avoids it.
    `prior`: a model's expectation, used where values are compared as ratios.
    """
    found = merits(trials, goal)
    known = [value for value in found if value is not None]
    if not known:
        return None
    filled = [value if value is not None else min(known) for value in found]
    points, blocks = [one.point for one in trials], [one.block for one in trials]
    margins = tuple(_margin(space, trials, at, limit, prior) for at, limit in enumerate(goal.limits))
    mean = nothing
    if prior is not None and is_relative(trials):
        mean = partial(expected_merits, prior, goal=goal)
    return Belief(fitted(space, points, filled, blocks, mean), margins)


def _margin(
    space: Space, trials: Sequence[TrialPoint], at: int, bound: tuple[float, bool], prior: Prior | None
) -> Process | None:
    limit, upper = bound
    having = [(one, value) for one in trials if (value := one.bounded[at]) is not None]
    if not having:
        return None
    relative = limit > 0 and all(value > 0 for _, value in having)

    def margin(value: float) -> float:
        away = math.log(limit / value) if relative else limit - value
        return away if upper else -away

    mean: Mean = nothing if prior is None or not relative else lambda points: prior.of(at + 1, points, margin)
    return fitted(
        space,
        [one.point for one, _ in having],
        [margin(value) for _, value in having],
        [one.block for one, _ in having],
        mean,
    )
