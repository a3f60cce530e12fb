"""The grids: their points, the goals that the simulator has to reach, and why a point may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from spindle.validation.grid import bitmaps, buffered, causes, points
from spindle.validation.grid.outcomes import GridPoint, PointOutcomes

Figure = Literal["throughput", "mean", "p99"]
GridName = Literal["direct", "buffered", "bitmaps"]


class Goal(Struct, frozen=True):
    """A share of the points must have a figure within a bound."""

    figure: Figure
    """`mean` and `p99`: of latency."""
    within: float
    share: float


@dataclass(frozen=True)
class Grid:
    """A grid."""

    points: Callable[[int], Sequence[GridPoint]]
    """Points that are dealt out with a seed."""
    seed: int
    """The seed of the grid that is published."""
    goals: tuple[Goal, ...]
    figures: tuple[Figure, ...]
    """The figures that say something."""
    beside: str
    """The factor whose values are side by side at each level in a chart."""
    cause: Callable[[PointOutcomes], str]
    """The likely reason of a difference beyond the bounds."""


_GOALS = (Goal("throughput", 0.05, 0.95), Goal("mean", 0.10, 0.90))
_FIGURES: tuple[Figure, ...] = ("throughput", "mean", "p99")
DIRECT = Grid(points.points, points.SEED, _GOALS, _FIGURES, "scheduler", causes.direct)
_BUFFERED_GOALS = (Goal("throughput", 0.10, 0.90),)
BUFFERED = Grid(buffered.points, buffered.SEED, _BUFFERED_GOALS, ("throughput",), "on it", causes.buffered)
"""Its latencies say little: most requests end in memory."""
BITMAPS = Grid(bitmaps.points, bitmaps.SEED, _GOALS, _FIGURES, "bitmap", causes.bitmaps)
GRIDS: dict[GridName, Grid] = {
    "direct": DIRECT,
    "buffered": BUFFERED,
    "bitmaps": BITMAPS,
}
