"""All points of the grid, run both ways and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from spindle.validation.grid.causes import cause
from spindle.validation.grid.outcomes import PointOutcomes, measured
from spindle.validation.grid.points import Point, points

THROUGHPUT_WITHIN, THROUGHPUT_GOAL = 0.05, 0.95
MEAN_WITHIN, MEAN_GOAL = 0.10, 0.90
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

    @property
    def throughput_agrees(self) -> bool:
        """Throughput is within its bound."""
        return abs(self.throughput_error) <= THROUGHPUT_WITHIN

    @property
    def mean_agrees(self) -> bool:
        """Mean latency is within its bound."""
        return abs(self.mean_error) <= MEAN_WITHIN


class GridReport(Struct, frozen=True, kw_only=True):
    """The whole grid."""

    compared: list[PointComparison]
    cpu_s: float
    """CPU time of all runs."""

    @property
    def throughput_share(self) -> float:
        """Share of the points whose throughput agrees."""
        return _share([of.throughput_agrees for of in self.compared])

    @property
    def mean_share(self) -> float:
        """Share of the points whose mean latency agrees."""
        return _share([of.mean_agrees for of in self.compared])

    @property
    def reaches_goals(self) -> bool:
        """Both shares are reached."""
        return self.throughput_share >= THROUGHPUT_GOAL and self.mean_share >= MEAN_GOAL


def report(say: Callable[[str], None], chosen: Sequence[Point] | None = None) -> GridReport:
    """Run the grid, or some of its points; `say` receives the progress. Raises LabMissing or LabError."""
    grid = points() if chosen is None else list(chosen)
    found: list[PointComparison] = []
    with ThreadPoolExecutor(JOBS) as pool:
        for number, both in enumerate(pool.map(measured, grid), 1):
            found.append(compare(both))
            say(f"{number} of {len(grid)}: {both.point.name}")
    return GridReport(compared=found, cpu_s=sum(of.both.fast.cpu_s + of.both.exact.cpu_s for of in found))


def compare(both: PointOutcomes) -> PointComparison:
    """Compare the figures of a point."""
    fast, exact = both.fast, both.exact
    p99 = [fast.operations[name].p99_ns / of.p99_ns - 1 for name, of in exact.operations.items()]
    throughput_error = fast.bytes_per_s / exact.bytes_per_s - 1
    mean_error = fast.mean_ns / exact.mean_ns - 1
    differs = abs(throughput_error) > THROUGHPUT_WITHIN or abs(mean_error) > MEAN_WITHIN
    return PointComparison(
        both=both,
        throughput_error=throughput_error,
        mean_error=mean_error,
        p99_error=max(p99, key=abs),
        cause=cause(both) if differs else None,
    )


def _share(agree: list[bool]) -> float:
    return sum(agree) / len(agree) if agree else 1.0
