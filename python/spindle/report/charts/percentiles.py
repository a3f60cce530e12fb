"""Latency over percentiles: 90 %, 99 %, 99.9 % at equal distances, as HdrHistogram plots them, latency logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report import histogram
from spindle.report.charts import parts, theme
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Case, ops
from spindle.report.terminal.table import Column
from spindle.result.figures_properties import DATA, NAMES
from spindle.result.record import Level

LEAST = 20
"""Fewest requests for percentiles."""
STEPS = (1.0, 2.0, 3.0, 5.0, 7.0)
"""Points of a curve within one decade of percentiles."""
SHOWN = (50.0, 90.0, 99.0, 99.9, 99.99)
"""Percentiles of the table."""


def charts(cases: Sequence[Case]) -> list[Chart]:
    """Return a chart for each operation, of a selection of cases if there are too many."""
    found = []
    for direction in (*DATA, *NAMES):
        curves = [(case, points) for case in cases if len(points := curve(case, direction)) > 1]
        if curves:
            found.append(_chart(direction, curves))
    return found


def curve(case: Case, direction: str) -> list[tuple[float, int]]:
    """Return (1 / share of slower requests, ns), up to the last percentile with a request of its own."""
    histograms = case.latencies(direction)
    count = sum(op.requests for trial in case.trials for name, op in ops(trial.run) if name == direction)
    if count < LEAST:
        return []
    tails = [1.0, 0.9, 0.75, 0.5, 0.25]
    tails += [step * 10.0**-nines for nines in range(1, 8) for step in reversed(STEPS) if nines > 1 or step <= 1]
    tails = [tail for tail in tails if tail * count >= 1]
    found = histogram.percentiles(histograms, [100 * (1 - tail) for tail in tails])
    return [(1 / tail, ns) for tail, ns in zip(tails, found, strict=False)]


def _chart(direction: str, curves: Sequence[tuple[Case, list[tuple[float, int]]]]) -> Chart:
    drawn = _chosen(curves)
    labels = parts.shortened([case.label for case, _ in drawn])
    values: list[dict[str, Any]] = [
        {"case": label, "rank": rank, "ms": ns / 1e6, "invalid": False}
        for (_, points), label in zip(drawn, labels, strict=True)
        for rank, ns in points
    ]
    for (case, points), label in zip(drawn, labels, strict=True):
        if case.level is Level.INVALID:
            rank, ns = points[-1]
            values.append({"case": label, "rank": rank, "ms": ns / 1e6, "invalid": True})
    longest = max(points[-1][0] for _, points in drawn)
    nines = [10.0**power for power in range(8) if 10.0**power <= longest * 1.01]
    x = parts.number(
        "rank",
        "Percentile of requests (%)",
        log=10,
        scale={"domain": [1, longest], "nice": False},
        axis={"values": [1, 2, *nines[1:]], "labelExpr": _LABELS},
    )
    latencies = [float(value["ms"]) for value in values]
    y = parts.number(
        "ms",
        "Latency (ms)",
        log=10,
        scale=parts.log_scale(latencies),
        axis={"values": parts.decades(latencies)},
    )
    looks = parts.series("case", "Case", labels, marks=False)
    specification = parts.whole(
        width=parts.WIDTH,
        height=parts.HEIGHT,
        data={"values": values},
        layer=[
            {
                "transform": [{"filter": "!datum.invalid"}],
                "mark": {"type": "line", "interpolate": "monotone"},
                "encoding": {"x": x, "y": y, **looks},
            },
            parts.crosses(x, y),
        ],
    )
    return Chart(
        key=f"percentiles-{direction}",
        title=f"Latency percentiles of {direction}s",
        says=_says(direction, curves, drawn),
        specification=specification,
        sheet=_sheet(direction, curves),
    )


_LABELS = "datum.value == 1 ? '0' : datum.value == 2 ? '50' : format(100 * (1 - 1 / datum.value), '.6~f')"


def _chosen(curves: Sequence[tuple[Case, list[tuple[float, int]]]]) -> Sequence[tuple[Case, list[tuple[float, int]]]]:
    """Return all, or a selection evenly spread over the order of their 99th percentiles, with both extremes."""
    return (
        parts.spread(sorted(curves, key=lambda pair: _p99(pair[1])), theme.SERIES)
        if len(curves) > theme.SERIES
        else curves
    )


def _p99(points: Sequence[tuple[float, int]]) -> int:
    return next((ns for rank, ns in points if rank >= 99.9), points[-1][1])


def _says(
    direction: str,
    curves: Sequence[tuple[Case, list[tuple[float, int]]]],
    drawn: Sequence[tuple[Case, list[tuple[float, int]]]],
) -> str:
    text = (
        f"So many per cent of the {direction}s were answered within this time; each step to the right is a tenth of "
        "the requests that are left."
    )
    if len(curves) > 1:
        least, *_, most = [units.duration(tail) for tail in sorted(_p99(points) for _, points in curves)]
        text += f" 99 % of the {direction}s took at most {least}" + (
            " in every case." if least == most else f" to {most}, case by case."
        )
    if len(drawn) < len(curves):
        text += (
            f" {len(drawn)} of {len(curves)} cases are drawn, at equal steps of rank from "
            "the shortest to the longest 99th percentile; the table has all."
        )
    if any(case.level is Level.INVALID for case, _ in drawn):
        text += " A red cross ends a curve whose verdict is invalid."
    return text


def _sheet(direction: str, curves: Sequence[tuple[Case, list[tuple[float, int]]]]) -> Sheet:
    rows = []
    for case, _ in curves:
        found = histogram.percentiles(case.latencies(direction), SHOWN)
        rows.append([case.label, *(plain(ns / 1e6) for ns in found), case.level])
    heads = [Column(f"p{percent:g} ms") for percent in SHOWN]
    columns = [Column("case", words=True), *heads, Column("verdict", words=True)]
    return Sheet(f"Percentiles of {direction}s", columns, rows, folded=True)
