"""The front of a search for several objectives: a table of the choices, and a plot of two objectives."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base import units
from spindle.base.numbers import as_change
from spindle.report.terminal.campaign import scale_of
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.stats.difference import Difference
from spindle.stats.names import metric
from spindle.tune.decision import FrontPoint, Tuning

HEIGHT, WIDEST, LEAST, MARGIN = 12, 78, 40, 10


def of_front(found: Tuning, style: Style) -> list[str]:
    """The choices; nothing if there are none."""
    if not found.front:
        return []
    lines = table(*front_table(found), style)
    return [*lines, *style.wrap(legend(found.front)), *_plot(found, style)]


def front_table(found: Tuning) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the choices."""
    scales = [scale_of(metric(name)) for name, _ in found.objectives]
    columns = [Column("choice", words=True)]
    for head, _ in scales:
        columns += [Column(head), Column("against the start")]
    columns.append(Column("changed from the start", words=True))
    rows = []
    for mark, one in zip(marks(found.front), found.front, strict=True):
        row = [mark]
        for at, (_, scale) in enumerate(scales):
            row += [units.significant(one.means[at] / scale), _change(one.differences[at]) if one.differences else "-"]
        moved = ", ".join(f"{name} {level}" for name, level in found.moved(one.levels).items()) or "nothing"
        rows.append([*row, moved])
    return columns, rows


def marks(front: Sequence[FrontPoint]) -> list[str]:
    """`start`, then the number of each choice, with a sign of `_LEGEND`."""
    found, number = [], 0
    for one in front:
        number += not one.is_start
        name = "start" if one.is_start else str(number)
        sign = " x" if one.beaten else "" if one.gains or one.is_start else " ="
        found.append(name + sign)
    return found


def legend(front: Sequence[FrontPoint]) -> str:
    """The signs of the table."""
    used = [words for sign, words in _LEGEND.items() if any(mark.endswith(sign) for mark in marks(front))]
    return " ".join([*used, "In brackets: intervals that have 95 % together."])


_LEGEND = {
    " x": "x: another row is better in one objective and no worse in the others.",
    " =": "=: was not shown to be better than the start in any objective.",
}


def _change(found: Difference) -> str:
    if found.low is None or found.high is None or not found.relative:
        return as_change(found.change, sign=True) if found.relative else f"{found.change:+.3g}"
    ends = f"{as_change(found.low, sign=True).removesuffix(' %')} to {as_change(found.high, sign=True)}"
    return f"{as_change(found.change, sign=True)} ({ends})"


def _plot(found: Tuning, style: Style) -> list[str]:
    """The first objective to the right, the second upwards."""
    width = min(style.width or WIDEST, WIDEST)
    if len(found.objectives) != 2 or len(found.front) < 2 or width < LEAST:
        return []
    inner = width - MARGIN - 8
    (head_x, scale_x), (head_y, scale_y) = (scale_of(metric(name)) for name, _ in found.objectives)
    xs = [one.means[0] / scale_x for one in found.front]
    ys = [one.means[1] / scale_y for one in found.front]
    grid = [[" "] * (inner + 8) for _ in range(HEIGHT)]
    for mark, x, y in zip(marks(found.front), xs, ys, strict=True):
        column = round(_share(x, xs) * (inner - 1))
        row = HEIGHT - 1 - round(_share(y, ys) * (HEIGHT - 1))
        for shift, char in enumerate(mark.replace("start", "s").replace(" ", "")):
            if grid[row][column + shift] == " ":
                grid[row][column + shift] = char
    (_, up_x), (_, up_y) = found.objectives
    better = f"better: {'right' if up_x else 'left'} and {'up' if up_y else 'down'}"
    lines = ["", f"{head_y} over {head_x}; s: the start; {better}"]
    ticks = {0: units.significant(max(ys)), HEIGHT - 1: units.significant(min(ys))}
    lines += [f"{ticks.get(at, '').rjust(MARGIN - 2)} |{''.join(cells)}".rstrip() for at, cells in enumerate(grid)]
    begin, end = units.significant(min(xs)), units.significant(max(xs))
    lines.append(f"{' ' * (MARGIN - 1)}+{'-' * inner}")
    lines.append(f"{' ' * MARGIN}{begin}{end.rjust(inner - len(begin))}")
    return lines


def _share(value: float, values: Sequence[float]) -> float:
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.5
