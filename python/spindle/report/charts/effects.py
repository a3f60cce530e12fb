"""What each factor does to the throughput: its levels against their mean, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spindle.report.charts import parts
from spindle.report.document.findings import Group
from spindle.report.document.model import Chart, Sheet
from spindle.report.number import plain
from spindle.report.table import Column
from spindle.result import units
from spindle.stats.effects import Effect, Effects, Level, level_interval
from spindle.stats.metric import metric

ROW = 24


def charts(groups: Sequence[Group]) -> list[Chart]:
    """A chart for each group whose trials tell the effects of two factors or more."""
    found = [(group, known) for group in groups if (known := group.factors()) is not None]
    return [
        _chart(group, known, at)
        for at, (group, known) in enumerate(found)
        if len(_mains(known)) > 1 and known.relative and known.tested
    ]


def _mains(known: Effects) -> list[Effect]:
    return [effect for effect in known.effects if len(effect.factors) == 1]


def _chart(group: Group, known: Effects, at: int) -> Chart:
    values = [value for effect in _mains(known) for level in effect.levels for value in [_value(known, effect, level)]]
    what = metric(known.metric).words
    name = f" ({group.name})" if group.name else ""
    x = parts.number("change", f"{what[:1].upper()}{what[1:]} against the mean of the levels (%)")
    y = {"field": "level", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 200, "grid": True}}
    panel = {
        "width": parts.WIDTH - 160,
        "layer": [
            {"mark": {"type": "rule", "color": "@line"}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
            {
                "mark": {"type": "rule", "color": "@s0", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
            },
            {"mark": {"type": "point", "color": "@s0", "size": 70}, "encoding": {"x": x, "y": y}},
        ],
    }
    ends = [value[key] for value in values for key in ("low", "high", "change")]
    domain = {"domain": [min([0.0, *ends]), max([0.0, *ends])], "nice": True}
    rows = []
    for effect in _mains(known):
        theirs = [value for value in values if value["factor"] == effect.name]
        rows.append(
            {
                **_scaled(panel, domain),
                "height": ROW * len(theirs),
                "title": {"text": effect.name, "fontSize": 12, "fontWeight": "normal", "frame": "group"},
                "data": {"values": theirs},
            }
        )
    return Chart(
        key=f"effects-{at + 1}" if at else "effects",
        title=f"What each factor does{name}",
        says=_says(known),
        specification=parts.whole(vconcat=rows, spacing=14),
        sheet=_sheet(known),
    )


def _scaled(panel: dict[str, Any], domain: dict[str, Any]) -> dict[str, Any]:
    """The same axis for every factor, so that they can be compared."""
    layers = []
    for layer in panel["layer"]:
        x = layer["encoding"]["x"]
        layers.append({**layer, "encoding": {**layer["encoding"], "x": {**x, "scale": domain} if "field" in x else x}})
    return {**panel, "layer": layers}


def _value(known: Effects, effect: Effect, level: Level) -> dict[str, Any]:
    low, high = level_interval(known, level)
    every = [each.name for each in effect.levels]
    names = dict(zip(every, parts.shortened(every, 34), strict=True))
    return {
        "factor": effect.name,
        "level": names[level.name],
        "change": 100 * level.change,
        "low": 100 * low,
        "high": 100 * high,
    }


def _says(known: Effects) -> str:
    mains = _mains(known)
    told = [effect for effect in mains if effect.told]
    text = (
        "Each level of a factor against the mean of its levels, all other factors held alike; bars are 95 % intervals."
    )
    if told:
        text += " " + "; ".join(
            f"{effect.name} explains {units.percent(effect.share)} of the differences" for effect in told[:3]
        )
        text += "."
    quiet = [effect.name for effect in mains if not effect.told]
    if quiet:
        text += f" No effect can be told of {', '.join(quiet)}."
    together = [effect.name for effect in known.effects if len(effect.factors) == 2 and effect.told]
    if together:
        text += f" They act together: {', '.join(together[:3])}."
    return text


def _sheet(known: Effects) -> Sheet:
    rows = []
    for effect in _mains(known):
        for level in effect.levels:
            low, high = level_interval(known, level)
            rows.append(
                [
                    effect.name,
                    level.name,
                    str(level.trials),
                    f"{100 * level.change:+.1f}",
                    f"{100 * low:+.1f}",
                    f"{100 * high:+.1f}",
                    plain(effect.p_adjusted),
                ]
            )
    columns = [
        Column("factor", words=True),
        Column("level", words=True),
        *(Column(head) for head in ("trials", "change %", "from %", "to %", "p")),
    ]
    return Sheet("Effects of the factors", columns, rows, folded=True)
