"""Charts for telephones: the same marks on a narrower drawing, so that text keeps its size."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spindle.report.charts.parts import shortened

WHOLE = 335
"""Width of the drawing, pixels: a screen of 375 without its margins."""
AXIS = 60
"""Part of the width for an axis's numbers and title."""
LETTER = 6.2
"""Width of a character of a label, pixels."""
LINE = 13
"""Height of a line of a label, pixels."""
LINE_LETTERS = 22
"""Characters of a line of a label beside a row."""
LABEL_LETTERS = 2 * LINE_LETTERS
"""Characters of a whole label; longer ones are cut if they stay distinct."""
LEGEND_LETTERS = 36
"""Characters of a line of a legend, which begins below the drawing, not below its axis."""
TITLE_LETTERS = 40
AXIS_LETTERS = 34


@dataclass(frozen=True)
class Rows:
    """Labels beside rows."""

    lines: Mapping[str, Sequence[str]]
    """Lines of each label."""

    @property
    def room(self) -> float:
        """Pixels beside the rows."""
        longest = max((len(line) for lines in self.lines.values() for line in lines), default=0)
        return max(AXIS, longest * LETTER + 24)

    @property
    def least_height(self) -> float:
        """Lowest height of a row."""
        return LINE * max((len(lines) for lines in self.lines.values()), default=1) + 2


def narrow(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification made to fit a telephone."""
    rows = _rows(specification)
    below = {"legend": {**specification["config"]["legend"], "layout": {"bottom": {"direction": "vertical"}}}}
    return {**_fitted(specification, rows), "config": {**specification["config"], **below}}


def _rows(specification: Mapping[str, Any]) -> Rows:
    names: dict[str, None] = {}
    for view in _views(specification):
        names |= dict.fromkeys(_row_names(view))
    every = list(names)
    shown = shortened(every, LABEL_LETTERS)
    return Rows({name: textwrap.wrap(text, LINE_LETTERS) or [""] for name, text in zip(every, shown, strict=True)})


def _row_names(view: Mapping[str, Any]) -> Iterator[str]:
    for field in _row_fields(view):
        yield from _domain(view, field)
        yield from (str(value[field]) for value in _values(view) if field in value)


def _views(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield drawings with their own area."""
    inner: Sequence[Mapping[str, Any]] = part.get("vconcat", ())
    if not inner:
        yield part
    for each in inner:
        yield from _views({"data": part.get("data", {}), **each})


def _values(view: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = view.get("data", {}).get("values", ())
    return found


def _channels(view: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part in (view, *view.get("layer", ())):
        yield from part.get("encoding", {}).items()


def _row_fields(view: Mapping[str, Any]) -> set[str]:
    return {of["field"] for name, of in _channels(view) if name == "y" and of.get("type") == "nominal"}


def _domain(view: Mapping[str, Any], field: str) -> list[str]:
    found = [of.get("scale", {}).get("domain", ()) for _, of in _channels(view) if of.get("field") == field]
    return [name for domain in found for name in domain if isinstance(name, str)]


def _fitted(part: Any, rows: Rows) -> Any:
    if isinstance(part, list):
        return [_fitted(each, rows) for each in part]
    if not isinstance(part, Mapping):
        return part
    found = {name: each if name in ("data", "config") else _fitted(each, rows) for name, each in part.items()}
    if isinstance(found.get("encoding"), dict):
        found["encoding"] = {name: _channel(name, of, rows) for name, of in found["encoding"].items()}
    return _sized(found, rows)


def _sized(view: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """Size a drawing to the width of the screen, its rows to the height of their labels."""
    if not isinstance(view.get("width"), int | float):
        return view
    found = {**view, "width": WHOLE - rows.room}
    if isinstance(view.get("title"), str):
        found["title"] = textwrap.wrap(view["title"], TITLE_LETTERS)
    if names := set(_row_names(view)):
        found["height"] = max(view["height"], rows.least_height * len(names))
    return found


def _channel(name: str, of: dict[str, Any], rows: Rows) -> dict[str, Any]:
    if name == "y" and of.get("type") == "nominal":
        axis = {**of.get("axis", {}), "labelExpr": _words(rows.lines), "labelLimit": WHOLE}
        return {**of, "axis": axis}
    if name in ("x", "y") and of.get("type") == "quantitative" and isinstance(of.get("title"), str):
        few = {} if of.get("scale", {}).get("type") == "log" else {"tickCount": 4}
        return {**of, "title": textwrap.wrap(of["title"], AXIS_LETTERS), "axis": {**few, **of.get("axis", {})}}
    if isinstance(of.get("legend"), dict):
        return {**of, "legend": _legend(of)}
    return of


def _legend(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return a legend with its entries below each other."""
    legend = dict(of["legend"])
    names = [name for name in of.get("scale", {}).get("domain", ()) if isinstance(name, str)]
    legend["columns"] = 1 if names and max(map(len, names)) > LINE_LETTERS / 2 else 2
    legend["labelLimit"] = WHOLE
    if names:
        short = shortened(names, LEGEND_LETTERS)
        lines = {name: textwrap.wrap(text, LEGEND_LETTERS) for name, text in zip(names, short, strict=True)}
        legend["labelExpr"] = _words(lines)
    return legend


def _words(names: Mapping[str, Sequence[str]]) -> str:
    """Return a Vega expression: the name, or its lines."""
    changed = {name: list(lines) for name, lines in names.items() if [name] != list(lines)}
    return f"({json.dumps(changed)})[datum.label] || datum.label" if changed else "datum.label"
