"""iostat's text: `-x` of every version (svctm, avgrq-sz in sectors, r_await, today's), plain `-d`, `-s`, in kB, MB or
sectors, with or without `-t`, in locales with a decimal comma.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spindle.result.imported import Moment

from .found import Repetition
from .numbers import number
from .series import device_of, in_our_units, since_boot
from .text import Text

BANNER = re.compile(r"^(?:Linux|AIX|SunOS) (\S+) \((.+?)\)\s+(\S+.*)$")
"""sysstat's first line: system, release, host."""
_HEADING = re.compile(r"^Device:?\s+(?=\S)(.*\S)\s*$")
_CPU = re.compile(r"^avg-cpu:\s+(%.*\S)\s*$")
_KNOWN = {"tps", "r/s", "w/s", "%util"}


def looks(text: Text) -> bool:
    """True for a heading of devices."""
    return any((found := _HEADING.match(line)) and set(found[1].split()) & _KNOWN for line in text.head.split("\n"))


class _Reading:
    """State of the reader."""

    def __init__(self, host: str | None) -> None:
        self.host = host
        self.devices: dict[str, list[Moment]] = {}
        self.machine: list[Moment] = []
        self.reports = 0


def read(text: Text) -> list[Repetition]:
    """Return one for each time iostat was started."""
    runs: list[_Reading] = []
    columns: list[str] = []
    shares: list[str] = []
    at_time: str | None = None
    for at, line in enumerate(text.lines):
        if banner := BANNER.match(line):
            runs.append(_Reading(banner[2]))
            columns, shares, at_time = [], [], None
            continue
        if not line.strip():
            columns, shares = [], []
            continue
        if not runs and (_HEADING.match(line) or _CPU.match(line)):
            runs.append(_Reading(None))  # the banner was cut away
        if cpu := _CPU.match(line):
            shares, columns = cpu[1].split(), []
        elif shares:
            runs[-1].machine.append(Moment(at=at_time, values=_row(text, at, shares, line.split())))
            shares = []
        elif (heading := _HEADING.match(line)) and set(heading[1].split()) & _KNOWN:
            columns = heading[1].split()
            if columns[-1] == "Device":
                text.fail(at, "iostat -h is not read: its numbers are rounded; use -x without -h")
            runs[-1].reports += 1
        elif columns:
            name, cells = _named(line, columns)
            values = in_our_units(_row(text, at, columns, cells))
            runs[-1].devices.setdefault(name, []).append(Moment(at=at_time, values=values))
        elif re.search(r"\d\d[:.]\d\d", line):
            at_time = line.strip()[:40]
    return [_found(run) for run in runs if run.devices]


def _named(line: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    """Split a row; names of devices may contain blanks (NFS exports, device-mapper names)."""
    cells = line.split()
    cut = max(1, len(cells) - len(columns))
    return " ".join(cells[:cut])[:200], cells[cut:]


def _row(text: Text, at: int, columns: Sequence[str], cells: Sequence[str]) -> dict[str, float]:
    if len(cells) != len(columns):
        text.fail(at, f"{len(cells)} values under {len(columns)} columns: cut off")
    values = {}
    for name, cell in zip(columns, cells, strict=True):
        value = number(cell)
        if value is None:
            text.fail(at, f"{name}: {cell[:30]!r} is not a number")
        values[name] = value
    return values


def _found(run: _Reading) -> Repetition:
    skipped = 1 if run.reports > 1 else 0
    return Repetition(
        tool="iostat",
        host=run.host,
        devices=[
            # A device that came later was not in the first report.
            device_of(name, moments, skipped if len(moments) == run.reports else 0)
            for name, moments in run.devices.items()
        ],
        machine=run.machine,
        verdicts=[since_boot(run.reports)],
    )
