"""All points of the grid, run both ways and compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from msgspec.structs import replace

from spindle.validation.grid.grids import Figure, Goal, Grid
from spindle.validation.grid.outcomes import GridPoint, PointOutcomes, measured

JOBS = 2
"""Labs at a time."""


class PointComparison(Struct, frozen=True, kw_only=True):
    """One point. Errors are shares of the exact figure; above 0, the simulator's is larger."""

    both: PointOutcomes
    throughput_error: float
    """Also of the requests per second: all requests of a point are equally long."""
    mean_error: float
    p99_error: float
    """The farther one of reads and writes."""
    cause: str | None
    """The reason of a difference beyond the bounds."""

    def error(self, figure: Figure) -> float:
        """Error of one of the figures."""
        errors = {"throughput": self.throughput_error, "mean": self.mean_error, "p99": self.p99_error}
        return errors[figure]

    def agrees(self, goal: Goal) -> bool:
        """The figure is within its bound."""
        return abs(self.error(goal.figure)) <= goal.within


class GridReport(Struct, frozen=True, kw_only=True):
    """The whole grid."""

    compared: list[PointComparison]
    goals: tuple[Goal, ...]
    figures: tuple[Figure, ...]
    """The figures that say something."""
    beside: str
    """The factor whose values are side by side at each level in a chart."""
    cpu_s: float
    """CPU time of all runs."""

    def share(self, goal: Goal) -> float:
        """Share of the points that agree."""
        agree = [of.agrees(goal) for of in self.compared]
        return sum(agree) / len(agree) if agree else 1.0

    @property
    def reaches_goals(self) -> bool:
        """All goals are reached."""
        return all(self.share(goal) >= goal.share for goal in self.goals)


def report(grid: Grid, say: Callable[[str], None], points: Sequence[GridPoint]) -> GridReport:
    """Run points of a grid; `say` receives the progress. Raises LabMissing or LabError."""
    found: list[PointComparison] = []
    with ThreadPoolExecutor(JOBS) as pool:
        for number, both in enumerate(pool.map(measured, points), 1):
            found.append(compare(grid, both))
            say(f"{number} of {len(points)}: {both.point.name}")
    cpu_s = sum(of.both.fast.cpu_s + of.both.exact.cpu_s for of in found)
    return GridReport(compared=found, goals=grid.goals, figures=grid.figures, beside=grid.beside, cpu_s=cpu_s)


def compare(grid: Grid, both: PointOutcomes) -> PointComparison:
    """Compare the figures of a point."""
    fast, exact = both.fast, both.exact
    p99 = [_error(fast.operations[name].p99_ns, of.p99_ns) for name, of in exact.operations.items()]
    of = PointComparison(
        both=both,
        throughput_error=_error(fast.bytes_per_s, exact.bytes_per_s),
        mean_error=_error(fast.mean_ns, exact.mean_ns),
        p99_error=max(p99, key=abs),
        cause=None,
    )
    return of if all(of.agrees(goal) for goal in grid.goals) else replace(of, cause=grid.cause(both))


def _error(fast: float, exact: float) -> float:
    """Buffered writes end at once, so that 0 is possible."""
    if exact == 0:
        return math.inf if fast else 0.0
    return fast / exact - 1
