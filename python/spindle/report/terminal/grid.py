"""The grid of points run both ways as a page: a line per point, what differs and why, the goals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.grid.compare import GridReport, PointComparison
from spindle.validation.grid.grids import Figure, Goal

_WORDS: dict[Figure, str] = {"throughput": "IOPS and throughput", "mean": "mean latency", "p99": "p99 of latency"}


def grid_page(report: GridReport) -> Iterator[str]:
    """Yield the page."""
    yield "Figures of the real kernel; differences of the simulator."
    yield ""
    yield from table(_columns(report), [_row(report, of) for of in report.compared], style_of(sys.stdout))
    yield ""
    yield from table(_summary_columns(report), list(_summary(report)), style_of(sys.stdout))
    yield ""
    count = len(report.compared)
    for goal in report.goals:
        share = report.share(goal)
        reached = "reached" if share >= goal.share else "missed"
        agreeing = f"{round(share * count)} of {count}"
        yield f"{_WORDS[goal.figure]} within {goal.within:.0%}: {agreeing} (goal {goal.share:.0%}: {reached})"
    yield f"CPU time: {report.cpu_s:.0f} s"
    differing = [of for of in report.compared if of.cause is not None]
    if differing:
        yield ""
        yield "beyond the bounds, with the likely cause:"
    for of in sorted(differing, key=lambda of: -abs(of.throughput_error)):
        errors = ", ".join(f"{goal.figure} {of.error(goal.figure):+.1%}" for goal in report.goals)
        yield f"  {of.both.point.name}: {errors}: {of.cause}"


def _columns(report: GridReport) -> list[Column]:
    words = list(report.compared[0].both.point.cells)
    heads = {"throughput": ("IOPS", "MB/s", "diff"), "mean": ("mean ms", "diff"), "p99": ("p99 ms", "diff")}
    figures = [head for figure in report.figures for head in heads[figure]]
    return [*(Column(head, words=True) for head in words), *map(Column, figures)]


def _row(report: GridReport, of: PointComparison) -> list[str]:
    exact = of.both.exact
    p99_ns = max(operation.p99_ns for operation in exact.operations.values())
    figures = {
        "throughput": [f"{exact.iops:.0f}", f"{exact.bytes_per_s / 1e6:.1f}"],
        "mean": [f"{exact.mean_ns / 1e6:.3f}"],
        "p99": [f"{p99_ns / 1e6:.3f}"],
    }
    shown = (cell for name in report.figures for cell in (*figures[name], f"{of.error(name):+.1%}"))
    return [*of.both.point.cells.values(), *shown]


def _summary_columns(report: GridReport) -> list[Column]:
    goals = [f"{goal.figure} {goal.within:.0%}" for goal in report.goals]
    medians = [f"median diff: {figure}" if at == 0 else figure for at, figure in enumerate(report.figures)]
    return [Column("points with", words=True), *map(Column, ("n", *goals, *medians))]


def _summary(report: GridReport) -> Iterator[list[str]]:
    compared = report.compared
    for factor in compared[0].both.point.factors:
        values = dict.fromkeys(of.both.point.factors[factor] for of in compared)
        for value in sorted(values, key=_size_kib):
            yield _summed(report, value, [of for of in compared if of.both.point.factors[factor] == value])
    yield _summed(report, "all", compared)


def _size_kib(value: str) -> int:
    """For the order of sizes; other values stay as they come."""
    size = value.removesuffix("K").split()[-1]
    return int(size) if value.endswith("K") and size.isdigit() else 0


def _summed(report: GridReport, name: str, compared: list[PointComparison]) -> list[str]:
    return [
        name,
        str(len(compared)),
        *(str(_agreeing(goal, compared)) for goal in report.goals),
        *(f"{median(abs(of.error(figure)) for of in compared):.1%}" for figure in report.figures),
    ]


def _agreeing(goal: Goal, compared: list[PointComparison]) -> int:
    return sum(of.agrees(goal) for of in compared)
