"""A latency search: its points, the plot, and the highest load within the bounds."""

from __future__ import annotations

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal import plot
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.search import Bound, BoundCheck, TargetPoint, TargetSearch

_HEADS = {"depth": "outstanding", "rate": "asked IOPS", "need": "times the need"}
MARKS = {"held": "o", "failed": "x", "undecided": "?"}


def page(search: TargetSearch, style: Style) -> list[str]:
    """Return table, plot and sentences."""
    columns, rows = table_of(search)
    drawn = plot.drawn(
        [
            plot.Mark(point.iops, seen.latency_ns or 0.0, "#" if point.value == search.held else MARKS[point.decision])
            for point in search.points
            if (seen := point.checks[0]) is not None
        ],
        style,
        f"{search.bounds[0].figure} latency",
        f"o held, x failed, ? undecided, # the most that held ({search.bounds[0].words})",
    )
    said = [line for text in sentences(search) for line in style.wrap(text)]
    return [*table(columns, rows, style), *([""] if drawn else []), *drawn, "", *said]


def table_of(search: TargetSearch) -> tuple[list[Column], list[list[str]]]:
    """Return one row per point."""
    heads = [_HEADS[search.variable], "IOPS", "MB/s", "mean ms"]
    for bound in search.bounds:
        heads += [f"{bound.figure} ms", "over %" if bound.percentile is not None else "interval ms"]
    columns = [*(Column(head) for head in heads), Column("runs"), Column("", words=True)]
    return columns, [_row(search, point) for point in search.points]


def _row(search: TargetSearch, point: TargetPoint) -> list[str]:
    cells = [f"{point.value:.0f}" if search.variable == "depth" else plain(point.value)]
    cells += [plain(point.iops), plain(point.bytes_per_s / 1e6), plain(point.mean_latency_ns / 1e6)]
    for bound, seen in zip(search.bounds, point.checks, strict=True):
        cells += ["" if seen.latency_ns is None else plain(seen.latency_ns / 1e6), _interval(bound, seen)]
    says = "held" if point.decision == "held" else "failed" if point.sustained else "does not keep up"
    if point.decision == "undecided":
        says = "undecided"
    return [*cells, str(len(point.runs)), f"{says}{' <-' if point.value == search.held else ''}"]


def _interval(bound: Bound, seen: BoundCheck) -> str:
    """Return the share over the limit with its interval, or the interval of the mean."""
    if bound.percentile is None:
        return f"{plain(seen.low / 1e6)} to {plain(seen.high / 1e6)}"
    if seen.fraction_over is None:
        return ""
    return f"{plain(100 * seen.fraction_over)} ({plain(100 * seen.low)} to {plain(100 * seen.high)})"


def sentences(search: TargetSearch) -> list[str]:
    """Return the answer: the highest load that held, the lowest that failed, both with figures."""
    bounds = " and ".join(bound.words for bound in search.bounds)
    held, failed = search.at(search.held), search.at(search.failed)
    if not search.points:
        return [f"No answer for {bounds}: nothing was measured."]
    if held is None:
        return [_none_held(search, bounds)]
    found = [
        f"With {bounds}: {units.count(held.iops)} IOPS, {units.rate(held.bytes_per_s)} at {_value(search, held)} "
        f"({_figures(search, held)})."
    ]
    if failed is not None:
        undecided = "cannot be distinguished from the bound"
        why = {"failed": "fails", "undecided": undecided, "held": "holds"}[failed.decision]
        if not failed.sustained:
            why = "is not served"
        found.append(
            f"The next point, {_value(search, failed)}, {why}: {units.count(failed.iops)} IOPS, "
            f"{_figures(search, failed)}."
        )
    return found


def _none_held(search: TargetSearch, bounds: str) -> str:
    """Say what happened at the smallest load: it fails, it is not served, or there are too few requests."""
    least = search.points[0]
    value, figures = _value(search, least), _figures(search, least)
    if not least.sustained:
        return f"No answer for {bounds}: {value} were not served as they came ({figures})."
    if least.decision == "undecided":
        return (
            f"No answer for {bounds}: at {value} {figures} was seen, which {units.count(least.requests)} requests "
            "cannot distinguish from the bound; longer runs (`seconds=`) can."
        )
    if search.variable == "depth" and least.value == 1:
        figures = _figures(search, least, " of single requests is")
    return f"Not even {value} keeps {bounds}: {figures} already."


def _value(search: TargetSearch, point: TargetPoint) -> str:
    match search.variable:
        case "depth":
            return f"{point.value:.0f} outstanding"
        case "need":
            return f"{point.value:.2f} times the need"
        case _:
            return f"{units.count(point.value)} requests/s"


def _figures(search: TargetSearch, point: TargetPoint, words: str = "") -> str:
    return ", ".join(
        f"{bound.figure}{words} {units.duration(seen.latency_ns)}"
        for bound, seen in zip(search.bounds, point.checks, strict=True)
        if seen.latency_ns is not None
    )
