"""The influence of each axis: how far its levels move the expected value, and the curve through the chosen point."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from spindle.search.process import Process
from spindle.search.space import IGNORED, Point

SAMPLE = 64
"""Points over which the other axes are averaged."""
SURE = 1.959963984540054
"""Half the 95 % interval of a normal distribution, in standard deviations."""


@dataclass(frozen=True)
class CurvePoint:
    """One level of one axis, the others as at the chosen point."""

    label: str
    change: float
    """Expected value less that of the chosen point."""
    error: float


@dataclass(frozen=True)
class Influence:
    """The influence of one axis."""

    name: str
    best: str
    worst: str
    gain: float
    """Expected value of the best level less that of the worst, in the mean over the other axes."""
    low: float
    high: float
    """95 % interval of the gain."""
    curve: Sequence[CurvePoint]
    untried: Sequence[str]
    """Levels that no trial had."""

    @property
    def is_flat(self) -> bool:
        """True if the trials do not show that its levels differ."""
        return self.low <= 0


def influences(process: Process, at: Point, seed: int = 1, sample: int = SAMPLE) -> list[Influence]:
    """Every axis, the one that matters most first."""
    by = random.Random(f"{seed}/curves")
    others = [point for _ in range(sample) if (point := process.space.draw(by)) is not None]
    found = [_influence(process, axis, at, others) for axis in range(len(process.space.axes))]
    return sorted(found, key=lambda one: -one.gain)


def _influence(process: Process, axis: int, at: Point, others: Sequence[Point]) -> Influence:
    space, labels = process.space, process.space.axes[axis].labels
    active = [point for point in others if point[axis] != IGNORED] or [at]
    groups = [[_moved(point, axis, level) for point in active] for level in range(len(labels))]
    means = [process.contrast(group, [at])[0] for group in groups]
    best, worst = max(range(len(labels)), key=means.__getitem__), min(range(len(labels)), key=means.__getitem__)
    gain, error = process.contrast(groups[best], groups[worst]) if best != worst else (0.0, 0.0)
    curve = []
    for level, label in enumerate(labels):
        change, doubt = process.contrast([space.canonical(_moved(at, axis, level))], [at])
        curve.append(CurvePoint(label, change, doubt))
    tried = {point[axis] for point in process.points}
    return Influence(
        name=space.axes[axis].name,
        best=labels[best],
        worst=labels[worst],
        gain=gain,
        low=gain - SURE * error,
        high=gain + SURE * error,
        curve=curve if at[axis] != IGNORED else [],
        untried=[label for level, label in enumerate(labels) if level not in tried],
    )


def _moved(point: Point, axis: int, level: int) -> Point:
    return (*point[:axis], level, *point[axis + 1 :])
