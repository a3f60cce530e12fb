"""`sar -d` as text, of every age: devices in the first column or (`-p`) in the last, `dev8-0` or names, sectors or kB,
12 or 24 hours, decimal commas; and the CPU shares of `-u` where they are in the text as well.

A heading begins with the end of the interval before, which gives the length of an interval. The averages at the end,
whose first word is in the language of the system, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from spindle.result.imported import Moment

from .found import Repetition
from .iostat import BANNER
from .numbers import number
from .series import device_of, in_our_units
from .text import Text

_ROW = re.compile(r"^(\d\d[:.]\d\d[:.]\d\d(?: [AaPp][Mm])?)\s+(\S.*\S)\s*$")
_NAME = "DEV"
_DAY_S = 86_400


def looks(text: Text) -> bool:
    """True for a heading of devices after a time."""
    return any((row := _ROW.match(line)) and _is_of_devices(row[2].split()) for line in text.head.split("\n"))


def _is_of_devices(cells: Sequence[str]) -> bool:
    return "tps" in cells and _NAME in (cells[0], cells[-1])


@dataclass
class _Reading:
    """One start of sar."""

    host: str | None = None
    devices: dict[str, list[Moment]] = field(default_factory=dict)
    machine: list[Moment] = field(default_factory=list)


def read(text: Text) -> list[Repetition]:
    """Return one for each banner."""
    runs: list[_Reading] = []
    columns: list[str] = []
    before, ended, seconds = "", "", 0
    for at, line in enumerate(text.lines):
        if banner := BANNER.match(line):
            runs.append(_Reading(banner[2]))
            columns = []
            continue
        row = _ROW.match(line)
        if row is None:  # a blank line, an average
            columns = columns if not line.strip() else []
            continue
        when, cells = row[1], row[2].split()
        if _is_of_devices(cells) or cells[0] == "CPU":
            columns, ended = cells, when
            if not runs:
                runs.append(_Reading())  # the banner was cut away
        elif _is_heading(cells):
            columns = []
        elif columns:
            if when != ended:
                before, ended = ended, when
                seconds = (_second(when) - _second(before)) % _DAY_S
            _add(runs[-1], text, at, columns, cells, when, seconds)
    return [_found(run) for run in runs if run.devices]


def _is_heading(cells: Sequence[str]) -> bool:
    """True for the heading of a part that is not read, or a note (LINUX RESTART)."""
    return number(cells[-1]) is None and all(number(cell) is None for cell in cells[1:])


def _second(when: str) -> int:
    """Return the second of the day."""
    hours, minutes, seconds = (int(part) for part in re.split("[:.]", when[:8]))
    if half := when[9:].lower():
        hours = hours % 12 + (12 if half == "pm" else 0)
    return hours * 3600 + minutes * 60 + seconds


def _add(
    run: _Reading, text: Text, at: int, columns: Sequence[str], cells: Sequence[str], when: str, seconds: int
) -> None:
    names = [column for column in columns if column not in (_NAME, "CPU")]
    figures = cells[: len(names)] if columns[-1] == _NAME else cells[-len(names) :]
    name = " ".join(cells[len(names) :] if columns[-1] == _NAME else cells[: -len(names)])[:200]
    if len(cells) <= len(names):
        text.fail(at, f"{len(cells)} values under {len(columns)} columns: cut off")
    values = dict(zip(names, (_figure(text, at, *each) for each in zip(names, figures, strict=True)), strict=True))
    if columns[0] == "CPU":
        if name == "all":
            run.machine.append(Moment(at=when, seconds=seconds or None, values=values))
        return
    run.devices.setdefault(name, []).append(Moment(at=when, seconds=seconds or None, values=in_our_units(values)))


def _figure(text: Text, at: int, name: str, cell: str) -> float:
    value = number(cell)
    if value is None:
        text.fail(at, f"{name}: {cell[:30]!r} is not a number")
    return value


def _found(run: _Reading) -> Repetition:
    return Repetition(
        tool="sar",
        host=run.host,
        devices=[device_of(name, moments, 0) for name, moments in run.devices.items()],
        machine=run.machine,
    )
