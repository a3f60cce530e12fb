"""Plain rows: one block a report, as iostat and vmstat print theirs, and the summary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from spindle.host.monitor import CGROUP, DISK, HOST, CgroupRates, Column, Extent, Report, Summary
from spindle.report.style import Style
from spindle.result import units

UNKNOWN = "unknown"
LEAST_WIDTH = 7
"""So that the rows of one block stand under those of the last."""
COUNTS = ("r", "b")
"""Columns that are whole numbers."""
TELLING = (
    "r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await", "aqu-sz", "%util",
    "rareq-sz", "wareq-sz", "f/s", "f_await", "d/s", "dkB/s", "%rrqm", "%wrqm", "rrqm/s", "wrqm/s",
    "d_await", "dareq-sz", "drqm/s", "%drqm",
)  # fmt: skip
"""The most telling first: those that do not fit are left out from the end."""


class View(Protocol):
    """Hears of each report, and of the end."""

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        """Before the first sample."""

    def show(self, report: Report) -> None:
        """One more report."""

    def end(self, summary: Summary) -> None:
        """No more reports."""

    def close(self) -> None:
        """The place as it was, whatever happened."""


def opening(interval_s: float, aliases: dict[str, str]) -> list[str]:
    """What the figures are, in a line; and what names were given for which devices."""
    lines = [
        f"Every {units.seconds(interval_s)}, each report of the time since the one before, the first since the start "
        "of this command (not since boot). Ctrl-C ends with a summary."
    ]
    lines.extend(f"{given} is {name}" for name, given in aliases.items())
    return lines


def number(value: float | None, decimals: int = 2) -> str:
    """As iostat prints it."""
    return UNKNOWN if value is None else f"{value:.{decimals}f}"


def stamp(report: Report) -> str:
    """End of the interval in UTC, and how long it was."""
    return f"{moment(report)}  {report.seconds:.3f} s"


def moment(report: Report) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    when = datetime.fromtimestamp(report.end_ns / 1e9, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def host_table(rows: Sequence[tuple[str, dict[str, float | None]]]) -> list[str]:
    """vmstat's columns and pressure; the names of their groups span them."""
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
    """Counts are whole, but not their mean."""
    return number(values.get(column.name), 0 if column.name in COUNTS and row != "mean" else 1)


def table(first: str, columns: Sequence[Column], rows: Iterable[tuple[str, dict[str, float | None]]]) -> list[str]:
    """Names to the left, numbers to the right."""
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
    """Names of groups can hold anything but a slash; a terminal must not obey them."""
    return "".join(char if char.isprintable() else "?" for char in text)


def changes(report: Report) -> list[str]:
    """Devices that came and went."""
    lines = [f"{name} is new: its first interval begins now" for name in report.appeared]
    return [*lines, *(f"{name} is gone" for name in report.gone)]


def uncounted(report: Report) -> list[str]:
    """Why disks are missing from the groups' table."""
    if not report.uncounted:
        return []
    names = ", ".join(report.uncounted)
    return [f"no control group is counted on {names}: cgroup v1 counts a disk once a limit was set for it (Linux 6.10)"]


def block(report: Report, active_only: bool, most_cgroups: int) -> list[str]:
    """One report."""
    lines = [stamp(report), *host_table([("", report.host)]), ""]
    shown = {name: activity for name, activity in report.disks.items() if activity.active or not active_only}
    lines.extend(table("Device", DISK, [(name, activity.columns()) for name, activity in shown.items()]))
    lines.extend(changes(report))
    if most_cgroups and report.cgroups:
        lines.extend(["", *table("Cgroup", CGROUP, cgroup_rows(report.cgroups[:most_cgroups]))])
        if (more := len(report.cgroups) - most_cgroups) > 0:
            lines.append(f"and {more} more")
    if most_cgroups:
        lines.extend(uncounted(report))
    return [*lines, ""]


def summary_lines(summary: Summary, style: Style, most_cgroups: int = 0) -> list[str]:
    """Mean and maximum of every column; of devices only those that did anything, if any did."""
    if not summary.reports:
        return ["stopped before the first interval was over: nothing to sum up"]
    several = "s" if summary.reports != 1 else ""
    head = f"Summary of {summary.reports} interval{several}, {units.seconds(summary.seconds)}"
    lines = style.headline(f"{head}: mean, and the maximum of an interval")
    hosts = [
        (short, {name: _of(extent, which) for name, extent in summary.host.items()})
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
    """Two rows each. Where not all columns fit, the most telling of those that were ever more than nothing; a line
    counts the others."""
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
        lines.extend(style.wrap(f"a wider terminal, --json or --output shows {', '.join(left)} as well"))
    return lines


def _of(extent: Extent, which: str) -> float | None:
    return extent.mean if which == "mean" else extent.maximum


def _used(extents: dict[str, Extent]) -> bool:
    return any(extent.maximum is None or extent.maximum > 0 for name, extent in extents.items() if name[1:] == "/s")


class Rows:
    """The view of a pipe."""

    def __init__(self, *, active_only: bool, most_cgroups: int) -> None:
        self._active_only = active_only
        self._most_cgroups = most_cgroups

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        self._print([*opening(interval_s, aliases), ""])

    def show(self, report: Report) -> None:
        self._print(block(report, self._active_only, self._most_cgroups))

    def end(self, summary: Summary) -> None:
        self._print(summary_lines(summary, Style(), self._most_cgroups))

    def close(self) -> None:
        pass

    @staticmethod
    def _print(lines: Sequence[str]) -> None:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
