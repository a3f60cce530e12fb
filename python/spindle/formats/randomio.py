"""randomio's table: a row for each sample, latencies in ms; `inf` and `nan` where there was nothing to time.

The rows are intervals of one run: rates are their mean, mean latencies are weighted by the requests, the deviation is
that of all together. No row has bytes; the command line, if it is above the table, has file, threads and size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from spindle.result.imported import Moment, PartialLatency, PartialOp, PartialStream

from .found import Repetition
from .numbers import amount
from .text import Text

_HEAD = re.compile(r"total \|\s*read:\s+latency \(ms\)\s+\|\s*write:\s+latency \(ms\)")
_COMMAND = re.compile(r"randomio\s+(\S+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)\s+([\d.]+)")
ARGUMENTS = ("threads", "write fraction", "fsync fraction", "size", "seconds")
MS = 1e6


@dataclass(frozen=True)
class Side:
    """Reads or writes of one row, ms."""

    iops: float
    least: float | None
    mean: float | None
    most: float | None
    sdev: float | None


def looks(text: Text) -> bool:
    """True for its heading."""
    return _HEAD.search(text.head) is not None


def read(text: Text) -> list[Repetition]:
    """Read the runs. A run ends at another command; the heading is repeated on every screen."""
    runs: list[tuple[list[str], list[tuple[Side, Side]]]] = []
    command: list[str] = []
    below = False
    for at, line in enumerate(text.lines):
        if found := _COMMAND.search(line):
            command, below = list(found.groups()), False
        elif _HEAD.search(line):
            if not runs or (not below and command):
                runs.append((command, []))
            below = True
        elif below and line.count("|") == 2 and "iops" not in line and line.strip():
            runs[-1][1].append(_row(text, at, line))
        elif below and line.strip() and re.match(r"\s*\d+\.\d+\s*\|", line):
            text.fail(at, "a row without reads and writes: cut off")
    return [_run(command, rows) for command, rows in runs if rows]


def _row(text: Text, at: int, line: str) -> tuple[Side, Side]:
    parts = [part.split() for part in line.split("|")]
    if [len(part) for part in parts] != [1, 5, 5] or amount(parts[0][0]) is None:
        text.fail(at, f"not a row of randomio's table: {line.strip()[:60]}")
    return _side(text, at, parts[1]), _side(text, at, parts[2])


def _side(text: Text, at: int, cells: Sequence[str]) -> Side:
    iops = amount(cells[0])
    if iops is None:
        text.fail(at, f"{cells[0][:30]!r} is not a rate")
    return Side(iops, *(amount(cell) for cell in cells[1:]))


def _run(command: Sequence[str], rows: list[tuple[Side, Side]]) -> Repetition:
    operations = {}
    for name, sides in (("read", [row[0] for row in rows]), ("write", [row[1] for row in rows])):
        if any(side.iops for side in sides):
            operations[name] = _together(sides)
    series = [
        Moment(values={f"{name}.iops": side.iops for name, side in zip(("read", "write"), row, strict=True)})
        for row in rows
    ]
    settings = dict(zip(ARGUMENTS, command[1:], strict=True)) if command else {}
    return Repetition(
        tool="randomio",
        target=command[0] if command else None,
        workload="randomio",
        settings=settings,
        streams=[PartialStream(name="main", operations=operations, series=series if len(rows) > 1 else [])],
    )


def _together(sides: Sequence[Side]) -> PartialOp:
    timed = [side for side in sides if side.iops and side.mean is not None]
    weight = sum(side.iops for side in timed)
    mean = sum(side.iops * (side.mean or 0.0) for side in timed) / weight if weight else None
    return PartialOp(
        iops=sum(side.iops for side in sides) / len(sides),
        latency=PartialLatency(
            min_ns=_ns(min((side.least for side in timed if side.least is not None), default=None)),
            mean_ns=None if mean is None else mean * MS,
            max_ns=_ns(max((side.most for side in timed if side.most is not None), default=None)),
            sdev_ns=_deviation(timed, weight, mean),
        ),
    )


def _deviation(timed: Sequence[Side], weight: float, mean: float | None) -> float | None:
    if mean is None or any(side.sdev is None for side in timed):
        return None
    squares = sum(side.iops * ((side.sdev or 0.0) ** 2 + ((side.mean or 0.0) - mean) ** 2) for side in timed)
    return sqrt(squares / weight) * MS


def _ns(ms: float | None) -> int | None:
    return None if ms is None else round(min(ms, 1e12) * MS)
