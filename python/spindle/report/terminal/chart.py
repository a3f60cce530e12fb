"""Curves in the terminal, and as a picture."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spindle.host.outputs import Output
from spindle.report.render.picture import marked
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage

HEIGHT = 10
WIDEST = 78
LEAST = 40
MARGIN = 10


@dataclass(frozen=True)
class Curve:
    """y over x; both above 0 if an axis is logarithmic."""

    title: str
    points: Sequence[tuple[float, float]]
    x: str
    y: str
    x_words: Callable[[float], str]
    y_words: Callable[[float], str]
    log_x: bool = False
    log_y: bool = False


def lines(curve: Curve, style: Style) -> list[str]:
    """Return the curve as text; nothing if the terminal is too narrow."""
    width = min(style.width or WIDEST, WIDEST)
    if len(curve.points) < 2 or width < LEAST:
        return []
    inner = width - MARGIN - 2
    at_x = _scale([x for x, _ in curve.points], curve.log_x, zero=not curve.log_x)
    at_y = _scale([y for _, y in curve.points], curve.log_y, zero=not curve.log_y)
    grid = [[" "] * inner for _ in range(HEIGHT)]
    places = [(round(at_x(x) * (inner - 1)), at_y(y)) for x, y in curve.points]
    for (left, low), (right, high) in itertools.pairwise(places):
        for column in range(left, right + 1):
            share = low if right == left else low + (high - low) * (column - left) / (right - left)
            grid[HEIGHT - 1 - round(share * (HEIGHT - 1))][column] = "."
    for column, share in places:
        grid[HEIGHT - 1 - round(share * (HEIGHT - 1))][column] = "o"
    ys = [y for _, y in curve.points]
    bottom = min(ys) if curve.log_y else 0.0
    ticks = {0: curve.y_words(max(ys)), HEIGHT - 1: curve.y_words(bottom)}
    text = [f"{curve.title}: {curve.y} over {curve.x}"]
    for row, cells in enumerate(grid):
        text.append(f"{ticks.get(row, '').rjust(MARGIN - 2)} |{''.join(cells)}".rstrip())
    xs = [x for x, _ in curve.points]
    begin, end = curve.x_words(min(xs) if curve.log_x else 0.0), curve.x_words(max(xs))
    text.append(f"{' ' * (MARGIN - 1)}+{'-' * inner}")
    text.append(f"{' ' * MARGIN}{begin}{end.rjust(inner - len(begin))}")
    return text


def _scale(values: Sequence[float], log: bool, zero: bool) -> Callable[[float], float]:
    """Return a scale of 0 to 1 over the values (or from 0)."""

    def raw(value: float) -> float:
        return math.log(value) if log else value

    low = 0.0 if zero else raw(min(values))
    high = raw(max(values))
    span = high - low
    return (lambda value: (raw(value) - low) / span) if span > 0 else (lambda value: 0.5)


def picture(title: str, curves: Sequence[Curve]) -> dict[str, Any]:
    """Return the curves as a Vega-Lite specification, below each other."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "vconcat": [
            {
                "title": curve.title,
                "width": 480,
                "height": 180,
                "data": {"values": [{"x": x, "y": y} for x, y in curve.points]},
                "mark": {"type": "line", "point": True},
                "encoding": {
                    "x": _axis("x", curve.x, curve.log_x),
                    "y": _axis("y", curve.y, curve.log_y),
                },
            }
            for curve in curves
        ],
    }


def _axis(field: str, title: str, log: bool) -> dict[str, Any]:
    scale: dict[str, Any] = {"type": "log", "base": 2 if field == "x" else 10} if log else {"zero": True}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": {"format": "~s"}}


def save(specification: dict[str, Any], output: Output) -> None:
    """Save a PNG or SVG file. Raises `Usage` if the name has another ending."""
    path = output.path
    if path.suffix not in (".png", ".svg"):
        raise Usage(f"`chart=` {path}: the name must end with .png or .svg")
    converter = importlib.import_module("vl_convert")
    if path.suffix == ".png":
        data: bytes = converter.vegalite_to_png(specification, scale=2)
    else:
        data = converter.vegalite_to_svg(specification).encode()
    output.save(marked(data))
