"""View for terminals: a table that changes in place, with a curve for each device."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spindle.monitor import CGROUP, Activity, Interval, Summary
from spindle.report.terminal.monitor.rows import (
    TELLING,
    cgroup_rows,
    changes,
    host_table,
    number,
    opening,
    printable,
    stamp,
    summary_lines,
    uncounted,
)
from spindle.report.terminal.style import style_of

BARS = "▁▂▃▄▅▆▇█"
LONGEST = 120
"""Intervals of a curve."""
SHORTEST = 10
"""Narrowest useful curve."""
CELL = 9


def sparkline(values: Iterable[float | None], highest: float) -> str:
    """Draw a bar per value, the highest at full height; unknown is a gap, 0 is the lowest bar."""
    bars = []
    for value in values:
        if value is None:
            bars.append(" ")
        else:
            share = min(1.0, value / highest) if highest > 0 else 0.0
            bars.append(BARS[round(share * (len(BARS) - 1))])
    return "".join(bars)


class LiveView:
    """A view that is redrawn with each interval; the summary stays on the screen at the end."""

    def __init__(self, *, active_only: bool, most_cgroups: int, spelled: Callable[[str], str] = str) -> None:
        """`spelled`: how keywords are shown."""
        self._spelled = spelled
        self._active_only = active_only
        self._most_cgroups = most_cgroups
        self._curves: dict[str, deque[float | None]] = {}
        self._note: list[str] = []
        self._console = Console(file=sys.stdout)
        self._live = Live(console=self._console, transient=True, auto_refresh=False, vertical_overflow="crop")

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        self._note = opening(interval_s, aliases)
        self._live.start()
        self._live.update(Text("\n".join(self._note)), refresh=True)

    def show(self, interval: Interval) -> None:
        for name, activity in interval.disks.items():
            self._curves.setdefault(name, deque(maxlen=LONGEST)).append(moved(activity))
        for name in interval.gone:
            self._curves.pop(name, None)
        self._live.update(self._page(interval), refresh=True)

    def end(self, summary: Summary) -> None:
        self._live.stop()
        for line in summary_lines(summary, style_of(sys.stdout), self._most_cgroups):
            print(self._spelled(line))

    def close(self) -> None:
        """Restore the terminal."""
        self._live.stop()

    def _page(self, interval: Interval) -> RenderableType:
        width, height = self._console.size
        groups = (interval.cgroups or [])[: self._most_cgroups] if height >= 20 else []
        below = [*changes(interval), *(uncounted(interval) if self._most_cgroups else [])]
        room = max(
            1, height - 7 - len(interval.machines) - len(below) - (len(groups) + 2 if groups else 0) - len(self._note)
        )
        shown = [
            (name, activity) for name, activity in interval.disks.items() if activity.active or not self._active_only
        ]
        if len(shown) > room:
            shown = sorted(shown, key=lambda item: _busy(item[1]), reverse=True)[: max(1, room - 1)]
        if hidden := len(interval.disks) - len(shown):
            below.append(f"and {hidden} more device{'s' if hidden > 1 else ''}, less busy")
        parts: list[RenderableType] = [
            Text(stamp(interval), style="bold"),
            Text("\n".join(host_table(list(interval.machines.items()))), no_wrap=True, overflow="crop"),
            Text(""),
            self._devices(shown, width),
        ]
        parts.extend(Text(line) for line in below)
        if groups:
            parts.extend([Text(""), _cgroups(cgroup_rows(groups))])
        parts.append(Text("\n".join(self._note), style="dim"))
        return Group(*parts)

    def _devices(self, shown: list[tuple[str, Activity]], width: int) -> Table:
        names = max([6, *(len(name) for name, _ in shown)])
        left = width - names - SHORTEST - 2
        columns = TELLING[: max(1, left // CELL)]
        curve = max(SHORTEST, min(LONGEST, width - names - 2 - len(columns) * CELL))
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, expand=False, show_edge=False)
        table.add_column("Device", no_wrap=True, min_width=names)
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True, width=CELL - 1)
        head = "KiB/s moved, of its highest"
        table.add_column(head if curve >= len(head) else "KiB/s", no_wrap=True, width=curve, overflow="crop")
        for name, activity in shown:
            values = activity.columns()
            table.add_row(
                Text(printable(name)),
                *(_cell(column, values[column]) for column in columns),
                Text(self._curve(name, curve), style="cyan"),
            )
        return table

    def _curve(self, name: str, width: int) -> str:
        kept = list(self._curves.get(name, ()))
        highest = max((value for value in kept if value is not None), default=0.0)
        return sparkline(kept[-width:], highest)


def moved(activity: Activity) -> float | None:
    """Return KiB/s read, written and discarded together; None: unknown."""
    values = activity.columns()
    known = [value for value in (values["rkB/s"], values["wkB/s"], values["dkB/s"]) if value is not None]
    return sum(known) if known else None


def _busy(activity: Activity) -> tuple[float, float]:
    values = activity.columns()
    return (values["%util"] or 0.0, moved(activity) or 0.0) if activity.delta is not None else (101.0, 0.0)


def _cell(column: str, value: float | None) -> Text:
    text = number(value, 2 if value is None or value < 99999.995 else 0)
    if column == "%util" and value is not None and value >= 60:
        return Text(text, style="bold red" if value >= 90 else "yellow")
    return Text(text, style="" if value else "dim")


def _cgroups(rows: list[tuple[str, dict[str, float | None]]]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("Cgroup", no_wrap=True, overflow="ellipsis")
    for column in CGROUP:
        table.add_column(column.name, justify="right", no_wrap=True)
    for name, values in rows:
        table.add_row(Text(name), *(number(values[column.name]) for column in CGROUP))
    return table
