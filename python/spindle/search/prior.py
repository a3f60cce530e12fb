"""A model's expectation of every point, before anything is measured: the search then learns only how the target
differs from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spindle.search.space import Numbers, Point, Space

Expected = Sequence[float | None]
"""The metric of the goal, then that of each bound; None: the model has no value."""


@dataclass(frozen=True)
class Prior:
    """The expectation of a model."""

    screened: Sequence[Point]
    """Points that it was asked for beforehand: those worth trying are among them."""
    expect: Callable[[Sequence[Point]], Sequence[Expected]]

    def of(self, at: int, points: Sequence[Point], scale: Callable[[float], float]) -> Numbers:
        """Values of a metric on a scale; the worst of the screened points where there is none. 0 everywhere if the
        model does not know the metric.
        """
        values = [one[at] for one in self.expect(self.screened)]
        known = [scale(value) for value in values if value is not None and value > 0]
        if not known:
            return np.zeros(len(points))
        worst = min(known)
        found = [one[at] for one in self.expect(points)]
        return np.asarray([scale(value) if value is not None and value > 0 else worst for value in found])

    def design(self, space: Space, count: int, merits: Numbers) -> list[Point]:
        """Points to begin with, the best first: each is the best of those that differ enough from the ones before.
        `merits`: of the screened points.
        """
        order = [self.screened[at] for at in np.argsort(-merits, kind="stable")[:_MOST]]
        apart = space.distances(order, order).sum(axis=0)
        chosen: list[int] = []
        least = float(len(space.axes))
        while len(chosen) < min(count, len(order)):
            near = apart[:, chosen].min(axis=1) if chosen else np.full(len(order), math.inf)
            near[chosen] = -1
            if not (near >= least).any():
                least /= 2
                continue
            chosen.append(int(np.argmax(near >= least)))
        return [order[at] for at in chosen]


_MOST = 64
"""Best points among which those of the design are chosen."""
