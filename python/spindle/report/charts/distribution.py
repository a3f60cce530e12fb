"""The distribution of latencies over time: a column for each moment, darker for more requests, with lines for the
median and the 99th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import parts, theme
from spindle.report.charts.seconds import coarser
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Trial
from spindle.report.terminal.table import Column
from spindle.result.buckets import LEAST_NS, bounds_ns, percentile_ns, together
from spindle.result.figures import Interval
from spindle.result.record import Level

MOST_PANELS = 4
MOST_COLUMNS = 60
MOST_ROWS = 28
"""Most rows of a panel; finer buckets are merged."""
EDGES = (0.001, 0.01, 0.03, 0.1, 0.3, 0.6)
"""Steps of colour: share of a moment's requests."""
LINES = (("median", 50.0), ("99th percentile", 99.0))


def has_counts(trial: Trial) -> bool:
    """True if its series has distributions."""
    return any(stream.latency_counts for interval in trial.run.figures.series for stream in interval.streams)


def chart(trials: Sequence[Trial], names: dict[int, str]) -> list[Chart]:
    """Return a chart with a panel for each run."""
    columns = {id(trial): _columns(trial) for trial in trials}
    used = [bucket for found in columns.values() for _, counts in found for bucket in counts]
    wide = max(1, -(-(max(used) - min(used) + 1) // MOST_ROWS))
    low, high = _edge_ms(min(used), wide)[0], _edge_ms(max(used), wide)[1]
    longest = max(trial.run.figures.series[-1].start_ns + trial.run.figures.series[-1].length_ns for trial in trials)
    x = parts.number("from", "Time since the end of the ramp (s)", scale={"domain": [0, longest / 1e9], "nice": False})
    y = parts.number(
        "low",
        "Latency (ms)",
        log=10,
        scale={"domain": [low, high], "nice": False},
        axis={"values": parts.decades([low, high])},
    )
    panels = [_panel(columns[id(trial)], wide, x, y, names[id(trial)] if len(trials) > 1 else None) for trial in trials]
    return [
        Chart(
            key="heatmap",
            title="Latency over time",
            says=_says(trials),
            specification=parts.whole(vconcat=panels) if len(panels) > 1 else parts.whole(**panels[0]),
            sheet=_sheet([(names[id(trial)], trial, columns[id(trial)]) for trial in trials]),
        )
    ]


Moment = tuple[Sequence[Interval], dict[int, int]]


def _columns(trial: Trial) -> Sequence[Moment]:
    """Merge neighbouring intervals with their counts."""
    found = []
    for intervals in coarser(trial.run.figures.series, MOST_COLUMNS):
        counts = together(stream.latency_counts for interval in intervals for stream in interval.streams)
        if counts:
            found.append((intervals, counts))
    return found


def _edge_ms(bucket: int, wide: int) -> tuple[float, float]:
    """Return the edges of the row that a bucket is drawn in."""
    first = bucket // wide * wide
    return max(bounds_ns(first)[0], LEAST_NS) / 1e6, bounds_ns(first + wide - 1)[1] / 1e6


def _span_s(intervals: Sequence[Interval]) -> tuple[float, float]:
    return intervals[0].start_ns / 1e9, (intervals[-1].start_ns + intervals[-1].length_ns) / 1e9


def _panel(
    columns: Sequence[Moment], wide: int, x: dict[str, Any], y: dict[str, Any], title: str | None
) -> dict[str, Any]:
    cells, lines = [], []
    for intervals, counts in columns:
        begin, end = _span_s(intervals)
        total = sum(counts.values())
        for row, count in together([[(bucket // wide, count) for bucket, count in counts.items()]]).items():
            low, high = _edge_ms(row * wide, wide)
            share = count / total
            cells.append(
                {
                    "from": round(begin, 3),
                    "to": round(end, 3),
                    "low": low,
                    "high": high,
                    "step": sum(share >= edge for edge in EDGES),
                }
            )
        for name, percent in LINES:
            ns = percentile_ns(counts, percent)
            if ns is not None:
                lines.append({"line": name, "from": round((begin + end) / 2, 3), "low": float(f"{ns / 1e6:.4g}")})
    steps = {
        "field": "step",
        "type": "ordinal",
        "title": "Share of the moment's requests (%)",
        "scale": {
            "domain": list(range(theme.HEAT)),
            "range": [f"@h{at}" for at in range(theme.HEAT)],
        },
        "legend": {
            "orient": "bottom",
            "direction": "horizontal",
            "labelExpr": f"{_words()!r}[datum.value]",
            "symbolType": "square",
            "symbolStrokeWidth": 1,
            "symbolStrokeColor": "@line",
            "columns": theme.HEAT,
        },
    }
    dashes = {
        "field": "line",
        "type": "nominal",
        "sort": None,
        "title": None,
        "scale": {"domain": [name for name, _ in LINES], "range": theme.DASHES[: len(LINES)]},
        "legend": {"orient": "bottom", "symbolType": "stroke", "symbolSize": 500, "symbolStrokeColor": "@ink"},
    }
    course = {"x": x, "y": y}
    panel: dict[str, Any] = {
        "width": parts.WIDTH,
        "height": parts.HEIGHT * 0.8,
        "layer": [
            {
                "data": {"values": cells},
                "mark": {"type": "rect", "aria": False},
                "encoding": {**course, "x2": {"field": "to"}, "y2": {"field": "high"}, "color": steps},
            },
            # A line in the background colour below each keeps it visible on dark and light cells.
            {
                "data": {"values": lines},
                "mark": {"type": "line", "stroke": "@ground", "strokeWidth": 5, "aria": False},
                "encoding": {**course, "detail": {"field": "line"}},
            },
            {
                "data": {"values": lines},
                "mark": {"type": "line", "stroke": "@ink"},
                "encoding": {**course, "strokeDash": dashes},
            },
        ],
    }
    return {"title": title, **panel} if title else panel


def _words() -> list[str]:
    percents = [f"{100 * edge:g}" for edge in EDGES]
    between = [f"{low} to {high}" for low, high in pairwise(percents)]
    return [f"below {percents[0]}", *between, f"above {percents[-1]}"]


def _says(trials: Sequence[Trial]) -> str:
    text = (
        "The darker (on a dark page: lighter) a cell, the more of the moment's requests took that long; the lines are "
        "the median and the 99th percentile of each moment, reads and writes of all streams together."
    )
    if any(trial.level is Level.INVALID for trial in trials):
        text += (
            " The verdict of the run is invalid."
            if len(trials) == 1
            else " \N{MULTIPLICATION X}: the verdict of the run is invalid."
        )
    return text


def _sheet(rows: Sequence[tuple[str, Trial, Sequence[Moment]]]) -> Sheet:
    """Return the smallest, median and largest value of each line."""
    found = []
    for name, trial, moments in rows:
        for line, percent in LINES:
            values = sorted(ns / 1e6 for _, counts in moments if (ns := percentile_ns(counts, percent)) is not None)
            if values:
                middle = values[(len(values) - 1) // 2]
                found.append([name, line, plain(values[0]), plain(middle), plain(values[-1]), trial.level])
    columns = [
        Column("run", words=True),
        Column("of each moment", words=True),
        *(Column(head) for head in ("least ms", "middle ms", "largest ms")),
        Column("verdict", words=True),
    ]
    return Sheet("Moments of each run", columns, found, folded=True)
