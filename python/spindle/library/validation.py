"""The simulator compared with the real kernel, in measured cases, a grid and rebuilds, and with published arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spindle.cluster.choice import HERE, Choice
from spindle.library.session import Progress, watched
from spindle.run.errors import Usage

if TYPE_CHECKING:
    from spindle.library.plot import Plot
    from spindle.validation.grid.compare import GridReport
    from spindle.validation.grid.grids import GridName
    from spindle.validation.kernel.compare import KernelReport
    from spindle.validation.kernel.runner import Runner
    from spindle.validation.published.compare import FigureComparison, PublishedReport
    from spindle.validation.published.sensitivity import Banded, SensitivityReport
    from spindle.validation.rebuild import RebuildReport


def validate_kernel(
    folder: str | os.PathLike[str],
    runner: Runner | None = None,
    *,
    kernel: str | None = None,
    only: Sequence[str] = (),
    jobs: int = 1,
) -> KernelReport:
    """Repeat the cases of a folder with a runner, the simulator unless given. `kernel`: with the lab's kernel of this
    version, or the `default`, in `jobs` labs at a time. `only`: patterns of names of cases. Raises CasesError,
    LabMissing or LabError.
    """
    from spindle.run.targets.kernel import DEFAULT
    from spindle.validation.kernel.compare import report
    from spindle.validation.kernel.exact import LabRunner
    from spindle.validation.kernel.fast import SimulatorRunner

    if kernel is not None:
        runner = LabRunner(None if kernel == DEFAULT else kernel, jobs)
    return report(Path(folder), runner or SimulatorRunner(), only)


def validate_grid(
    only: str = "",
    *,
    grid: GridName = "direct",
    seed: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> GridReport:
    """Run the grid of direct I/O, of buffered I/O or of write-intent bitmaps in the simulator and in the lab: all
    points, or those whose name contains `only`. `seed`: other points of this kind. `say` receives the progress. Raises
    `spindle.Error`.
    """
    from spindle.host.signals import unwinding
    from spindle.validation.grid.compare import report
    from spindle.validation.grid.grids import GRIDS

    of = GRIDS[grid]
    chosen = [point for point in of.points(of.seed if seed is None else seed) if only in point.name]
    if not chosen:
        raise Usage(f"{only}: no point of the grid has this in its name; leave it out to see all names")
    with unwinding():
        return report(of, say, chosen)


def validate_rebuild(only: str = "", *, say: Callable[[str], None] = lambda text: None) -> RebuildReport:
    """Run rebuilds beside loads, or those whose name contains `only`, in the simulator and in the lab. `say` receives
    the progress. Raises `spindle.Error`.
    """
    from spindle.host.signals import unwinding
    from spindle.validation.rebuild import points, report

    chosen = [point for point in points() if only in point.name]
    if not chosen:
        raise Usage(f"{only}: no rebuild has this in its name; leave it out to see all names")
    with unwinding():
        return report(say, chosen)


def validate_published(
    folder: str | os.PathLike[str], where: Choice = HERE, progress: Progress = False
) -> PublishedReport:
    """Predict the published measurements in a folder's tables. Raises `spindle.Error`."""
    from spindle.cluster.sharing import opened
    from spindle.validation.published.compare import report

    with watched(progress) as watch, opened(where, watch) as place:
        return report(Path(folder), place, watch)


def validate_sensitivity(
    folder: str | os.PathLike[str], where: Choice = HERE, progress: Progress = False
) -> SensitivityReport:
    """Predict the published measurements with each assumed number at both ends of its range. Raises `spindle.Error`."""
    from spindle.cluster.sharing import opened
    from spindle.validation.published.sensitivity import report

    with watched(progress) as watch, opened(where, watch) as place:
        return report(Path(folder), place, watch)


def published_plot(figures: Sequence[FigureComparison] | Sequence[Banded]) -> Plot:
    """Draw published figures against predicted ones, with their bands if they have some."""
    from spindle.library.plot import Plot
    from spindle.report.charts.published import published_charts

    return Plot(published_charts(figures), "Published against predicted")


def grid_plot(report: GridReport) -> Plot:
    """Draw the differences of a grid."""
    from spindle.library.plot import Plot
    from spindle.report.charts.grid import grid_charts

    return Plot(grid_charts(report), "The simulator against the real kernel")
