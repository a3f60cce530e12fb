"""A search for the best settings: its trials in order, the best settings beside the start, the influence of each
setting with its curve, and the front of several objectives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from spindle.campaign.adaptive import Stage
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.campaign import scale_of
from spindle.report.terminal.front import front_table, legend, marks
from spindle.report.terminal.table import Column
from spindle.report.terminal.tune import influence_table, influence_words, trial_table
from spindle.search.curves import SURE, Influence
from spindle.stats.estimate import of_trials
from spindle.stats.names import metric
from spindle.tune.decision import START, FrontPoint, TrialRow, Tuning
from spindle.tune.space import AS_FOUND

MOST_CURVES = 6
"""Curves drawn: of the settings that matter most."""
ROW = 26
CURVE_HEIGHT = 130
BEST = "best"


def trials(found: Tuning) -> Chart | None:
    """Return the trials in order; None: none has a figure."""
    head, scale = scale_of(metric(found.metric))
    known = [one for one in found.trials if one.value is not None]
    if not known:
        return None
    lowest = min(one.value / scale for one in known if one.value is not None)
    values = [
        {
            "trial": one.number, "value": one.value / scale if one.value is not None else lowest,
            "kind": _kind(found, one), "invalid": one.state != "done",
        }
        for one in found.trials if one.state in ("done", "failed", "invalid")
    ]  # fmt: skip
    kinds = [kind for kind in (START, *map(str, Stage)) if any(value["kind"] == kind for value in values)]
    x = parts.number("trial", "Trial", zero=False)
    y = parts.number("value", head, zero=False)
    marks_of = parts.series("kind", "Settings of", kinds, dashes=False)
    is_done = [{"filter": "!datum.invalid"}]
    points = {"transform": is_done, "mark": {"type": "point", "size": 60, "filled": True},
              "encoding": {"x": x, "y": y, **marks_of}}  # fmt: skip
    given_up = sum(bool(value["invalid"]) for value in values)
    cross = f" {given_up} given up, marked by a cross; at the bottom if without a figure." if given_up else ""
    columns, rows = trial_table(found)
    return Chart(
        key="trials",
        title="Trials in order",
        says="Each mark is a trial. The start's settings run in every block, so drift of the machine shows in them too."
        f"{cross}",
        specification=parts.whole(
            data={"values": values}, width=parts.WIDTH, height=parts.HEIGHT, layer=[points, parts.crosses(x, y)]
        ),
        sheet=Sheet("Trials", columns, rows, folded=True),
    )


def _kind(found: Tuning, one: TrialRow) -> str:
    return START if not found.moved(one.levels) else str(one.stage)


def beside(found: Tuning) -> Chart | None:
    """Return the trials of the confirmation, the best settings beside the start; None: nothing was confirmed."""
    head, scale = scale_of(metric(found.metric))
    sides: dict[str, list[float]] = {START: [], BEST: []}
    for one in found.trials:
        if one.stage is Stage.CONFIRM and one.state == "done" and one.value is not None:
            sides[BEST if one.levels == found.winner else START].append(one.value / scale)
    if found.difference is None or not all(sides.values()):
        return None
    confidence = found.difference.confidence
    means = {name: of_trials(values, confidence) for name, values in sides.items()}
    every = [{"side": name, "value": value} for name, values in sides.items() for value in values]
    bars = [{"side": name, "value": one.estimate, "low": one.low, "high": one.high} for name, one in means.items()]
    x = parts.number("value", head, zero=False)
    y = {"field": "side", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 200, "grid": True}}
    layers = [
        {"data": {"values": every}, "mark": {"type": "tick", "color": "@line", "thickness": 2, "size": 14},
         "encoding": {"x": x, "y": y}},
        {"data": {"values": bars}, "mark": {"type": "rule", "color": "@s0", "strokeWidth": 3},
         "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}},
        {"data": {"values": bars}, "mark": {"type": "point", "color": "@s0", "size": 90, "filled": True},
         "encoding": {"x": x, "y": y}},
    ]  # fmt: skip
    sure = f"{100 * confidence:g} %"
    return Chart(
        key="beside",
        title="The best settings beside the start",
        says=f"{found.sentence[:1].upper()}{found.sentence[1:]}. Fresh trials in turns: ticks are trials, points their "
        f"means with {sure} intervals. They had no part in the choice.",
        specification=parts.whole(width=parts.WIDTH - 80, height=2 * ROW, layer=layers),
        sheet=Sheet(
            "Trials of the confirmation",
            [Column("settings", words=True), Column("trials"), Column(head), Column("from"), Column("to")],
            [[name, str(one.n), *(f"{each:.4g}" for each in (one.estimate, one.low, one.high))]
             for name, one in means.items()],
            folded=True,
        ),
    )  # fmt: skip


def gains(found: Tuning) -> Chart | None:
    """Return the main effects: the best level of each setting against its worst; None: there is no model of them."""
    if not found.influences:
        return None
    unit = "%" if found.relative else scale_of(metric(found.metric))[0]
    values = [
        {"setting": one.name, "best": one.best, "worst": one.worst, "flat": one.is_flat,
         **{name: _change(value, found) for name, value in (("gain", one.gain), ("low", one.low), ("high", one.high))}}
        for one in found.influences
    ]  # fmt: skip
    x = parts.number("gain", f"Gain of the best level over the worst ({unit})")
    y = {"field": "setting", "type": "nominal", "sort": None, "title": None,
         "axis": {"labelLimit": 240, "grid": True}}  # fmt: skip
    colour = {"condition": {"test": "datum.flat", "value": "@line"}, "value": "@s0"}
    layers = [
        {"mark": {"type": "rule", "color": "@line"}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour}},
        {"mark": {"type": "point", "size": 70, "filled": True}, "encoding": {"x": x, "y": y, "color": colour}},
    ]  # fmt: skip
    columns, rows = influence_table(found, flat=True)
    words = influence_words(found)
    return Chart(
        key="influence",
        title="Influence of each setting",
        says=f"{words[:1].upper()}{words[1:]}. Bars are 95 % intervals; grey: not shown to matter.",
        specification=parts.whole(
            data={"values": values}, width=parts.WIDTH - 160, height=ROW * len(values), layer=layers
        ),
        sheet=Sheet("Influences", columns, rows, folded=True),
    )


def curves(found: Tuning) -> Chart | None:
    """Return the response to each setting that matters, with its uncertainty; None: none matters."""
    drawn = [one for one in found.influences if not one.is_flat and one.curve][:MOST_CURVES]
    if not drawn:
        return None
    at = "the best settings" if found.winner is not None else "the start"
    unit = "%" if found.relative else scale_of(metric(found.metric))[0]
    return Chart(
        key="curves",
        title="Response to each setting",
        says=f"Expected change against {at}, the other settings as there; bands and bars are 95 % intervals. A "
        "ring: no trial had this level.",
        specification=parts.whole(vconcat=[_panel(one, found, unit) for one in drawn], spacing=14),
        sheet=Sheet(
            "Response curves",
            [Column("setting", words=True), Column("level", words=True), Column(f"change ({unit})"), Column("from"),
             Column("to"), Column("tried", words=True)],
            [[one.name, point["level"], *(f"{point[name]:+.3g}" for name in ("change", "low", "high")),
              "no" if point["untried"] else "yes"] for one in drawn for point in _points(one, found)],
            folded=True,
        ),
    )  # fmt: skip


def _panel(one: Influence, found: Tuning, unit: str) -> dict[str, Any]:
    x = {"field": "level", "type": "ordinal", "sort": None, "title": None, "axis": {"labelAngle": 0}}
    y = parts.number("change", f"Change ({unit})")
    point = {"type": "point", "color": "@s0", "size": 60}
    hollow = {**point, "filled": False, "stroke": "@s0", "strokeWidth": 2}
    return {
        "width": parts.WIDTH,
        "height": CURVE_HEIGHT,
        "title": {"text": one.name, "fontSize": 12, "fontWeight": "normal", "frame": "group"},
        "data": {"values": list(_points(one, found))},
        "layer": [
            *(_band(x, y) if _is_ordered(one) else _bars(x, y)),
            {"transform": [{"filter": "!datum.untried"}], "mark": {**point, "filled": True},
             "encoding": {"x": x, "y": y}},
            {"transform": [{"filter": "datum.untried"}], "mark": hollow, "encoding": {"x": x, "y": y}},
        ],
    }  # fmt: skip


def _is_ordered(one: Influence) -> bool:
    """True if its levels are numbers: only these have something in between."""
    return all(point.label[:1].isdigit() for point in one.curve if point.label != AS_FOUND)


def _band(x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return [
        {"mark": {"type": "area", "color": "@s0", "opacity": 0.18, "aria": False}, "encoding": ends},
        {"mark": {"type": "line", "color": "@s0", "aria": False}, "encoding": {"x": x, "y": y}},
    ]


def _bars(x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return [{"mark": {"type": "rule", "color": "@s0", "strokeWidth": 2, "aria": False}, "encoding": ends}]


def _points(one: Influence, found: Tuning) -> Iterator[dict[str, Any]]:
    for point in one.curve:
        reach = SURE * point.error
        yield {
            "level": point.label, "untried": point.label in one.untried, "change": _change(point.change, found),
            "low": _change(point.change - reach, found), "high": _change(point.change + reach, found),
        }  # fmt: skip


def _change(value: float, found: Tuning) -> float:
    """Per cent, of a change on logarithms."""
    return 100 * math.expm1(value) if found.relative else value


def front(found: Tuning) -> Chart | None:
    """Return the choices of a search for several objectives, the first two of them; None: there is no front."""
    if not found.front or len(found.objectives) < 2:
        return None
    (head_x, scale_x), (head_y, scale_y) = (scale_of(metric(name)) for name, _ in found.objectives[:2])
    names = marks(found.front)
    values = [
        {"x": one.means[0] / scale_x, "y": one.means[1] / scale_y, "choice": name, "start": one.is_start,
         **_reach("x", one, 0, scale_x), **_reach("y", one, 1, scale_y)}
        for name, one in zip(names, found.front, strict=True)
    ]  # fmt: skip
    x, y = parts.number("x", head_x, zero=False), parts.number("y", head_y, zero=False)
    bars = [
        {"transform": [{"filter": f"isValid(datum.{along}_low)"}],
         "mark": {"type": "rule", "color": "@s0", "strokeWidth": 1.5, "aria": False},
         "encoding": {"x": x, "y": y, along: {**own, "field": f"{along}_low"}, f"{along}2": {"field": f"{along}_high"}}}
        for along, own in (("x", x), ("y", y))
    ]  # fmt: skip
    colour = {"condition": {"test": "datum.start", "value": "@s1"}, "value": "@s0"}
    columns, rows = front_table(found)
    (_, up_x), (_, up_y) = found.objectives[:2]
    return Chart(
        key="choices",
        title="Choices of which none beats another",
        says="Means of fresh trials; bars: intervals of the difference to the start. "
        f"Better is {'right' if up_x else 'left'} and {'up' if up_y else 'down'}. "
        f"{legend(found.front)}",
        specification=parts.whole(
            data={"values": values},
            width=parts.WIDTH,
            height=parts.HEIGHT,
            layer=[
                *bars,
                {"mark": {"type": "point", "size": 80, "filled": True}, "encoding": {"x": x, "y": y, "color": colour}},
                *({"transform": [{"filter": which}], "mark": {"type": "text", "align": "left", "dx": 9, "dy": below},
                   "encoding": {"x": x, "y": y, "text": {"field": "choice", "type": "nominal"}}}
                  for which, below in (("!datum.start", -6), ("datum.start", 12))),
            ],
        ),
        sheet=Sheet("Choices", columns, rows),
    )  # fmt: skip


def _reach(along: str, one: FrontPoint, at: int, scale: float) -> dict[str, float]:
    """The ends of the interval of an objective, where there is one."""
    if not one.differences:
        return {}
    found = one.differences[at]
    if found.low is None or found.high is None:
        return {}
    ends = ((1 + found.low) * found.mean_a, (1 + found.high) * found.mean_a) if found.relative else (
        found.mean_a + found.low, found.mean_a + found.high)  # fmt: skip
    return {f"{along}_low": ends[0] / scale, f"{along}_high": ends[1] / scale}
