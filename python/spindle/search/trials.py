"""Trials as a search sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spindle.search.process import Process, fitted
from spindle.search.space import Point, Space


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
    relative, sign = is_relative(trials), 1.0 if goal.higher else -1.0
    return [None if one.value is None else sign * (math.log(one.value) if relative else one.value) for one in trials]


def belief(space: Space, trials: Sequence[TrialPoint], goal: Goal) -> Belief | None:
    """Fit the trials; None: none has a value. A failed trial counts as the worst one, so that the search avoids it."""
    found = merits(trials, goal)
    known = [value for value in found if value is not None]
    if not known:
        return None
    filled = [value if value is not None else min(known) for value in found]
    points, blocks = [one.point for one in trials], [one.block for one in trials]
    margins = tuple(_margin(space, trials, at, *limit) for at, limit in enumerate(goal.limits))
    return Belief(fitted(space, points, filled, blocks), margins)


def _margin(space: Space, trials: Sequence[TrialPoint], at: int, limit: float, upper: bool) -> Process | None:
    having = [(one, value) for one in trials if (value := one.bounded[at]) is not None]
    if not having:
        return None
    relative = limit > 0 and all(value > 0 for _, value in having)

    def margin(value: float) -> float:
        away = math.log(limit / value) if relative else limit - value
        return away if upper else -away

    return fitted(
        space,
        [one.point for one, _ in having],
        [margin(value) for _, value in having],
        [one.block for one, _ in having],
    )
