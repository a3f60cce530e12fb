"""The chart of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base.numbers import plain
from spindle.library.figures import NoFigure
from spindle.library.plot import Plot
from spindle.library.result import Sweep
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.table import Column
from spindle.stats.names import metric as metric_of

_UNITS = {"ns": ("ms", 1e6), "B/s": ("MB/s", 1e6), "1/s": ("1/s", 1.0)}


def sweep_chart(sweep: Sweep, varied: Sequence[str], metric: str) -> Plot:
    """`metric` over the first key; each combination of the others is a curve."""
    if metric not in sweep.columns:
        raise NoFigure(f"{metric}: not a column of the sweep; it has {', '.join(sweep.columns)}")
    if metric in ("level", "run", "phase", *varied):
        raise NoFigure(f"{metric}: not a figure of the runs; draw iops or a latency")
    first, others = varied[0], [*varied[1:], *(["phase"] if "phase" in sweep.columns else [])]
    known = metric_of(metric)
    unit, factor = _UNITS.get(known.unit, (known.unit, 1.0))
    rows = [row for row in sweep if isinstance(row[metric], int | float)]
    labels = [", ".join(f"{key}={row[key]}" for key in others) or metric for row in rows]
    points = [
        {"x": row[first], "y": row[metric] / factor, "curve": label, "invalid": row["level"] == "invalid"}
        for row, label in zip(rows, labels, strict=True)
    ]
    title = f"{known.words} ({unit})" if unit else known.words
    numeric = all(isinstance(value, int | float) and value > 0 for value in sweep[first])
    x = (
        parts.number("x", first, log=2, axis={"values": sorted(set(sweep[first]))}, scale={"nice": False})
        if numeric
        else {"field": "x", "type": "ordinal", "title": first, "sort": None, "axis": {"labelAngle": 0}}
    )
    y = parts.number("y", title)
    curve = parts.series("curve", ", ".join(others), list(dict.fromkeys(labels)))
    lines = {"x": x, "y": y, **{name: part for name, part in curve.items() if name != "shape"}}
    marks = {"x": x, "y": y, **{name: part for name, part in curve.items() if name != "strokeDash"}}
    specification = parts.whole(
        data={"values": points},
        width=parts.WIDTH,
        height=parts.HEIGHT,
        layer=[{"mark": "line", "encoding": lines}, {"mark": "point", "encoding": marks}, parts.crosses(x, y)],
    )
    words = f"{known.words} over {first}"
    cells = [[label, str(row[first]), plain(row[metric] / factor)] for label, row in zip(labels, rows, strict=True)]
    columns = [Column("curve", words=True), Column(first), Column(title)]
    says = "Each point is a run." + (" A red cross marks an invalid one." if any(p["invalid"] for p in points) else "")
    chart = Chart(
        key="sweep",
        title=words[:1].upper() + words[1:],
        says=says,
        specification=specification,
        sheet=Sheet(words, columns, cells, folded=True),
    )
    return Plot([chart], f"{sweep.result.workload} on {sweep.result.target}")
