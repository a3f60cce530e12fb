"""Charts drawn with vl-convert, made small and safe for an HTML page."""

from __future__ import annotations

import importlib
import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spindle.report.charts import theme
from spindle.report.charts.parts import SCHEMA
from spindle.report.document.model import Chart
from spindle.report.render.narrow import narrow
from spindle.report.render.picture import marked
from spindle.run.errors import Usage

_SVG = "http://www.w3.org/2000/svg"
_KEPT = {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath", "title"}
"""SVG elements of a chart; none of them can run or load anything."""
_DROPPED = {
    *("font-family", "pointer-events", "role", "style", "version", "href"),
    *("aria-hidden", "aria-roledescription", "aria-label"),
}
"""Attributes that are dropped: the page sets the font, its text describes the chart."""
_SIZES = {"width", "height"}
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_USUAL = {"stroke-width": "1", "opacity": "1", "stroke-miterlimit": "10"}
"""Attributes with default values."""
MARGIN = 12
WIDER = 1.1
"""Pixels by which a letter of a label may be wider in another font."""
SAYS = 118
"""Characters of a line below a title."""
TALLEST = 30_000
"""Highest picture that programs open, pixels."""


def inline(chart: Chart) -> str:
    """Return SVG elements with the page's colour variables, whose marks show their figures as tooltips: one for wide
    screens, one for telephones. The page shows one of them."""
    return _element(chart, chart.specification, "broad") + _element(chart, narrow(chart.specification), "slim")


def _element(chart: Chart, specification: Mapping[str, Any], look: str) -> str:
    text = _converter().vegalite_to_svg(theme.coloured(specification, None))
    root = ET.fromstring(text)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    left = MARGIN + _overhang(root)
    whole = width + left + MARGIN
    _tidy(root, f"{chart.key}-{look}")
    body = "".join(_text_of(child) for child in root)
    return (
        f'<svg class="chart {look}" viewBox="{-left:.0f} 0 {whole:.0f} {height:.0f}" '
        f'style="max-width:{whole:.0f}px" role="img" '
        f'aria-labelledby="{chart.key}-title" aria-describedby="{chart.key}-says" fill="none" '
        f'stroke-miterlimit="10">{body}</svg>'
    )


def _overhang(root: ET.Element) -> float:
    """Return the room beside the rows for a reader's font that is wider than the layout's font."""
    ends = [each.text or "" for each in root.iter(f"{{{_SVG}}}text") if each.get("text-anchor") == "end"]
    return WIDER * max((len(text) for text in ends), default=0)


def _tidy(element: ET.Element, key: str) -> None:
    for child in list(element):
        if _name(child) not in _KEPT or _is_nothing(child):
            element.remove(child)
            continue
        label = child.get("aria-label") if child.get("aria-roledescription") in _FIGURE_MARKS else None
        _tidy(child, key)
        if _name(child) == "g" and len(child) == 0:
            element.remove(child)
            continue
        for name, value in list(child.attrib.items()):
            kept = _kept(child, name, value, key)
            if kept is None:
                del child.attrib[name]
            else:
                child.set(name, kept)
        if label:
            title = ET.Element(f"{{{_SVG}}}title")
            title.text = _tooltip(label)
            child.insert(0, title)


def _kept(element: ET.Element, name: str, value: str, key: str) -> str | None:
    """Convert an attribute; None: drop it."""
    plain = name.rpartition("}")[2]
    if plain in _SIZES and _name(element) == "rect":
        return _NUMBER.sub(_rounded, value)
    if plain in _DROPPED or plain in _SIZES or plain.startswith("on") or _USUAL.get(plain) == value:
        return None
    if plain == "id":
        return f"{key}-{value}"
    if value.startswith("url(#"):
        return f"url(#{key}-{value[5:]}"
    return _NUMBER.sub(_rounded, value)


_FIGURE_MARKS = {"point", "bar", "tick", "rect mark", "symbol"}
"""Marks of single figures."""


def _tooltip(label: str) -> str:
    return "\n".join(part for part in label.split("; ") if not part.endswith((": null", ": false", ": true")))


def _is_nothing(child: ET.Element) -> bool:
    """True for backgrounds and frames that Vega adds everywhere."""
    if _name(child) == "path":
        return (
            child.get("display") == "none" or not child.get("d") or child.get("class") in ("background", "foreground")
        )
    return False


def _name(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".").replace("-0.00", "0")


def _text_of(element: ET.Element) -> str:
    """Serialize without the name-space that is repeated on every element."""
    ET.register_namespace("", _SVG)
    return ET.tostring(element, encoding="unicode").replace(f' xmlns="{_SVG}"', "")


def picture(charts: Sequence[Chart], ending: str, title: str) -> bytes:
    """Draw all charts below each other, as `png` or `svg`. Raises `Usage` if there is none."""
    if not charts:
        raise Usage(f"`format=` {ending}: these records have nothing to draw; `format=` html has their figures")
    panels = [_panel(chart) for chart in charts]
    whole = {
        "$schema": SCHEMA,
        "title": {"text": title, "fontSize": 16},
        "config": {**theme.CONFIG, "background": "@ground", "padding": 16, "concat": {"spacing": 36}},
        "vconcat": panels,
        "resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")},
    }
    specification = theme.coloured(whole, theme.LIGHT)
    if ending == "svg":
        text: str = _converter().vegalite_to_svg(specification)
        return marked(text.encode())
    data: bytes = _converter().vegalite_to_png(specification, scale=2 if _height(panels) * 2 < TALLEST else 1)
    return marked(data)


def _panel(chart: Chart) -> dict[str, Any]:
    inner = {name: part for name, part in chart.specification.items() if name not in ("$schema", "config")}
    says = textwrap.wrap(chart.says, SAYS)
    return {"title": {"text": chart.title, "subtitle": says, "subtitlePadding": 4}, **inner}


def _height(panels: Sequence[Mapping[str, Any]]) -> float:
    return sum(_heights(panels))


def _heights(panels: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for panel in panels:
        if "vconcat" in panel:
            yield from _heights(panel["vconcat"])
        else:
            yield float(panel.get("height", 200)) + 90


def _converter() -> Any:
    return importlib.import_module("vl_convert")
