"""Latency over throughput: open-loop curves with their saturation, and latency searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.report.charts import parts
from spindle.report.document.entry import Entry
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import label_of
from spindle.report.terminal import curve as curve_words
from spindle.report.terminal import target as target_words
from spindle.result.record import CurveRecord, RunRecord, TargetRecord
from spindle.result.search import Curve, TargetSearch

TALL = 320


@dataclass(frozen=True)
class NamedCurve:
    """One open-loop curve with its name."""

    label: str
    curve: Curve


@dataclass(frozen=True)
class NamedSearch:
    """One latency search with its name."""

    label: str
    search: TargetSearch


def curves_of(entries: Sequence[Entry]) -> list[NamedCurve]:
    """Return every open-loop curve."""
    return [
        NamedCurve(_label(entry, entry.record.runs), entry.record.curve)
        for entry in entries
        if isinstance(entry.record, CurveRecord) and entry.record.curve.points
    ]


def searches_of(entries: Sequence[Entry]) -> list[NamedSearch]:
    """Return every latency search."""
    return [
        NamedSearch(_label(entry, entry.record.runs), entry.record.search)
        for entry in entries
        if isinstance(entry.record, TargetRecord) and entry.record.search.points
    ]


def _label(entry: Entry, runs: Sequence[RunRecord]) -> str:
    if entry.cell:
        return label_of(entry.cell)
    name = f"{runs[0].workload.name} on {runs[0].target.place}" if runs else entry.source
    return f"{', '.join(entry.tags)}: {name}" if entry.tags else name


def charts(curves: Sequence[NamedCurve], searches: Sequence[NamedSearch]) -> list[Chart]:
    """Return a chart for each curve and each search."""
    found = [_curve(drawn, at) for at, drawn in enumerate(curves)]
    return [*found, *(_search(sought, at) for at, sought in enumerate(searches))]


def _curve(drawn: NamedCurve, at: int) -> Chart:
    lines = ("p50", "p99", "p99.9")
    values: list[dict[str, Any]] = [
        {
            "line": name,
            "order": point.offered_iops,
            "rate": point.iops,
            "latency": latency / 1e6 if latency else None,
            "state": "saturated" if point.saturated else "served as they come",
        }
        for point in drawn.curve.points
        for name, latency in zip(
            lines, (point.p50_latency_ns, point.p99_latency_ns, point.p999_latency_ns), strict=True
        )
    ]
    latencies = [value["latency"] for value in values if value["latency"]]
    x = parts.number("rate", "Requests served (IOPS)")
    y = _latency_axis("Latency from the intended start (ms)", latencies)
    series = parts.series("line", "Percentile", lines)
    line = {name: value for name, value in series.items() if name != "shape"}
    mark = {name: value for name, value in series.items() if name != "strokeDash"}
    order = {"field": "order", "type": "quantitative"}
    layers: list[dict[str, Any]] = [
        {"mark": "line", "encoding": {"x": x, "y": y, "order": order, **line}},
        {"mark": "point", "encoding": {"x": x, "y": y, **mark}},
        {
            "transform": [{"filter": "datum.state == 'saturated'"}],
            "mark": {"type": "point", "size": 260, "filled": False, "strokeWidth": 2, "stroke": "@ink"},
            "encoding": {"x": x, "y": y},
        },
    ]
    columns, rows = curve_words.table_of(drawn.curve)
    says = f"{drawn.label}: {curve_words.sentence(drawn.curve)}"
    if drawn.curve.saturated_iops is not None:
        says += " A ring marks points that are saturated."
    return Chart(
        key=f"curve-{at + 1}" if at else "curve",
        title=f"Latency over throughput, open loop{f' ({at + 1})' if at else ''}",
        says=says,
        specification=_whole(values, layers),
        sheet=Sheet(f"Points of {drawn.label}", columns, rows, folded=True),
    )


def _search(sought: NamedSearch, at: int) -> Chart:
    search = sought.search
    names = [bound.figure for bound in search.bounds]
    values: list[dict[str, Any]] = [
        {
            "line": bound.figure,
            "order": point.value,
            "rate": point.iops,
            "latency": seen.latency_ns / 1e6 if seen.latency_ns else None,
            "state": point.decision,
            "held": "the most" if point.value == search.held else None,
        }
        for point in search.points
        for bound, seen in zip(search.bounds, point.checks, strict=True)
    ]
    limits = [bound.limit_ns / 1e6 for bound in search.bounds]
    x = parts.number("rate", "Throughput (IOPS)")
    shown = [value["latency"] for value in values if value["latency"]]
    y = _latency_axis("Latency (ms)", [*shown, *limits])
    series = parts.series("line", "Bounded", names, dashes=False)
    order = {"field": "order", "type": "quantitative"}
    states = ["held", "failed", "undecided"]
    shape = {
        "field": "state",
        "type": "nominal",
        "title": "Point",
        "scale": {"domain": states, "range": ["circle", "square", "triangle-up"]},
        "legend": {"orient": "bottom"},
    }
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "opacity": 0.4},
            "encoding": {"x": x, "y": y, "order": order, "color": series["color"]},
        },
        {"mark": "point", "encoding": {"x": x, "y": y, "color": series["color"], "shape": shape}},
        *({"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": limit}}} for limit in limits),
        {
            "transform": [{"filter": "datum.held != null"}],
            "mark": {"type": "text", "dy": -14, "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "held"}},
        },
    ]
    columns, rows = target_words.table_of(search)
    return Chart(
        key=f"target-{at + 1}" if at else "target",
        title=f"Throughput within a bound on latency{f' ({at + 1})' if at else ''}",
        says=f"{sought.label}: {' '.join(target_words.sentences(search))} Dashed: the bound.",
        specification=_whole(values, layers),
        sheet=Sheet(f"Points of {sought.label}", columns, rows, folded=True),
    )


def _latency_axis(title: str, latencies: Sequence[float]) -> dict[str, Any]:
    return parts.number(
        "latency",
        title,
        log=10,
        scale=parts.log_scale(latencies),
        axis={"values": parts.decades(latencies)},
    )


def _whole(values: Sequence[dict[str, Any]], layers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts.whole(data={"values": list(values)}, width=parts.WIDTH, height=TALL, layer=list(layers))
