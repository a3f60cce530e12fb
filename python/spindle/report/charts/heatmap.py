"""Latency over time as colour: the distribution for few runs, a row with the 99th percentile each for many.

Records of earlier versions have only the mean and the largest latency of each interval: their cells show the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import distribution, parts, theme
from spindle.report.charts.seconds import coarser, mean_latency_ns
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Case, Trial
from spindle.report.terminal.table import Column
from spindle.result.buckets import percentile_ns, together
from spindle.result.figures import Interval
from spindle.result.record import Level

MOST_COLUMNS = 60
MOST_ROWS = 40
ROW = 16
"""Height of a row, pixels."""

Shown = Callable[[Sequence[Interval]], float | None]


def charts(cases: Sequence[Case]) -> list[Chart]:
    """Return one chart, or none if no run has a long enough series."""
    trials = [trial for case in cases for trial in case.trials if len(trial.run.figures.series) >= 5]
    if not trials:
        return []
    names = _names(cases, trials)
    counted = all(distribution.has_counts(trial) for trial in trials)
    if counted and len(trials) <= distribution.MOST_PANELS:
        return distribution.chart(trials, names)
    if len(trials) == 1:
        return _chart("Latency over time", _parts_of(trials[0]), "Latency of", _any_invalid(trials))
    shown = _p99 if counted else mean_latency_ns
    rows: list[tuple[str, Trial, Shown]] = [(names[id(trial)], trial, shown) for trial in trials]
    what = "99th percentile" if counted else "mean"
    return _chart("Latency over time, run by run", rows, "Run", _any_invalid(trials), what)


def _slowest_first(rows: Sequence[tuple[str, Trial, Shown]]) -> Sequence[tuple[str, Trial, Shown]]:
    """Return all in their order, or those with the slowest cells."""
    if len(rows) <= MOST_ROWS:
        return rows
    return sorted(rows, key=lambda row: -max(_cells(row[1], row[2]), default=0.0))[:MOST_ROWS]


def _cells(trial: Trial, shown: Shown) -> list[float]:
    """Return the latencies of its row, ms."""
    found = [shown(intervals) for intervals in coarser(trial.run.figures.series, MOST_COLUMNS)]
    return [latency / 1e6 for latency in found if latency is not None and latency > 0]


def _p99(intervals: Sequence[Interval]) -> float | None:
    return percentile_ns(together(s.latency_counts for interval in intervals for s in interval.streams), 99)


def _any_invalid(trials: Sequence[Trial]) -> bool:
    return any(trial.level is Level.INVALID for trial in trials)


def _parts_of(trial: Trial) -> list[tuple[str, Trial, Shown]]:
    series = trial.run.figures.series
    streams = [stream for interval in series for stream in interval.streams]
    rows: list[tuple[str, Trial, Shown]] = []
    if any(stream.reads for stream in streams):
        rows.append(("reads, mean", trial, _reads))
    if any(stream.writes for stream in streams):
        rows.append(("writes, mean", trial, _writes))
    rows.append(("slowest", trial, _slowest))
    return rows


def _reads(intervals: Sequence[Interval]) -> float | None:
    count = sum(stream.reads for interval in intervals for stream in interval.streams)
    return sum(s.read_latency_ns for interval in intervals for s in interval.streams) / count if count else None


def _writes(intervals: Sequence[Interval]) -> float | None:
    count = sum(stream.writes for interval in intervals for stream in interval.streams)
    return sum(s.write_latency_ns for interval in intervals for s in interval.streams) / count if count else None


def _slowest(intervals: Sequence[Interval]) -> float | None:
    return max((s.max_latency_ns for interval in intervals for s in interval.streams), default=0) or None


def _names(cases: Sequence[Case], trials: Sequence[Trial]) -> dict[int, str]:
    found = {}
    every = [case.label for case in cases]
    labels = dict(zip(every, parts.shortened(every, 44), strict=True))
    for case in cases:
        for at, trial in enumerate(case.trials):
            mark = "\N{MULTIPLICATION X} " if trial.level is Level.INVALID else ""
            number = f" #{at + 1}" if len(case.trials) > 1 else ""
            found[id(trial)] = f"{mark}{labels[case.label]}{number}"
    return found


def _chart(
    title: str,
    every: Sequence[tuple[str, Trial, Shown]],
    what: str,
    invalid: bool,
    cell: str | None = None,
) -> list[Chart]:
    rows = _slowest_first(every)
    longest = max(
        interval.start_ns + interval.length_ns for _, trial, _ in rows for interval in trial.run.figures.series
    )
    values: list[dict[str, Any]] = []
    for name, trial, shown in rows:
        for intervals in coarser(trial.run.figures.series, MOST_COLUMNS):
            latency = shown(intervals)
            if latency is not None and latency > 0:
                start, last = intervals[0].start_ns, intervals[-1]
                values.append(
                    {
                        "row": name,
                        "from": round(start / 1e9, 3),
                        "to": round((last.start_ns + last.length_ns) / 1e9, 3),
                        "ms": latency / 1e6,
                    }
                )
    if not values:
        return []
    steps = _steps([float(value["ms"]) for value in values])
    for value in values:
        value["step"] = sum(value["ms"] >= edge for edge in steps)
    names = list(dict.fromkeys(name for name, *_ in rows))
    legend = _legend(steps, [float(value["ms"]) for value in values])
    specification = parts.whole(
        width=parts.WIDTH - 120,
        height=max(ROW * len(names), 48),
        data={"values": values},
        mark={"type": "rect", "aria": False},
        encoding={
            "x": parts.number(
                "from", "Time since the end of the ramp (s)", scale={"domain": [0, longest / 1e9], "nice": False}
            ),
            "x2": {"field": "to"},
            "y": {"field": "row", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 300}},
            "color": {
                "field": "step",
                "type": "ordinal",
                "title": "Latency (ms)",
                "scale": {"domain": list(range(len(steps) + 1)), "range": _colours(len(steps) + 1)},
                "legend": {
                    "orient": "bottom",
                    "direction": "horizontal",
                    "labelExpr": legend,
                    "symbolType": "square",
                    "symbolStrokeWidth": 1,
                    "symbolStrokeColor": "@line",
                    "columns": theme.HEAT,
                },
            },
        },
    )
    return [
        Chart(
            key="heatmap",
            title=title,
            says=_says(len(rows), len(every), invalid, cell),
            specification=specification,
            sheet=_sheet(what, every),
        )
    ]


def _steps(values: Sequence[float]) -> list[float]:
    """Return edges of equal ratio between the shortest and the longest, rounded to two digits."""
    low, high = min(values), max(values)
    if high <= low * 1.05:
        return []
    ratio = (high / low) ** (1 / theme.HEAT)
    edges = [float(f"{low * ratio**at:.2g}") for at in range(1, theme.HEAT)]
    return sorted(set(edges))


def _colours(count: int) -> list[str]:
    return [f"@h{round(at * (theme.HEAT - 1) / max(1, count - 1))}" for at in range(count)]


def _legend(steps: Sequence[float], values: Sequence[float]) -> str:
    edges = [min(values), *steps, max(values)]
    words = [f"{plain(low)} to {plain(high)}" for low, high in pairwise(edges)]
    return f"{words!r}[datum.value]"


def _says(drawn: int, of: int, invalid: bool, cell: str | None) -> str:
    text = "The darker (on a dark page: lighter) a cell, the longer requests took then; steps are of equal ratio."
    if cell is not None:
        text += f" Each cell is the {cell} of reads and writes."
    if drawn < of:
        text += (
            f" {drawn} of {of} runs are drawn, those whose slowest cell is longest, slowest first; the table has all."
        )
    if invalid:
        text += " \N{MULTIPLICATION X}: the verdict of the run is invalid."
    return text


def _sheet(what: str, rows: Sequence[tuple[str, Trial, Shown]]) -> Sheet:
    """Return the smallest, median and largest cell of each row."""
    found = []
    for name, trial, shown in rows:
        cells = sorted(_cells(trial, shown))
        if cells:
            middle = cells[math.floor((len(cells) - 1) / 2)]
            found.append([name, plain(cells[0]), plain(middle), plain(cells[-1]), trial.level])
    columns = [
        Column(what.lower(), words=True),
        *(Column(head) for head in ("least ms", "median ms", "largest ms")),
        Column("verdict", words=True),
    ]
    return Sheet("Cells of each row", columns, found, folded=True)
