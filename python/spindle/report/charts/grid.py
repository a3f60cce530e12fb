"""Differences of the simulator over the grid of points that run both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.table import Column
from spindle.validation.grid.compare import GridReport, PointComparison
from spindle.validation.grid.points import LEVELS, SCHEDULERS

_HEIGHT = 180
_MOST = 30.0
"""Larger differences are drawn at the edge, percent."""


def grid_charts(report: GridReport) -> list[Chart]:
    """One chart for each figure, the levels side by side."""
    return [
        _chart(report, "throughput", "IOPS and throughput", lambda of: of.throughput_error),
        _chart(report, "mean", "Mean latency", lambda of: of.mean_error),
        _chart(report, "p99", "99th percentile of latency", lambda of: of.p99_error),
    ]


def _chart(report: GridReport, key: str, title: str, error: Callable[[PointComparison], float]) -> Chart:
    values = [
        {
            "level": of.both.point.level,
            "scheduler": of.both.point.scheduler,
            "point": of.both.point.name,
            "difference": max(-_MOST, min(_MOST, 100 * error(of))),
        }
        for of in report.compared
    ]
    names = [name for name in SCHEDULERS if any(value["scheduler"] == name for value in values)]
    encoding: dict[str, Any] = {
        "x": {
            "field": "level",
            "type": "nominal",
            "sort": None,
            "title": None,
            "scale": {"domain": [level for level in LEVELS if any(value["level"] == level for value in values)]},
            "axis": {"labelAngle": 0},
        },
        "xOffset": {"field": "scheduler", "type": "nominal", "sort": None, "scale": {"domain": names}},
        "y": parts.number("difference", f"{title} (%)", scale={"domain": [-_MOST, _MOST]}),
        **parts.series("scheduler", "", names, dashes=False),
    }
    rows = [[of.both.point.name, f"{100 * error(of):+.1f}"] for of in report.compared]
    return Chart(
        key=f"grid-{key}",
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
