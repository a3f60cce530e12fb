"""A comparison as a page of text, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from spindle.base import units
from spindle.base.numbers import as_change, plain
from spindle.base.plain import as_json
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import Level
from spindle.stats.compare import Comparison, DescribedDifference
from spindle.stats.curves import Curves
from spindle.stats.difference import Difference
from spindle.stats.effects import Effect, Effects
from spindle.stats.names import metric
from spindle.stats.ranking import Ranking
from spindle.stats.study import Study

BAR = 25
"""Width of a drawn interval; odd, so that 0 is in the middle."""
SHORT = 15
"""Width in a narrow terminal."""


@dataclass(frozen=True)
class Extent:
    """A change and the interval around it."""

    change: float
    low: float | None
    high: float | None
    relative: bool = True


def _extent(found: Difference) -> Extent:
    return Extent(found.change, found.low, found.high, found.relative)


def encode(found: Study) -> str:
    """Return indented JSON; numbers that are not finite are null."""
    data = msgspec.to_builtins(found)
    for each, ranking in zip(data["rankings"], found.rankings, strict=True):
        each |= {"best": ranking.best, "words": ranking.words}
    for each, curve in zip(data["curves"], found.curves, strict=True):
        each["words"] = curve.words
    data["comparison"]["likeness"]["words"] = found.comparison.likeness.words
    return as_json(data) + "\n"


def page(found: Study, style: Style) -> list[str]:
    """Return the page, most important first."""
    comparison = found.comparison
    lines = style.headline(_head(found))
    for line in comparison.likeness.words:
        lines += marked(line, style)
    if found.pairwise:
        lines += ["", *_differences(comparison, style), ""]
        for finding in comparison.findings:
            lines += style.wrap(f"{finding.words}.", rest="  ")
    for ranking in found.rankings:
        lines += ["", *_ranking(ranking, style)]
    for each in found.effects:
        lines += ["", *_effects(each, style)]
    for curves in found.curves:
        lines += ["", *_curves(curves, style)]
    if comparison.notes:
        lines.append("")
    for note in comparison.notes:
        lines += marked(note, style)
    return lines


def _head(found: Study) -> str:
    comparison = found.comparison
    sides = [
        f"{label} ({count} run{'s' if count != 1 else ''})"
        for label, count in zip(comparison.sides, comparison.counts, strict=True)
    ]
    if not found.pairwise:
        runs = sum(comparison.counts)
        return f"{len(sides)} cells, {runs} runs, {comparison.means}, {100 * comparison.confidence:g} % confidence"
    basis = {finding.difference.basis for finding in comparison.findings}
    how = ", in blocks" if basis == {"blocks"} else ""
    sure = f"{comparison.means}, {100 * comparison.confidence:g} % confidence"
    return f"{', '.join(sides[1:])} against {sides[0]}{how}; {sure}"


def marked(text: str, style: Style) -> list[str]:
    """Return a note about the figures."""
    wrapped = style.wrap(text, first="note    ")
    return [wrapped[0].replace("note", style.level(Level.WARN, "note"), 1), *wrapped[1:]] if style.colour else wrapped


def _differences(comparison: Comparison, style: Style) -> list[str]:
    """Return the widest table that fits; if the columns about more trials do not fit, lines below have them."""
    plans = _plans(comparison, style)
    known = any(finding.difference.low is not None for finding in comparison.findings)
    for bar, planned in ((BAR, True), (BAR, False), (SHORT, False)) if known else ():
        lines = _table(comparison, bar, planned and bool(plans), Style())
        if _fits(lines, style):
            return lines if planned else [*lines, *plans]
    return [*_table(comparison, 0, False, style), *plans]


def _fits(lines: Sequence[str], style: Style) -> bool:
    return style.width is None or max(map(len, lines)) <= style.width


def _table(comparison: Comparison, bar: int, planned: bool, style: Style) -> list[str]:
    findings = comparison.findings
    several = len(comparison.sides) > 2
    reach = _reach([_extent(finding.difference) for finding in findings])
    columns = [
        Column("metric", words=True),
        *([Column("", words=True)] if several else []),
        Column(_short(comparison.sides[0])),
        Column("other" if several else _short(comparison.sides[1])),
        Column("change"),
        Column("interval"),
        *([Column(_scale(reach, bar), words=True)] if bar else []),
        *([Column("finds"), Column(f"{100 * findings[0].planning.apart:g} % needs")] if planned else []),
    ]
    rows = []
    seen = ""
    for finding in findings:
        found = finding.difference
        rows.append(
            [
                found.metric if found.metric != seen else "",
                *([_short(found.b)] if several else []),
                amount(found.mean_a, found.metric),
                amount(found.mean_b, found.metric),
                _change(_extent(found)),
                _interval(_extent(found)),
                *([_bar(_extent(found), reach, bar)] if bar else []),
                *(_planned(finding) if planned else []),
            ]
        )
        seen = found.metric if several else ""
    return table(columns, rows, style)


def _plans(comparison: Comparison, style: Style) -> list[str]:
    """Return a line about the gain of more trials for each metric; nothing if unknown."""
    several = len(comparison.sides) > 2
    lines = []
    for finding in comparison.findings:
        plan, found = finding.planning, finding.difference
        if plan.needed is not None and plan.finds is not None:
            lines += style.wrap(
                f"{found.metric}{f', {_short(found.b)}' if several else ''}: these trials find "
                f"{as_change(plan.finds)}; "
                f"{100 * plan.apart:g} % needs {plan.needed} of each",
                rest="  ",
            )
    return lines


def amount(value: float, name: str) -> str:
    """Return a metric's value with its unit."""
    if not math.isfinite(value):
        return "-"
    match metric(name).unit:
        case "ns":
            return units.duration(value)
        case "B/s":
            return units.rate(value)
        case "1/s":
            return units.count(value)
        case unit:
            return f"{plain(value)} {unit}".rstrip()


def _short(label: str) -> str:
    """Shorten to fit a column: the end of a long path, the levels of a cell."""
    return label if len(label) <= 32 else f"...{label[-29:]}"


def _change(found: Extent) -> str:
    if not math.isfinite(found.change):
        return "-"
    return as_change(found.change, sign=True) if found.relative else f"{found.change:+.3g}"


def _interval(found: Extent) -> str:
    if found.low is None or found.high is None:
        return "unknown"
    if not found.relative:
        return f"{found.low:+.3g} to {found.high:+.3g}"
    return f"{as_change(found.low, sign=True)} to {as_change(found.high, sign=True)}"


def _planned(finding: DescribedDifference) -> list[str]:
    plan = finding.planning
    return [
        as_change(plan.finds) if plan.finds is not None else "-",
        f"{plan.needed} each" if plan.needed is not None else "-",
    ]


def _reach(found: Sequence[Extent]) -> float:
    """Return the reach of the bars on each side of 0: to the farthest end, but not beyond twice or half."""
    ends = [abs(end) for each in found if each.relative for end in (each.low, each.high) if end is not None]
    farthest = min(max([end for end in ends if math.isfinite(end)], default=0.0), 1.0)
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    return next(step for step in steps if step >= farthest * 0.999)


def _scale(reach: float, width: int = BAR) -> str:
    """Return the heading of the bars: their ends, and 0 in the middle."""
    end = as_change(reach).replace(" ", "").replace(".0%", "%")
    half = width // 2
    return f"{'-' + end:<{half}}0{'+' + end:>{half}}"


def _bar(found: Extent, reach: float, width: int = BAR) -> str:
    """Draw `[--o--]` around the change, with a line at 0."""
    cells = [" "] * width
    half = width // 2
    cells[half] = "|"
    if not found.relative or found.low is None or found.high is None:
        return "".join(cells)

    def place(value: float) -> int:
        return half + round(max(-1.0, min(1.0, value / reach)) * half)

    left, right = place(found.low), place(found.high)
    for at in range(left, right + 1):
        cells[at] = "+" if at == half else "-"
    cells[left] = "[" if found.low >= -reach else "<"
    cells[right] = "]" if found.high <= reach else ">"
    cells[place(found.change)] = "o"
    return "".join(cells)


def _ranking(ranking: Ranking, style: Style) -> list[str]:
    columns = [
        Column("", words=True),
        Column("", words=True),
        Column("runs"),
        Column(ranking.metric),
        Column("behind"),
        Column("at least"),
        Column("at most"),
    ]

    def behind(value: float) -> str:
        return as_change(value) if ranking.relative else f"{value:.3g}"

    rows = [
        [
            "*" if place.maybe_best else "",
            place.label,
            str(place.trials),
            amount(place.mean, ranking.metric),
            behind(place.behind) if place.behind else "-",
            behind(place.at_least) if place.at_most else "-",
            behind(place.at_most) if place.at_most else "-",
        ]
        for place in ranking.places
    ]
    lines = table(columns, rows, style)
    lines += style.wrap(f"{_capital(ranking.words)}. * may be the best.")
    if ranking.left_out:
        lines += style.wrap(f"Without {ranking.metric}: {', '.join(ranking.left_out)}.")
    return lines


def _effects(found: Effects, style: Style) -> list[str]:
    lines = style.wrap(
        f"Effect of each factor on {metric(found.metric).words} (noise of a trial "
        f"{as_change(found.noise) if found.relative else plain(found.noise)}):"
    )
    columns = [
        Column("factor", words=True),
        Column("explains"),
        Column("p"),
        Column("levels, against their mean", words=True),
    ]
    rows = [
        [effect.name, as_change(effect.share), _p(effect), _levels(effect, found.relative)] for effect in found.effects
    ]
    lines += table(columns, rows, style)
    if found.unequal:
        lines += style.wrap("Cells differ in noise; each effect is compared with its own scatter from block to block.")
    if found.not_tested:
        lines += style.wrap(f"Not tested: {'; '.join(found.not_tested)}.")
    return lines


def _p(effect: Effect) -> str:
    if math.isnan(effect.p):
        return "-"
    return "<0.0001" if effect.p_adjusted < 0.0001 else f"{effect.p_adjusted:.4f}"


def _levels(effect: Effect, relative: bool) -> str:
    if math.isnan(effect.p):
        return "not tested"
    if not effect.significant:
        return "none found"

    def change(value: float) -> str:
        return as_change(value, sign=True) if relative else f"{value:+.3g}"

    ordered = sorted(effect.levels, key=lambda level: -level.change)
    if len(effect.factors) == 2:  # the strongest deviations are enough
        ordered = sorted(effect.levels, key=lambda level: -abs(level.change))[:3]
    return "; ".join(f"{level.name} {change(level.change)}" for level in ordered)


def _curves(found: Curves, style: Style) -> list[str]:
    shown = {1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999}
    points = [point for point in found.points if point.percentile in shown]
    banded = [Extent(point.change, point.low, point.high) for point in points]
    reach = _reach(banded)
    for bar in (BAR, SHORT, 0) if any(band.low is not None for band in banded) else (None,):
        columns = [
            Column(f"{found.operation}s", words=True),
            Column(_short(found.a)),
            Column(_short(found.b)),
            Column("change"),
            *([Column(f"{100 * found.confidence:g} % band")] if bar is not None else []),
            *([Column(_scale(reach, bar), words=True)] if bar else []),
        ]
        rows = [
            [
                f"p{point.percentile:g}",
                units.duration(point.a_ns),
                units.duration(point.b_ns),
                as_change(point.change, sign=True),
                *([_interval(band)] if bar is not None else []),
                *([_bar(band, reach, bar)] if bar else []),
            ]
            for point, band in zip(points, banded, strict=True)
        ]
        lines = table(columns, rows, Style() if bar else style)
        if _fits(lines, style):
            break
    return [*lines, *style.wrap(f"{found.words}.")]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
