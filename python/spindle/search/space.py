"""A space of settings: axes of levels, numbers on a scale or words, some without effect at levels of others."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Point = tuple[int, ...]
"""The number of the level on each axis; `IGNORED` where the axis has no effect."""
IGNORED = -1
_DRAWS = 1000
"""Most draws for a point that the rules allow."""
_DESIGNS = 40
"""Random designs of which the most even one is taken."""


@dataclass(frozen=True)
class Axis:
    """One setting."""

    name: str
    labels: tuple[str, ...]
    positions: tuple[float | None, ...]
    """Place of each level on the axis, from 0 to 1; None: a word, as far from every other level as can be."""


def axis(name: str, labels: Sequence[str], is_number: Callable[[str], bool]) -> Axis:
    """An axis whose numbers, given in order, are evenly spaced on their scale."""
    numeric = [label for label in labels if is_number(label)]
    if len(numeric) < 3:
        return Axis(name, tuple(labels), (None,) * len(labels))
    place = {label: at / (len(numeric) - 1) for at, label in enumerate(numeric)}
    return Axis(name, tuple(labels), tuple(place.get(label) for label in labels))


@dataclass(frozen=True)
class Space:
    """All combinations that the rules allow."""

    axes: tuple[Axis, ...]
    ignores: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """(axis, level) -> axes that have no effect at this level."""
    allowed: Callable[[Point], bool] = lambda point: True

    @property
    def size(self) -> int:
        """Number of combinations, before the rules."""
        return math.prod(len(one.labels) for one in self.axes)

    def canonical(self, point: Sequence[int]) -> Point:
        """The point with `IGNORED` on every axis that has no effect there."""
        gone = self._without_effect(point)
        return tuple(IGNORED if at in gone else level for at, level in enumerate(point))

    def _without_effect(self, levels: Sequence[int]) -> set[int]:
        return {other for at, level in enumerate(levels) for other in self.ignores.get((at, level), frozenset())}

    def every(self) -> Iterator[Point]:
        """Every point once, in order."""
        seen: set[Point] = set()
        for levels in self._combinations(()):
            point = self.canonical(levels)
            if point not in seen and self.allowed(point):
                seen.add(point)
                yield point

    def _combinations(self, begun: Point) -> Iterator[Point]:
        """Combinations that begin so, in order. Of an axis without effect there only the first level: a product of all
        levels can have a million combinations of such axes before the second point.
        """
        at = len(begun)
        if at == len(self.axes):
            yield begun
            return
        without_effect = at in self._without_effect(begun) and not any(own == at for own, _ in self.ignores)
        for level in range(1 if without_effect else len(self.axes[at].labels)):
            yield from self._combinations((*begun, level))

    def draw(self, by: random.Random) -> Point | None:
        """A random point; None if the rules allow none of many."""
        for _ in range(_DRAWS):
            point = self.canonical([by.randrange(len(one.labels)) for one in self.axes])
            if self.allowed(point):
                return point
        return None

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Points that differ on one axis."""
        for at, one in enumerate(self.axes):
            for level in range(len(one.labels)):
                if level != point[at]:
                    # Axes that had no effect may have one now: from their first level.
                    moved = [max(0, old) for old in point]
                    moved[at] = level
                    found = self.canonical(moved)
                    if found != point and self.allowed(found):
                        yield found

    def distances(self, these: Sequence[Point], those: Sequence[Point]) -> Numbers:
        """Squared distances on each axis: shape (axes, these, those), from 0 to 1."""
        left, right = (np.asarray(one, dtype=np.intp).reshape(len(one), len(self.axes)) for one in (these, those))
        return np.stack([_squares(one, left[:, at], right[:, at]) for at, one in enumerate(self.axes)])

    def design(self, count: int, seed: str) -> list[Point]:
        """Points spread evenly over the space: the Latin hypercube, of some random ones, whose nearest points are
        farthest apart (Morris and Mitchell, J. Statistical Planning and Inference 43 (1995) 381-402).
        """
        by = random.Random(seed)
        designs = [self._hypercube(count, by) for _ in range(_DESIGNS)]
        return max(designs, key=lambda points: (len(points), self._nearest(points)))

    def _hypercube(self, count: int, by: random.Random) -> list[Point]:
        columns = [by.sample([at * len(one.labels) // count for at in range(count)], count) for one in self.axes]
        points = [self.canonical(levels) for levels in zip(*columns, strict=True)]
        return [point for point in dict.fromkeys(points) if self.allowed(point)]

    def _nearest(self, points: Sequence[Point]) -> float:
        if len(points) < 2:
            return 0.0
        between = self.distances(points, points).sum(axis=0)
        return float(between[~np.eye(len(points), dtype=bool)].min())


def _squares(one: Axis, left: NDArray[np.intp], right: NDArray[np.intp]) -> Numbers:
    places = np.asarray([np.nan if place is None else place for place in (*one.positions, None)], dtype=np.float64)
    apart = (places[left][:, None] - places[right][None, :]) ** 2
    differs = (left[:, None] != right[None, :]).astype(np.float64)
    found: Numbers = np.where(np.isnan(apart), differs, apart)
    return found
