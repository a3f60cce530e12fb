"""Runs in the shapes of other tools' output, for eyes and scripts that know those.

Only measured figures are filled in: a figure that Spindle does not have is left out (fio), or its cell is empty
(bonnie++, iozone). The verdict is in an additional line, which these tools do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spindle.report.terminal import randomio as randomio_table
from spindle.report.terminal.shapes import bonnie, fio, iozone
from spindle.report.terminal.style import Style
from spindle.result.record import Level, RunRecord


def _randomio(runs: Sequence[RunRecord]) -> list[str]:
    return [
        line for run in runs for line in [*([] if len(runs) == 1 else [run.id]), *randomio_table.page(run, Style())]
    ]


SHAPES: dict[str, Callable[[Sequence[RunRecord]], list[str]]] = {
    "fio": fio.page,
    "bonnie": bonnie.page,
    "iozone": iozone.page,
    "randomio": _randomio,
}
"""Name -> lines."""


def page(shape: str, runs: Sequence[RunRecord]) -> list[str]:
    """Return the runs in that shape, then their problems."""
    lines = SHAPES[shape](runs)
    for run in runs:
        for verdict in run.verdicts:
            if verdict.level is not Level.OK:
                lines.append(f"{verdict.level}: {run.id}: {verdict.check}: {verdict.evidence}")
    return lines
