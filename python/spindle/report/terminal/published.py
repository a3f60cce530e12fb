"""Published figures beside predicted ones: a table for each file, then the goals."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spindle.base.numbers import plain
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.published.compare import PublishedReport

COLUMNS = [
    Column("row", words=True),
    Column("figure", words=True),
    *map(Column, ("published", "predicted")),
    Column("unit", words=True),
    Column("error"),
]


def published_page(report: PublishedReport) -> Iterator[str]:
    """Yield the page."""
    for name in dict.fromkeys(of.table for of in report.compared):
        rows = [
            [of.row, of.figure, plain(of.published), plain(of.predicted), of.unit, f"{of.error:+.0%}"]
            for of in report.compared
            if of.table == name
        ]
        yield name
        yield from table(COLUMNS, rows, style_of(sys.stdout))
        yield ""
    goals = [
        [
            goal.table,
            goal.what,
            f"{goal.value:.2f}" if "correlation" in goal.what else f"{goal.value:.1%}",
            f"{goal.bound:.2f}" if "correlation" in goal.what else f"{goal.bound:.0%}",
            "reached" if goal.is_reached else "missed",
        ]
        for goal in report.goals
    ]
    heads = [Column("table", words=True), Column("figures", words=True), *map(Column, ("value", "goal"))]
    yield from table([*heads, Column("", words=True)], goals, style_of(sys.stdout))
    if report.skipped:
        yield ""
        yield "not predicted:"
    yield from (f"  {skipped.table}, {skipped.row}: {skipped.reason}" for skipped in report.skipped)
