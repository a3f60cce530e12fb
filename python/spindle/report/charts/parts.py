"""Pieces of Vega-Lite specifications that the charts share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from spindle.report.charts import theme

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
T = TypeVar("T")
WIDTH = 780
HEIGHT = 260
CROSS = "M-.7,-.7L.7,.7M-.7,.7L.7,-.7"
"""Marks a figure whose verdict is invalid."""
NUMBERS = ",.10~g"
"""10,000 and 0.05 alike, never 1e+4."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval."""

    estimate: float
    low: float
    high: float


def whole(**parts: Any) -> dict[str, Any]:
    """Return a specification with the common style."""
    return {"$schema": SCHEMA, "config": theme.CONFIG, **parts}


def number(field: str, title: str, *, log: float | None = None, zero: bool = True, **more: Any) -> dict[str, Any]:
    """Return an axis of numbers; its title ends with the unit in brackets. `log`: base of a logarithmic axis."""
    scale: dict[str, Any] = {"type": "log", "base": log, "nice": log != 2} if log else {"zero": zero, "nice": True}
    scale.update(more.pop("scale", {}))
    axis = {"format": NUMBERS, "labelOverlap": True, "labelSeparation": 8, **more.pop("axis", {})}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis, **more}


def rates(field: str, title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return an axis from 0, or a logarithmic one if the figures differ much."""
    if not is_wide(values):
        return number(field, title)
    return number(field, title, log=10, scale=log_scale(values), axis={"values": decades(values)})


def decades(values: Sequence[float]) -> list[float]:
    """Return ticks of a logarithmic axis: 1, 10, 100, and 2 and 5 if there are few decades."""
    above = [value for value in values if value > 0]
    if not above:
        return []
    low, high = min(above), max(above)
    exponents = range(_exponent(low), _exponent(high) + 2)
    steps: tuple[float, ...] = (1, 2, 5) if len(exponents) <= 4 else (1,)
    if high < 10 * low:  # finer within a decade, so that more than one tick has a label
        steps = tuple(range(1, 10)) if high > 1.5 * low else tuple(at / 10 for at in range(10, 100))
    return [float(f"{step}e{exponent}") for exponent in exponents for step in steps]


def _exponent(value: float) -> int:
    return int(f"{value:e}".rpartition("e")[2])


def series(field: str, title: str, names: Sequence[str], *, marks: bool = True, dashes: bool = True) -> dict[str, Any]:
    """Return colour, dash and mark of curves by name, with one legend below the chart."""
    count = len(names)
    legend = {"title": title, "orient": "bottom", "columns": _columns(names), "symbolType": "stroke", "symbolSize": 500}
    encoding: dict[str, Any] = {
        "color": _scaled(field, names, [f"@s{at % theme.SERIES}" for at in range(count)], legend),
    }
    if dashes:
        encoding["strokeDash"] = _scaled(field, names, [theme.DASHES[at % theme.SERIES] for at in range(count)], legend)
    if marks:
        del legend["symbolType"], legend["symbolSize"]
        encoding["shape"] = _scaled(field, names, [theme.SHAPES[at % theme.SERIES] for at in range(count)], legend)
    if count < 2:
        for channel in encoding.values():
            channel["legend"] = None
    return encoding


def _columns(names: Sequence[str]) -> int:
    longest = max((len(name) for name in names), default=0)
    return max(1, min(4, 90 // (longest + 8)))


def _scaled(field: str, names: Sequence[str], values: Sequence[Any], legend: dict[str, Any]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(names), "range": list(values)},
        "legend": legend,
    }


def crosses(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Return a layer that marks rows with an invalid verdict (`invalid` is true)."""
    return {
        "transform": [{"filter": "datum.invalid"}],
        "mark": {
            "type": "point",
            "shape": CROSS,
            "size": 160,
            "filled": False,
            "stroke": "@bad",
            "strokeWidth": 2.5,
            "aria": False,
        },
        "encoding": {"x": x, "y": y},
    }


def spread(found: Sequence[T], most: int) -> Sequence[T]:
    """Return all, or `most` of them evenly spread, with the first and the last."""
    if len(found) <= most:
        return found
    step = (len(found) - 1) / (most - 1)
    return [found[round(at * step)] for at in range(most)]


def limits(points: Sequence[float], intervals: Sequence[Interval], *, log: bool = False) -> tuple[float, float]:
    """Return the ends of an axis that shows all points. Wide intervals are cut so that they do not squash the rest: at
    twice the reach of the usual interval, or a quarter of the span of the points."""
    scale, back = (_log, math.exp) if log else (float, float)
    at = [scale(point) for point in points]
    low, high = min(at), max(at)
    down = _reach([scale(each.estimate) - scale(each.low) for each in intervals])
    up = _reach([scale(each.high) - scale(each.estimate) for each in intervals])
    least = (high - low) / 4
    low = max(min([low, *(scale(each.low) for each in intervals)]), low - max(down, least))
    high = min(max([high, *(scale(each.high) for each in intervals)]), high + max(up, least))
    return back(low), back(high)


def _log(value: float) -> float:
    """Return the logarithm; an interval may begin at 0."""
    return math.log(min(max(value, 1e-30), 1e30))


def _reach(reaches: Sequence[float]) -> float:
    """Return twice the median reach (the lower of two)."""
    return 2 * sorted(reaches)[(len(reaches) - 1) // 2] if reaches else 0.0


def clipped(interval: Interval, ends: tuple[float, float], words: Callable[[float], str]) -> dict[str, Any]:
    """Return `low` and `high` of a bar within the ends, and in words the cut-off ends (`beyond_low`, `beyond_high`)."""
    found: dict[str, Any] = {"low": max(interval.low, ends[0]), "high": min(interval.high, ends[1])}
    if interval.low < ends[0]:
        found["beyond_low"] = words(interval.low)
    if interval.high > ends[1]:
        found["beyond_high"] = words(interval.high)
    return found


CLIPPED = " An arrow marks an interval that extends beyond the axis, to the figure at the arrow."


def arrows(x: dict[str, Any], y: dict[str, Any], colour: str) -> list[dict[str, Any]]:
    """Return layers for the ends that `clipped` cut off."""
    found = []
    for end, shape, side, away in (("low", "triangle-left", "left", 6), ("high", "triangle-right", "right", -6)):
        only = [{"filter": f"isValid(datum.beyond_{end})"}]
        there = {**x, "field": end}
        arrow = {"type": "point", "shape": shape, "size": 90, "filled": True, "color": colour, "aria": False}
        words = {"type": "text", "align": side, "baseline": "bottom", "dx": away, "dy": -2}
        found += [
            {"transform": only, "mark": arrow, "encoding": {"x": there, "y": y}},
            {
                "transform": only,
                "mark": words,
                "encoding": {"x": there, "y": y, "text": {"field": f"beyond_{end}", "type": "nominal"}},
            },
        ]
    return found


WIDE = 20.0
"""Figures that differ by more than this factor get a logarithmic axis, so that small ones stay distinct."""


def is_wide(values: Sequence[float]) -> bool:
    """True if a logarithmic axis is needed and possible."""
    return bool(values) and min(values) > 0 and max(values) > WIDE * min(values)


def log_scale(values: Sequence[float]) -> dict[str, Any]:
    """Return a scale from just below the smallest to just above the largest."""
    above = [value for value in values if value > 0] or [1.0]
    return {"domain": [min(above) / 1.15, max(above) * 1.15], "nice": False}


def shortened(names: Sequence[str], most: int = 60) -> list[str]:
    """Shorten names to the room of a legend if they stay distinct: common parts are dropped first."""
    if all(len(name) <= most for name in names):
        return list(names)
    for keep in (0, 1, 2):
        found = [_cut(name, names, most, keep) for name in names]
        if len(set(found)) == len(set(names)):
            return found
    return list(names)


def _cut(name: str, among: Sequence[str], most: int, keep: int) -> str:
    """Cut a name. `keep` 0: the beginning without the common prefix; 1: the end; 2: both ends."""
    room = most - 6
    if keep == 0:
        first, last = min(among), max(among)
        same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
        rest = name[max(first.rfind(" ", 0, same), first.rfind("/", 0, same)) + 1 :]
        return rest if len(rest) <= most else f"{rest[:room]}..."
    if len(name) <= most:
        return name
    return f"...{name[-room:]}" if keep == 1 else f"{name[: room // 2]}...{name[-(room // 2) :]}"
