"""`sadf -d FILE -- -d` (semicolons; with `-h` all devices in one line) and `sadf -p FILE -- -d` (a line for each
figure); the CPU shares of `-u` where they are in the text as well.

Times are as sadf writes them: UTC, local (`-T`) or seconds since 1970 (`-U`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spindle.result.imported import Moment

from .found import Repetition, utc
from .numbers import amount, number
from .series import device_of, in_our_units
from .text import Text

_HEADING = re.compile(r"^#\s*hostname;interval;timestamp;(\S+)\s*$")
_TIME = r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]+)?|\d{9,11})"
_FIGURE = re.compile(rf"^([^\t]+)\t(\d+)\t({_TIME})\t([^\t]+)\t([\w%/-]+)\t(\S+)$")
_ALL_DEVICES = "[...]"
_IDLE, _RATE = "%idle", "tps"
"""A figure of CPUs, and one of devices."""
_EVERY_CPU = ("-1", "all")


def looks(text: Text) -> bool:
    """True for a heading with devices, or figures of one."""
    for line in text.head.split("\n"):
        if (heading := _HEADING.match(line)) and heading[1].startswith("DEV;"):
            return True
        if (figure := _FIGURE.match(line)) and figure[5] == _RATE and figure[4] != "-":
            return True
    return False


@dataclass
class _Reading:
    """The figures of one host."""

    devices: dict[str, list[Moment]] = field(default_factory=dict)
    machine: list[Moment] = field(default_factory=list)

    def add(self, item: str, when: str, seconds: float | None, values: Mapping[str, float]) -> None:
        """Add figures of a device or a CPU; the names of the figures distinguish them."""
        if _IDLE in values and item in _EVERY_CPU:
            self.machine.append(Moment(at=when, seconds=seconds, values=dict(values)))
        elif _RATE in values and item != "-":
            moment = Moment(at=when, seconds=seconds, values=in_our_units(values))
            self.devices.setdefault(item[:200], []).append(moment)


def read(text: Text) -> list[Repetition]:
    """Return one for each host."""
    hosts: dict[str, _Reading] = {}
    columns: list[str] = []
    figures: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for at, line in enumerate(text.lines):
        if heading := _HEADING.match(line):
            columns = heading[1].split(";")
        elif line.startswith("#"):
            columns = []
        elif figure := _FIGURE.match(line):
            host, interval, when, item, name, cell = figure.groups()
            if (value := number(cell)) is None:
                text.fail(at, f"{name}: {cell[:30]!r} is not a number")
            figures.setdefault((host, interval, when, item), {})[name] = value
        elif columns and columns[0] in ("DEV", "CPU") and ";" in line:
            _add_line(hosts, text, at, columns, line.split(";"))
    for (host, interval, when, item), values in figures.items():
        hosts.setdefault(host, _Reading()).add(item, _moment(when), amount(interval), values)
    return [_found(host, reading) for host, reading in hosts.items() if reading.devices]


def _add_line(hosts: dict[str, _Reading], text: Text, at: int, columns: Sequence[str], cells: Sequence[str]) -> None:
    interval = amount(cells[1]) if len(cells) > 3 else None
    if interval is None:  # -1: a restart, or a comment
        return
    reading = hosts.setdefault(cells[0], _Reading())
    for item, values in _items(text, at, columns, cells[3:]):
        reading.add(item, _moment(cells[2]), interval, values)


def _items(text: Text, at: int, columns: Sequence[str], cells: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    last = columns[-1].removesuffix(_ALL_DEVICES)
    names = [*columns[1:-1], last]
    width = len(columns)
    if len(cells) % width or (len(cells) != width and last == columns[-1]):
        text.fail(at, f"{len(cells)} values under {width} columns: cut off")
    for start in range(0, len(cells), width):
        values = {}
        for name, cell in zip(names, cells[start + 1 : start + width], strict=True):
            if (value := number(cell)) is None:
                text.fail(at, f"{name}: {cell[:30]!r} is not a number")
            values[name] = value
        yield cells[start], values


def _moment(when: str) -> str:
    """Return UTC; a local time as it is written."""
    if when.isdigit():
        return utc(float(when)) or when
    date, _, rest = when.partition(" ")
    time, _, zone = rest.partition(" ")
    return f"{date}T{time}{'Z' if zone == 'UTC' else ''}"[:40]


def _found(host: str, reading: _Reading) -> Repetition:
    first = next(iter(reading.devices.values()))[0].at or ""
    return Repetition(
        tool="sar",
        reported=first if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first) else None,
        host=host,
        devices=[device_of(name, moments, 0) for name, moments in reading.devices.items()],
        machine=reading.machine,
    )
