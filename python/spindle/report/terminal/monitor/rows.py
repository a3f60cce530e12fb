"""Plain rows: one block per interval, like iostat and vmstat, and the summary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from spindle.base import units
from spindle.monitor import CGROUP, DISK, HOST, CgroupRates, Column, Extent, Interval, Summary
from spindle.report.terminal.style import Style

UNKNOWN = "unknown"
LEAST_WIDTH = 7
"""Fixed width, so that the rows of all blocks line up."""
COUNTS = ("r", "b")
"""Columns that are whole numbers."""
TELLING = (
    "r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await", "aqu-sz", "%util",
    "rareq-sz", "wareq-sz", "f/s", "f_await", "d/s", "dkB/s", "%rrqm", "%wrqm", "rrqm/s", "wrqm/s",
    "d_await", "dareq-sz", "drqm/s", "%drqm",
)  # fmt: skip
"""Columns, most important first: those that do not fit are left out from the end."""


class View(Protocol):
    """Receives each interval, and the end."""

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        """Prepare for the first sample."""

    def show(self, interval: Interval) -> None:
        """Show one more interval."""

    def end(self, summary: Summary) -> None:
        """Show the summary after the last interval."""

    def close(self) -> None:
        """Restore the output."""


def opening(interval_s: float, aliases: dict[str, str]) -> list[str]:
    """Describe the figures in a line, and list the names that were given for devices."""
    lines = [
        f"Every {units.seconds(interval_s)}, each interval begins at the end of the one before, the first at the start "
        "of this command (not at boot). Ctrl-C ends with a summary."
    ]
    lines.extend(f"{given} is {name}" for name, given in aliases.items())
    return lines


def number(value: float | None, decimals: int = 2) -> str:
    """Print a number as iostat does."""
    return UNKNOWN if value is None else f"{value:.{decimals}f}"


def stamp(interval: Interval) -> str:
    """Return the end of the interval in UTC, and its length."""
    return f"{moment(interval)}  {interval.seconds:.3f} s"


def moment(interval: Interval) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    when = datetime.fromtimestamp(interval.end_ns / 1e9, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def host_table(rows: Sequence[tuple[str, dict[str, float | None]]]) -> list[str]:
    """Return vmstat's columns and pressure, with the names of their groups above."""
    cells = [(name, [_host_cell(name, column, values) for column in HOST]) for name, values in rows]
    left = max(len(name) for name, _ in cells)
    widths = [
        max([LEAST_WIDTH - 1, len(column.name), *(len(row[at]) for _, row in cells)]) for at, column in enumerate(HOST)
    ]
    spans: dict[str, int] = {}
    for column, width in zip(HOST, widths, strict=True):
        spans[column.group] = spans[column.group] + width + 1 if column.group in spans else width
    above = " ".join(f"{group:-^{width}}" for group, width in spans.items())
    heads = " ".join(f"{column.name:>{width}}" for column, width in zip(HOST, widths, strict=True))
    start = " " * (left + 1 if left else 0)
    lines = [start + above, start + heads]
    for name, row in cells:
        values = " ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append(f"{name:<{left}} {values}" if left else values)
    return lines


def _host_cell(row: str, column: Column, values: dict[str, float | None]) -> str:
    """Print a cell: counts are whole, but not their mean."""
    return number(values.get(column.name), 0 if column.name in COUNTS and not row.endswith("mean") else 1)


def table(first: str, columns: Sequence[Column], rows: Iterable[tuple[str, dict[str, float | None]]]) -> list[str]:
    """Return a table with names left-aligned, numbers right-aligned."""
    cells = [(name, [number(values.get(column.name)) for column in columns]) for name, values in rows]
    left = max([len(first), 12, *(len(name) for name, _ in cells)])
    widths = [
        max([LEAST_WIDTH, len(column.name), *(len(row[at]) for _, row in cells)]) for at, column in enumerate(columns)
    ]

    def line(name: str, values: Sequence[str]) -> str:
        return f"{name:<{left}}" + "".join(f" {value:>{width}}" for value, width in zip(values, widths, strict=True))

    return [line(first, [column.name for column in columns]), *(line(name, row) for name, row in cells)]


def cgroup_rows(rates: Iterable[CgroupRates]) -> list[tuple[str, dict[str, float | None]]]:
    """`/user.slice on sda`."""
    return [(f"{printable(rate.group)} on {rate.device}", rate.columns()) for rate in rates]


def printable(text: str) -> str:
    """Escape names of groups, which can contain anything but a slash, for the terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def changes(interval: Interval) -> list[str]:
    """Report devices that appeared or disappeared, and hosts that were lost."""
    lines = [f"{name} is new: its first interval begins now" for name in interval.appeared]
    lines.extend(f"{name} is gone" for name in interval.gone)
    return [*lines, *(f"{host} is watched no longer: {why}" for host, why in interval.lost.items())]


def uncounted(interval: Interval) -> list[str]:
    """Explain why disks are missing from the groups' table."""
    if not interval.uncounted:
        return []
    names = ", ".join(interval.uncounted)
    return [f"no control group is counted on {names}: cgroup v1 counts a disk once a limit was set for it (Linux 6.10)"]


def block(interval: Interval, active_only: bool, most_cgroups: int) -> list[str]:
    """Return the block of one interval."""
    lines = [stamp(interval), *host_table(list(interval.machines.items())), ""]
    shown = {name: activity for name, activity in interval.disks.items() if activity.active or not active_only}
    lines.extend(table("Device", DISK, [(name, activity.columns()) for name, activity in shown.items()]))
    lines.extend(changes(interval))
    if most_cgroups and interval.cgroups:
        lines.extend(["", *table("Cgroup", CGROUP, cgroup_rows(interval.cgroups[:most_cgroups]))])
        if (more := len(interval.cgroups) - most_cgroups) > 0:
            lines.append(f"and {more} more")
    if most_cgroups:
        lines.extend(uncounted(interval))
    return [*lines, ""]


def summary_lines(summary: Summary, style: Style, most_cgroups: int = 0) -> list[str]:
    """Return mean and maximum of every column; of devices only the active ones, if there are any."""
    if not summary.intervals:
        return ["stopped before the first interval was over: nothing to sum up"]
    several = "s" if summary.intervals != 1 else ""
    head = f"Summary of {summary.intervals} interval{several}, {units.seconds(summary.seconds)}"
    lines = style.headline(f"{head}: mean, and the maximum of an interval")
    hosts = [
        (f"{host} {short}".strip(), {name: _of(extent, which) for name, extent in extents.items()})
        for host, extents in summary.machines.items()
        for which, short in (("mean", "mean"), ("maximum", "max"))
    ]
    lines.extend(host_table(hosts))
    used = {name: extents for name, extents in summary.disks.items() if _used(extents)}
    lines.append("")
    lines.extend(_extents("Device", DISK, used or summary.disks, style))
    if used and (idle := len(summary.disks) - len(used)):
        lines.append(f"and {idle} without any I/O")
    groups = {f"{printable(key.group)} on {key.device}": extents for key, extents in summary.cgroups.items()}
    if groups and most_cgroups:
        lines.extend(["", *_extents("Cgroup", CGROUP, dict(list(groups.items())[:most_cgroups]), style)])
    return lines


def _extents(
    first: str, columns: Sequence[Column], found: Mapping[str, Mapping[str, Extent]], style: Style
) -> list[str]:
    """Return two rows each. If not all columns fit, the most important of those that were ever above 0, and a line
    with the number of the others."""
    rows = []
    for name, extents in found.items():
        for which, short in (("mean", "mean"), ("maximum", "max")):
            rows.append((f"{name} {short}", {column: _of(extent, which) for column, extent in extents.items()}))
    wide = table(first, columns, rows)
    if style.width is None or max(map(len, wide)) <= style.width:
        return wide
    moved = [column for column in columns if any(extents[column.name].maximum != 0 for extents in found.values())]
    moved.sort(key=lambda column: TELLING.index(column.name) if column.name in TELLING else len(TELLING))
    kept = len(moved)
    while kept > 1 and max(map(len, table(first, moved[:kept], rows))) > style.width:
        kept -= 1
    lines = table(first, moved[:kept], rows)
    if left := [column.name for column in moved[kept:]]:
        lines.extend(style.wrap(f"a wider terminal, `json=` or `output=` shows {', '.join(left)} as well"))
    return lines


def _of(extent: Extent, which: str) -> float | None:
    return extent.mean if which == "mean" else extent.maximum


def _used(extents: dict[str, Extent]) -> bool:
    return any(extent.maximum is None or extent.maximum > 0 for name, extent in extents.items() if name[1:] == "/s")


class Rows:
    """View for pipes."""

    def __init__(self, *, active_only: bool, most_cgroups: int) -> None:
        self._active_only = active_only
        self._most_cgroups = most_cgroups

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        self._print([*opening(interval_s, aliases), ""])

    def show(self, interval: Interval) -> None:
        self._print(block(interval, self._active_only, self._most_cgroups))

    def end(self, summary: Summary) -> None:
        self._print(summary_lines(summary, Style(), self._most_cgroups))

    def close(self) -> None:
        pass

    @staticmethod
    def _print(lines: Sequence[str]) -> None:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
