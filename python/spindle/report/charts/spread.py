"""Every run as a mark, case by case: how far repetitions scatter, and how far cases lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Case, bytes_per_s_of, iops_of, is_observed, is_streaming
from spindle.report.number import plain
from spindle.report.table import Column
from spindle.result.record import Level, RunRecord
from spindle.stats.estimate import of_trials

MOST_ROWS = 40
ROW = 20


def charts(cases: Sequence[Case]) -> list[Chart]:
    """Nothing for a single run."""
    if sum(len(case.trials) for case in cases) < 2:
        return []
    streaming = all(is_streaming(trial.run) for case in cases for trial in case.trials)
    unit = "MB/s" if streaming else "IOPS"
    drawn = parts.spread(cases, MOST_ROWS)
    rates = {id(case): [_rate(trial.run, streaming) for trial in case.trials] for case in cases}
    values: list[dict[str, Any]] = []
    every = [case.label for case in cases]
    labels = dict(zip(every, parts.shortened(every, 50), strict=True))
    for case in drawn:
        label = labels[case.label]
        for trial, rate in zip(case.trials, rates[id(case)], strict=True):
            values.append({"case": label, "rate": rate, "kind": "run", "invalid": trial.level is Level.INVALID})
        if len(case.trials) > 1:
            known = of_trials(rates[id(case)])
            middle = {"case": label, "rate": known.estimate, "kind": "mean", "invalid": False}
            values.append({**middle, "low": known.low, "high": known.high})
    return [
        Chart(
            key="runs",
            title="Every run",
            says=_says(cases, drawn),
            specification=_specification(values, unit),
            sheet=_sheet(cases, rates, unit),
        )
    ]


def _rate(run: RunRecord, streaming: bool) -> float:
    return bytes_per_s_of(run) / 1e6 if streaming else iops_of(run)


def _specification(values: Sequence[dict[str, Any]], unit: str) -> dict[str, Any]:
    x = parts.number("rate", f"Throughput ({unit})")
    y = {"field": "case", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 330, "grid": True}}
    rows = len({value["case"] for value in values})
    return parts.whole(
        width=parts.WIDTH - 180,
        height=max(ROW * rows, 48),
        data={"values": values},
        layer=[
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
            parts.crosses(x, y),
        ],
    )


def _says(cases: Sequence[Case], drawn: Sequence[Case]) -> str:
    text = "A ring is a run"
    several = any(len(case.trials) > 1 for case in cases)
    text += ", a bar the geometric mean of a case with its 95 % interval." if several else "."
    if any(is_observed(case.trials[0].run) for case in drawn):
        text += " Requests of a program's own load are counted at the device."
    if len(drawn) < len(cases):
        text += f" {len(drawn)} of {len(cases)} cases are drawn; the table has all."
    if any(case.level is Level.INVALID for case in drawn):
        text += " A red cross marks a run whose verdict is invalid."
    return text


def _sheet(cases: Sequence[Case], rates: dict[int, list[float]], unit: str) -> Sheet:
    rows = []
    for case in cases:
        found = rates[id(case)]
        known = of_trials(found)
        ends = ["", ""] if len(found) < 2 else [plain(known.low), plain(known.high)]
        rows.append(
            [
                case.label,
                str(len(found)),
                plain(min(found)),
                plain(known.estimate),
                plain(max(found)),
                *ends,
                case.level,
            ]
        )
    columns = [
        Column("case", words=True),
        Column("runs"),
        *(Column(f"{head} {unit}") for head in ("least", "mean", "largest")),
        Column("95 % from"),
        Column("to"),
        Column("verdict", words=True),
    ]
    return Sheet("Throughput of each case", columns, rows, folded=True)
