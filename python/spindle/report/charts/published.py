"""Published figures of real arrays against predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.table import Column
from spindle.validation.published.compare import FigureComparison
from spindle.validation.published.sensitivity import Banded

_SIDE = 300
_BEYOND = 10.0
"""Bands are cut where they go further beyond all figures, as a factor."""
_KINDS = {
    "rate": "rates (each in its own unit)",
    "read latency": "read latency (ms)",
    "write latency": "write latency (ms)",
}


def published_charts(figures: Sequence[FigureComparison] | Sequence[Banded]) -> list[Chart]:
    """One chart for each kind of figure: on the line both agree."""
    banded = [of if isinstance(of, Banded) else Banded(of, of.predicted, of.predicted) for of in figures]
    charts = [_chart(kind, [of for of in banded if of.compared.quantity.value == kind]) for kind in _KINDS]
    return [chart for chart in charts if chart.sheet.rows]


def _chart(kind: str, figures: Sequence[Banded]) -> Chart:
    drawn = [of for of in figures if of.compared.published > 0 and of.least > 0]
    figures_of = [end for of in drawn for end in (of.compared.published, of.compared.predicted)] or [1.0, 10.0]
    floor, ceiling = min(figures_of) / _BEYOND, max(figures_of) * _BEYOND
    values = [
        {
            "table": of.compared.table.removesuffix(".csv"),
            "published": of.compared.published,
            "predicted": of.compared.predicted,
            "least": max(of.least, floor),
            "most": min(of.most, ceiling),
        }
        for of in drawn
    ]
    ends = [*figures_of, *(max(of.least, floor) for of in drawn), *(min(of.most, ceiling) for of in drawn)]
    domain = [min(ends), max(ends)]
    scale = {"type": "log", "domain": domain}
    names = list(dict.fromkeys(of.compared.table.removesuffix(".csv") for of in drawn))
    x = parts.number("published", "published", scale=scale)
    colour: dict[str, Any] = parts.series("table", "", names, dashes=False)
    band = {
        "mark": {"type": "rule", "opacity": 0.45},
        "encoding": {
            "x": x,
            "y": parts.number("least", "predicted", scale=scale),
            "y2": {"field": "most"},
            "color": colour["color"],
        },
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 28},
        "encoding": {"x": x, "y": parts.number("predicted", "predicted", scale=scale), **colour},
    }
    line = {
        "data": {"values": [{"at": end} for end in domain]},
        "mark": {"type": "line", "strokeDash": [4, 4], "strokeWidth": 1},
        "encoding": {
            "x": parts.number("at", "published", scale=scale),
            "y": parts.number("at", "predicted", scale=scale),
        },
    }
    rows = [
        [
            of.compared.table,
            of.compared.row,
            of.compared.figure,
            *map(plain, (of.compared.published, of.least, of.most)),
        ]
        for of in figures
    ]
    heads = [Column("table", words=True), Column("row", words=True), Column("figure", words=True)]
    return Chart(
        key=f"published-{kind.replace(' ', '-')}",
        title=f"Published against predicted: {kind}",
        says="On the dashed line both agree. The bars, cut far from all figures, are the bands of the assumed numbers.",
        specification=parts.whole(
            title=f"Published against predicted: {_KINDS[kind]}",
            width=_SIDE,
            height=_SIDE,
            data={"values": values},
            layer=[line, band, points],
        ),
        sheet=Sheet(kind, [*heads, *map(Column, ("published", "least", "most"))], rows, folded=True),
    )
