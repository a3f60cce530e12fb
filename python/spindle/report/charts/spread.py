"""Every run as a mark, case by case: the scatter of repetitions and the differences between cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import parts
from spindle.report.document.alike import alike
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Case, bytes_per_s_of, iops_of, is_observed, is_streaming, unit_of
from spindle.report.terminal.table import Column
from spindle.result.record import Level, RunRecord
from spindle.stats.estimate import Interval, of_trials

MOST_ROWS = 40
"""Most rows of the chart; of more, the highest and the lowest are shown."""
LEAST_ROWS = 8
"""Fewest rows of a panel."""
MOST_PANELS = 12
ROW = 20


@dataclass(frozen=True)
class Row:
    """A case with its figures."""

    case: Case
    rates: Sequence[float]
    known: Interval


@dataclass(frozen=True)
class Panel:
    """Comparable cases, which share an axis."""

    name: str
    unit: str
    rows: Sequence[Row]
    """All of them."""
    most: int
    """Number of rows drawn."""

    @property
    def drawn(self) -> Sequence[Row]:
        """Return all in their order, or those with the highest and the lowest throughput."""
        if len(self.rows) <= self.most:
            return self.rows
        ordered = sorted(self.rows, key=lambda row: -row.known.estimate)
        return [*ordered[: self.most // 2], *ordered[-(self.most // 2) :]]


def charts(cases: Sequence[Case]) -> list[Chart]:
    """Return the chart; nothing for a single run."""
    if sum(len(case.trials) for case in cases) < 2:
        return []
    kinds = alike(cases)
    most = max(LEAST_ROWS, MOST_ROWS // len(kinds))
    panels = [_panel(name, members, most) for name, members in kinds]
    drawn = sorted(panels, key=lambda panel: -len(panel.rows))[:MOST_PANELS] if len(panels) > MOST_PANELS else panels
    every = [case.label for case in cases]
    labels = dict(zip(every, parts.shortened(every, 50), strict=True))
    return [
        Chart(
            key="runs",
            title="Every run",
            says=_says(panels, drawn),
            specification=parts.whole(vconcat=[_drawn(panel, labels) for panel in drawn])
            if len(drawn) > 1
            else parts.whole(**_drawn(drawn[0], labels)),
            sheet=_sheet(cases, panels),
        )
    ]


def _panel(name: str, cases: Sequence[Case], most: int) -> Panel:
    streaming = all(is_streaming(trial.run) for case in cases for trial in case.trials)
    rows = []
    for case in cases:
        rates = [_rate(trial.run, streaming) for trial in case.trials]
        rows.append(Row(case, rates, of_trials(rates)))
    return Panel(name, "MB/s" if streaming else unit_of(cases[0]), rows, most)


def _rate(run: RunRecord, streaming: bool) -> float:
    return bytes_per_s_of(run) / 1e6 if streaming else iops_of(run)


def _drawn(panel: Panel, labels: dict[str, str]) -> dict[str, Any]:
    ends, log = _ends(panel)
    scale = {"domain": list(ends), **({"nice": False} if log else {})}
    ticks = {"values": parts.decades(list(ends))} if log else {}
    x = parts.number("rate", f"Throughput ({panel.unit})", log=10 if log else None, scale=scale, axis=ticks)
    names = [labels[row.case.label] for row in panel.drawn]
    if between := len(panel.rows) - len(names):
        names.insert(len(names) // 2, f"({between} between)")
    y: dict[str, Any] = {
        "field": "case",
        "type": "nominal",
        "sort": None,
        "title": None,
        "scale": {"domain": names},
        "axis": {"labelLimit": 330, "grid": True},
    }
    drawing: dict[str, Any] = {
        "width": parts.WIDTH - 180,
        "height": max(ROW * len(names), 48),
        "data": {"values": [value for row in panel.drawn for value in _values(row, labels[row.case.label], ends)]},
        "layer": [
            {
                "transform": [{"filter": "datum.kind == 'run'"}],
                "mark": {"type": "point", "size": 45, "filled": False, "stroke": "@s0", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y},
            },
            {
                "transform": [{"filter": "datum.kind == 'mean'"}],
                "mark": {"type": "rule", "color": "@s1", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
            },
            {
                "transform": [{"filter": "datum.kind == 'mean'"}],
                "mark": {"type": "tick", "color": "@s1", "thickness": 3, "size": 16},
                "encoding": {"x": x, "y": y},
            },
            *(parts.arrows(x, y, "@s1") if _is_clipped(panel) else []),
            parts.crosses(x, y),
        ],
    }
    return {"title": _title(panel.name), **drawing} if panel.name else drawing


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "fontSize": 12, "fontWeight": "normal", "frame": "group"}


def _intervals(panel: Panel) -> list[parts.Interval]:
    return [parts.Interval(row.known.estimate, row.known.low, row.known.high) for row in panel.drawn if _repeated(row)]


def _repeated(row: Row) -> bool:
    return len(row.rates) > 1


def _ends(panel: Panel) -> tuple[tuple[float, float], bool]:
    """Return the ends of the axis, and True if it is logarithmic."""
    rates = [rate for row in panel.drawn for rate in row.rates]
    log = parts.is_wide(rates)
    low, high = parts.limits(rates, _intervals(panel), log=log)
    return ((low / 1.15, high * 1.15) if log else (0.0, high)), log


def _is_clipped(panel: Panel) -> bool:
    low, high = _ends(panel)[0]
    return any(each.low < low or each.high > high for each in _intervals(panel))


def _values(row: Row, label: str, ends: tuple[float, float]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"case": label, "rate": rate, "kind": "run", "invalid": trial.level is Level.INVALID}
        for trial, rate in zip(row.case.trials, row.rates, strict=True)
    ]
    if _repeated(row):
        known = parts.Interval(row.known.estimate, row.known.low, row.known.high)
        middle = {"case": label, "rate": row.known.estimate, "kind": "mean", "invalid": False}
        found.append({**middle, **parts.clipped(known, ends, plain)})
    return found


def _says(panels: Sequence[Panel], drawn: Sequence[Panel]) -> str:
    rows = [row for panel in drawn for row in panel.drawn]
    text = "A ring is a run"
    several = any(_repeated(row) for row in rows)
    text += ", a bar the geometric mean of a case with its 95 % interval." if several else "."
    if len(drawn) > 1:
        text += " Cases that do not ask for the same have axes of their own."
    if any(is_observed(row.case.trials[0].run) for row in rows):
        text += " Requests of a program's own load are counted at the device."
    text += _chosen(panels, drawn)
    if any(_ends(panel)[1] for panel in drawn):
        text += " An axis over more than a factor of 20 is logarithmic."
    if any(_is_clipped(panel) for panel in drawn):
        text += parts.CLIPPED
    if any(row.case.level is Level.INVALID for row in rows):
        text += " A red cross marks a run whose verdict is invalid."
    return text


def _chosen(panels: Sequence[Panel], drawn: Sequence[Panel]) -> str:
    """Say which rows are drawn, and by which rule, if not all are."""
    text = ""
    if len(drawn) < len(panels):
        text += f" {len(drawn)} of {len(panels)} kinds are drawn, those of the most cases first."
    for panel in drawn:
        if len(panel.drawn) < len(panel.rows):
            half = len(panel.drawn) // 2
            of = f" ({panel.name})" if panel.name else ""
            text += (
                f" {len(panel.drawn)} of {len(panel.rows)} cases{of} are drawn, the highest first: the {half} with the "
                f"highest and the {half} with the lowest throughput."
            )
    return f"{text} The table has all." if text else ""


def _sheet(cases: Sequence[Case], panels: Sequence[Panel]) -> Sheet:
    """Return the table in the order of the cases, with a column for the unit if there are several."""
    found = {id(row.case): (row, panel.unit) for panel in panels for row in panel.rows}
    units = list(dict.fromkeys(panel.unit for panel in panels))
    rows = []
    for case in cases:
        row, unit = found[id(case)]
        ends = [plain(row.known.low), plain(row.known.high)] if _repeated(row) else ["", ""]
        figures = [plain(min(row.rates)), plain(row.known.estimate), plain(max(row.rates)), *ends]
        named = [unit] if len(units) > 1 else []
        rows.append([case.label, str(len(row.rates)), *figures, *named, case.level])
    of = f" {units[0]}" if len(units) == 1 else ""
    columns = [
        Column("case", words=True),
        Column("runs"),
        *(Column(f"{head}{of}") for head in ("least", "mean", "largest")),
        Column("95 % from"),
        Column("to"),
        *([Column("unit", words=True)] if not of else []),
        Column("verdict", words=True),
    ]
    return Sheet("Throughput of each case", columns, rows, folded=True)
