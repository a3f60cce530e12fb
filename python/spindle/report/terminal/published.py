"""Published figures beside predicted ones: a table for each file, then the goals."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from spindle.base.numbers import plain
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.published.compare import Goal, PublishedReport
from spindle.validation.published.sensitivity import SensitivityReport

LEAST_EFFECT = 0.005
"""Smaller changes of a goal's value are left out."""
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
    yield from _goals(report.goals)
    if report.skipped:
        yield ""
        yield "not predicted:"
    yield from (f"  {skipped.table}, {skipped.row}: {skipped.reason}" for skipped in report.skipped)


def _goals(goals: Sequence[Goal]) -> Iterator[str]:
    rows = [
        [
            goal.table,
            goal.what,
            _value(goal.what, goal.value),
            f"{goal.bound:.2f}" if "correlation" in goal.what else f"{goal.bound:.0%}",
            "reached" if goal.is_reached else "missed",
        ]
        for goal in goals
    ]
    heads = [Column("table", words=True), Column("figures", words=True), *map(Column, ("value", "goal"))]
    yield from table([*heads, Column("", words=True)], rows, style_of(sys.stdout))


def _value(what: str, value: float) -> str:
    return f"{value:.2f}" if "correlation" in what else f"{value:.1%}"


def sensitivity_page(report: SensitivityReport) -> Iterator[str]:
    """Yield the page: for each table the assumed numbers by their effect on its goals."""
    heads = [Column("part", words=True), Column("number", words=True), Column("range", words=True)]
    heads += [Column("figures", words=True), *map(Column, ("at the least", "as assumed", "at the most"))]
    for name in dict.fromkeys(goal.table for goal in report.goals):
        rows = [
            [
                of.part,
                of.key,
                f"{_plain(of.least)} to {_plain(of.most)}, {_plain(of.value)}",
                of.what,
                *(_value(of.what, value) for value in (of.at_least, of.as_assumed, of.at_most)),
            ]
            for of in report.effects
            if of.table == name and of.largest >= LEAST_EFFECT
        ]
        yield name
        yield from table(heads, rows, style_of(sys.stdout))
        yield ""
    yield from _goals(report.goals)
    within = sum(of.least <= of.compared.published <= of.most for of in report.figures)
    yield ""
    yield f"{within} of {len(report.figures)} published figures are within the band of their prediction"


def _plain(value: str) -> str:
    return value.strip("'\"")
