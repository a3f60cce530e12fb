"""Effects of factors on the throughput: their levels against their mean, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base.numbers import as_change, plain
from spindle.report.charts import parts
from spindle.report.document.findings import Group, explained, some
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.table import Column
from spindle.stats.effects import Effect, Effects, Level, level_interval
from spindle.stats.names import metric

ROW = 24


@dataclass(frozen=True)
class Scale:
    """The same axis for every factor, so that they can be compared: per cent, or multiples where levels differ much."""

    multiples: bool
    ends: tuple[float, float]

    @property
    def middle(self) -> float:
        """Position of the mean of the levels."""
        return 1.0 if self.multiples else 0.0

    def of(self, change: float) -> float:
        """Return the position of a change."""
        return 1 + change if self.multiples else 100 * change

    def interval(self, known: Effects, level: Level) -> parts.Interval:
        """Return the interval of a level."""
        low, high = level_interval(known, level)
        return parts.Interval(self.of(level.change), self.of(low), self.of(high))

    def words(self, value: float) -> str:
        """Return a position as a change in words."""
        return as_change(value - 1 if self.multiples else value / 100, sign=True)


def charts(groups: Sequence[Group]) -> list[Chart]:
    """Return a chart for each group with known effects of at least two factors."""
    found = [(group, known) for group in groups if (known := group.factors()) is not None]
    return [
        _chart(group, known, at)
        for at, (group, known) in enumerate(found)
        if len(_mains(known)) > 1 and known.relative and known.tested
    ]


def _mains(known: Effects) -> list[Effect]:
    return [effect for effect in known.effects if len(effect.factors) == 1]


def _scale(known: Effects) -> Scale:
    levels = [level for effect in _mains(known) for level in effect.levels]
    multiples = parts.is_wide([1 + level.change for level in levels])
    plain_scale = Scale(multiples, (0.0, 0.0))
    intervals = [plain_scale.interval(known, level) for level in levels]
    points = [plain_scale.middle, *(each.estimate for each in intervals)]
    return Scale(multiples, parts.limits(points, intervals, log=multiples))


def _chart(group: Group, known: Effects, at: int) -> Chart:
    scale = _scale(known)
    name = f" ({group.name})" if group.name else ""
    panels = [
        {
            **_panel(known, scale),
            "height": ROW * len(effect.levels),
            "title": {"text": effect.name, "fontSize": 12, "fontWeight": "normal", "frame": "group"},
            "data": {"values": _values(known, effect, scale)},
        }
        for effect in _mains(known)
    ]
    return Chart(
        key=f"effects-{at + 1}" if at else "effects",
        title=f"Effect of each factor{name}",
        says=_says(known, scale),
        specification=parts.whole(vconcat=panels, spacing=14),
        sheet=_sheet(known),
    )


def _panel(known: Effects, scale: Scale) -> dict[str, Any]:
    what = metric(known.metric).words
    title = f"{what[:1].upper()}{what[1:]} against the mean of the levels"
    ends = list(scale.ends)
    if scale.multiples:
        axis = {"values": parts.decades(ends)}
        x = parts.number("change", f"{title} (times)", log=10, scale={"domain": ends, "nice": False}, axis=axis)
    else:
        x = parts.number("change", f"{title} (%)", scale={"domain": ends, "nice": True})
    y = {"field": "level", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 200, "grid": True}}
    return {
        "width": parts.WIDTH - 160,
        "layer": [
            {
                "mark": {"type": "rule", "color": "@line"},
                "encoding": {"x": {"datum": scale.middle, "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "color": "@s0", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
            },
            {"mark": {"type": "point", "color": "@s0", "size": 70}, "encoding": {"x": x, "y": y}},
            *(parts.arrows(x, y, "@s0") if _is_clipped(known, scale) else []),
        ],
    }


def _values(known: Effects, effect: Effect, scale: Scale) -> list[dict[str, Any]]:
    names = parts.shortened([level.name for level in effect.levels], 34)
    found = []
    for level, name in zip(effect.levels, names, strict=True):
        interval = scale.interval(known, level)
        bar = parts.clipped(interval, scale.ends, scale.words)
        found.append({"factor": effect.name, "level": name, "change": interval.estimate, **bar})
    return found


def _is_clipped(known: Effects, scale: Scale) -> bool:
    intervals = [scale.interval(known, level) for effect in _mains(known) for level in effect.levels]
    return any(each.low < scale.ends[0] or each.high > scale.ends[1] for each in intervals)


def _says(known: Effects, scale: Scale) -> str:
    text = "Each level of a factor against the mean of its levels, all other factors equal; bars are 95 % intervals."
    if shares := explained(known):
        text += f" {shares}"
    quiet = [effect.name for effect in _mains(known) if not effect.significant]
    if quiet:
        text += f" No significant effect: {', '.join(quiet)}."
    together = [effect.name for effect in known.effects if len(effect.factors) == 2 and effect.significant]
    if together:
        text += f" They interact: {some(together, ', ')}."
    return text + (parts.CLIPPED if _is_clipped(known, scale) else "")


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
                    _cell(level.change),
                    _cell(low),
                    _cell(high),
                    plain(effect.p_adjusted),
                ]
            )
    columns = [
        Column("factor", words=True),
        Column("level", words=True),
        *(Column(head) for head in ("trials", "change %", "from %", "to %", "p")),
    ]
    return Sheet("Effects of the factors", columns, rows, folded=True)


def _cell(change: float) -> str:
    """Return per cent; large ones without decimals."""
    return f"{100 * change:+.{0 if abs(change) >= 10 else 1}f}"
