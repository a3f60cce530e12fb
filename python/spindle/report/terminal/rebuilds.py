"""Rebuilds run both ways as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.rebuild import GOAL, WITHIN, PointComparison, RebuildReport

_COLUMNS = [
    *(Column(head, words=True) for head in ("level", "load", "limits")),
    *map(Column, ("rebuild s", "diff", "IOPS whole", "IOPS beside", "slowdown", "diff")),
]
_NONE = "-"


def rebuilds_page(report: RebuildReport) -> Iterator[str]:
    """Yield the page."""
    yield "Figures of the real kernel, means of several seeds; differences of the simulator."
    yield ""
    yield from table(_COLUMNS, [_row(of) for of in report.compared], style_of(sys.stdout))
    yield ""
    count = len(report.compared)
    reached = "reached" if report.reaches_goal else "missed"
    agreeing = round(report.share * count)
    yield f"rebuild time and slowdown within {WITHIN:.0%}: {agreeing} of {count} (goal {GOAL:.0%}: {reached})"
    yield f"CPU time of the lab: {report.cpu_s:.0f} s"


def _row(of: PointComparison) -> list[str]:
    exact = of.exact
    return [
        of.point.level,
        of.point.load,
        of.point.limit or _NONE,
        _NONE if exact.rebuild_s is None else f"{exact.rebuild_s:.2f}",
        _NONE if of.rebuild_error is None else f"{of.rebuild_error:+.1%}",
        f"{exact.whole_iops:.0f}",
        f"{exact.iops:.0f}",
        f"{exact.slowdown:.2f}",
        f"{of.slowdown_error:+.1%}",
    ]
