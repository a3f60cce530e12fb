"""The grid of points run both ways as a page: a line per point, what differs and why, the goals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.grid.compare import (
    MEAN_GOAL,
    MEAN_WITHIN,
    THROUGHPUT_GOAL,
    THROUGHPUT_WITHIN,
    GridReport,
    PointComparison,
)

_COLUMNS = [
    *(Column(head, words=True) for head in ("level", "drive", "scheduler", "load", "KiB", "out")),
    *map(Column, ("IOPS", "MB/s", "diff", "mean ms", "diff", "p99 ms", "diff")),
]
_SUMMARY = [
    Column("points with", words=True),
    *map(Column, ("n", "throughput 5 %", "mean 10 %", "median diff: throughput", "mean", "p99")),
]


def grid_page(report: GridReport) -> Iterator[str]:
    """Yield the page."""
    yield "Figures of the real kernel; differences of the simulator."
    yield ""
    yield from table(_COLUMNS, [_row(of) for of in report.compared], style_of(sys.stdout))
    yield ""
    yield from table(_SUMMARY, list(_summary(report.compared)), style_of(sys.stdout))
    yield ""
    for what, within, share, goal in (
        ("IOPS and throughput", THROUGHPUT_WITHIN, report.throughput_share, THROUGHPUT_GOAL),
        ("mean latency", MEAN_WITHIN, report.mean_share, MEAN_GOAL),
    ):
        agreeing = round(share * len(report.compared))
        reached = "reached" if share >= goal else "missed"
        yield f"{what} within {within:.0%}: {agreeing} of {len(report.compared)} (goal {goal:.0%}: {reached})"
    yield f"CPU time: {report.cpu_s:.0f} s"
    differing = [of for of in report.compared if of.cause is not None]
    if differing:
        yield ""
        yield "beyond the bounds, with the likely cause:"
    for of in sorted(differing, key=lambda of: -abs(of.throughput_error)):
        yield f"  {of.both.point.name}: throughput {of.throughput_error:+.1%}, mean {of.mean_error:+.1%}: {of.cause}"


def _summary(compared: list[PointComparison]) -> Iterator[list[str]]:
    for factor in ("level", "scheduler", "drive"):
        for value in dict.fromkeys(getattr(of.both.point, factor) for of in compared):
            yield _summed(value, [of for of in compared if getattr(of.both.point, factor) == value])
    yield _summed("all", compared)


def _summed(name: str, compared: list[PointComparison]) -> list[str]:
    return [
        name,
        str(len(compared)),
        str(sum(of.throughput_agrees for of in compared)),
        str(sum(of.mean_agrees for of in compared)),
        *(
            f"{median(abs(getattr(of, error)) for of in compared):.1%}"
            for error in ("throughput_error", "mean_error", "p99_error")
        ),
    ]


def _row(of: PointComparison) -> list[str]:
    point, exact = of.both.point, of.both.exact
    p99_ns = max(operation.p99_ns for operation in exact.operations.values())
    return [
        point.level,
        point.drive,
        point.scheduler,
        point.operation,
        str(point.size_kib),
        f"{point.outstanding}{'t' if point.threads else ''}",
        f"{exact.iops:.0f}",
        f"{exact.bytes_per_s / 1e6:.1f}",
        f"{of.throughput_error:+.1%}",
        f"{exact.mean_ns / 1e6:.3f}",
        f"{of.mean_error:+.1%}",
        f"{p99_ns / 1e6:.3f}",
        f"{of.p99_error:+.1%}",
    ]
