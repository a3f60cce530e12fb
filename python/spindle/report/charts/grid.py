"""Differences of the simulator over the grid of points that run both ways."""

from __future__ import annotations

from typing import Any

from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.table import Column
from spindle.validation.grid.compare import GridReport
from spindle.validation.grid.grids import Figure

_HEIGHT = 180
_MOST = 30.0
"""Larger differences are drawn at the edge, percent."""


_TITLES: dict[Figure, str] = {
    "throughput": "IOPS and throughput",
    "mean": "Mean latency",
    "p99": "99th percentile of latency",
}


def grid_charts(report: GridReport) -> list[Chart]:
    """One chart for each figure, the levels side by side."""
    return [_chart(report, figure) for figure in report.figures]


def _chart(report: GridReport, figure: Figure) -> Chart:
    title, beside = _TITLES[figure], report.beside
    values = [
        {
            "level": of.both.point.factors["level"],
            "beside": of.both.point.factors[beside],
            "point": of.both.point.name,
            "difference": max(-_MOST, min(_MOST, 100 * of.error(figure))),
        }
        for of in report.compared
    ]
    levels, names = (list(dict.fromkeys(str(value[key]) for value in values)) for key in ("level", "beside"))
    encoding: dict[str, Any] = {
        "x": {
            "field": "level",
            "type": "nominal",
            "sort": None,
            "title": None,
            "scale": {"domain": levels},
            "axis": {"labelAngle": 0},
        },
        "xOffset": {"field": "beside", "type": "nominal", "sort": None, "scale": {"domain": names}},
        "y": parts.number("difference", f"{title} (%)", scale={"domain": [-_MOST, _MOST]}),
        **parts.series("beside", "", names, dashes=False),
    }
    rows = [[of.both.point.name, f"{100 * of.error(figure):+.1f}"] for of in report.compared]
    return Chart(
        key=f"grid-{figure}",
        title=f"{title}: the simulator against the real kernel",
        says="Each point is a machine and a load that ran both ways. Above 0, the simulator's figure is larger.",
        specification=parts.whole(
            title=f"{title}: simulator against kernel",
            width=parts.WIDTH,
            height=_HEIGHT,
            data={"values": values},
            mark={"type": "point", "filled": True},
            encoding=encoding,
        ),
        sheet=Sheet(title, [Column("point", words=True), Column("difference (%)")], rows, folded=True),
    )
