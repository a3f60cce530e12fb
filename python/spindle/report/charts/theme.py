"""Colours by role, and the style that all charts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROLE = "@"
"""Prefix of a string that names a colour by its role."""

SERIES = 8
"""Most curves of a chart that an eye can distinguish."""
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "stroke"]
HEAT = 7
"""Steps of the heat map's scale."""

# Contrast with the background: text 7:1 or better, curves and marks 3:1 or better (WCAG 2.2, 1.4.11).
LIGHT: Mapping[str, str] = {
    "ground": "#ffffff",
    "ink": "#1c2430",
    "soft": "#4d5866",
    "grid": "#e3e7ec",
    "line": "#8a94a1",
    "bad": "#b3001b",
    "warn": "#8a5300",
    "good": "#14693a",
    "wash": "#f3f5f8",
    **dict(
        zip(
            [f"s{at}" for at in range(SERIES)],
            ["#0b62a8", "#b8480b", "#1a7a4c", "#8a3a8f", "#7a5c00", "#00707a", "#a3195b", "#4d4d4d"],
            strict=True,
        )
    ),
    **dict(
        zip(
            [f"h{at}" for at in range(HEAT)],
            ["#eef3f8", "#cfe0ee", "#a3c6e0", "#6fa3cc", "#4179b0", "#27518c", "#172c5e"],
            strict=True,
        )
    ),
}
DARK: Mapping[str, str] = {
    "ground": "#14181e",
    "ink": "#e8ecf1",
    "soft": "#aab4c0",
    "grid": "#2a313a",
    "line": "#76818e",
    "bad": "#ff8080",
    "warn": "#f0b95a",
    "good": "#6fd49b",
    "wash": "#1d232b",
    **dict(
        zip(
            [f"s{at}" for at in range(SERIES)],
            ["#6cb6ff", "#ffa65c", "#5fd39a", "#d79be0", "#e3c04b", "#5cd3dd", "#ff8fc0", "#c4c4c4"],
            strict=True,
        )
    ),
    **dict(
        zip(
            [f"h{at}" for at in range(HEAT)],
            ["#1b2430", "#1f3a57", "#24557f", "#3176a8", "#52a0cb", "#8cc9e3", "#d5eff8"],
            strict=True,
        )
    ),
}

CONFIG: dict[str, Any] = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "title": {"color": "@ink", "fontSize": 14, "anchor": "start", "subtitleColor": "@soft", "offset": 8},
    "axis": {
        "labelColor": "@soft",
        "titleColor": "@ink",
        "gridColor": "@grid",
        "domainColor": "@line",
        "tickColor": "@line",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 320,
    },
    "legend": {
        "labelColor": "@ink",
        "titleColor": "@soft",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "symbolSize": 70,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
        "labelLimit": 560,
        "columnPadding": 20,
    },
    "header": {"labelColor": "@ink", "titleColor": "@ink"},
    "line": {"strokeWidth": 2},
    "point": {"size": 45, "filled": True, "opacity": 1},
    "text": {"color": "@ink", "fontSize": 11},
    "rule": {"color": "@line"},
}


def coloured(value: Any, colours: Mapping[str, str] | None) -> Any:
    """Return the specification with real colours, or (None) with CSS variables of the same names."""
    match value:
        case str() if value.startswith(ROLE) and value[1:] in LIGHT:
            return f"var(--{value[1:]})" if colours is None else colours[value[1:]]
        case dict():
            return {key: coloured(item, colours) for key, item in value.items()}
        case list():
            return [coloured(item, colours) for item in value]
        case _:
            return value
