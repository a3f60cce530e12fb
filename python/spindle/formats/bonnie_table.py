"""The tables that bonnie++ prints, of 1.03 to 2.00 and of bon_csv2txt, brought into the order of its CSV.

Cells are right-aligned under `/sec` and `%CP`; those of phases that were not run are blank. Rates under `K/sec` are
KiB/s; under `/sec` they have a unit (`97.7m`: MiB/s) in three digits, so that the CSV is more exact. bonnie++ 2.00
prints a rate that was too fast to be measured as `0k +++`. A line `Latency` follows from 1.96 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .numbers import amount
from .text import Text

HALF = 6
"""Phases in each of the two tables: throughput and seeks, then files."""
TOO_FAST = "+++++"
_VERSION = re.compile(r"^Version\s+(\S+)\s+-+Sequential (?:Output|Create)-")
_TABLE = re.compile(r"-Sequential (Output|Create)-")
_RATE = re.compile(r"(K?)/sec\s+%CP")
_SUFFIXED = re.compile(r"([\d.]+)([kmgt])")
_KIB = {"k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3}


@dataclass
class Table:
    """One result, as the fields of the CSV."""

    at: int
    """Line number from 0."""
    host: str
    version: str | None
    size: str = ""
    files: str = ""
    rates: list[str] = field(default_factory=lambda: [""] * 4 * HALF)
    """(rate, CPU share) of each phase."""
    latencies: list[str] = field(default_factory=lambda: [""] * 2 * HALF)


def looks(text: Text) -> bool:
    """True for the heading of a table, with its columns."""
    return bool(_TABLE.search(text.head)) and "/sec %CP" in text.head


def tables(text: Text, lines: range) -> list[Table]:
    """Return the results in these lines."""
    found: list[Table] = []
    version: str | None = None
    half, ends = 0, list[int]()
    current: Table | None = None
    for at in lines:
        line = text.lines[at]
        if heading := _TABLE.search(line):
            half, ends, current = int(heading[1] == "Create"), [], None
            version = named[1] if (named := _VERSION.match(line)) else version
        elif len(columns := list(_RATE.finditer(line))) == HALF:
            ends = [column.end() for column in columns]
        elif ends and line.startswith("Latency"):
            if current is not None:
                for place, (cell, _) in _placed(line[len("Latency") :], len("Latency"), ends, each=1):
                    current.latencies[half * HALF + place] = cell
        elif ends and line.strip() and (cells := _cells(line, 0)) and cells[-1][1] > ends[0] - 9:
            current = _row(text, at, half, ends, found, version)
        else:
            ends = [] if line.strip() else ends
    return found


def _row(text: Text, at: int, half: int, ends: Sequence[int], found: list[Table], version: str | None) -> Table:
    line = text.lines[at]
    label = [cell for cell, end in _cells(line, 0) if end <= ends[0] - 9]
    if not label:
        text.fail(at, "a row of bonnie++'s table without a name or a number of files")
    asked = label[-1]
    name = label[0] if len(label) > 1 else ""
    table = _table_of(found, name, at, half, version)
    if half:
        table.files = asked
    else:
        table.size = asked
    start = half * 2 * HALF
    for place, (rate, share) in _placed(line, 0, ends, each=2, skipped=len(label)):
        table.rates[start + 2 * place : start + 2 * place + 2] = [_in_kib(rate, share), share]
    return table


def _table_of(found: list[Table], name: str, at: int, half: int, version: str | None) -> Table:
    """Return the table that a row continues, or a new one."""
    if half:
        waiting = [each for each in found if not each.files and name in ("", each.host)]
        if waiting:
            return waiting[0]
    found.append(Table(at, name, version))
    return found[-1]


def _in_kib(rate: str, share: str) -> str:
    suffixed = _SUFFIXED.fullmatch(rate)
    if suffixed is None or (value := amount(suffixed[1])) is None:
        return rate
    if not value and share.startswith("+"):
        return TOO_FAST
    return repr(value * _KIB[suffixed[2]])


def _cells(line: str, start: int) -> list[tuple[str, int]]:
    """Return (cell, its end)."""
    return [(cell[0], start + cell.end()) for cell in re.finditer(r"\S+", line)]


def _placed(
    line: str, start: int, ends: Sequence[int], each: int, skipped: int = 0
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield (phase, cells); in order if none is blank, since wide numbers shift the others, else by their columns."""
    cells = _cells(line, start)[skipped:]
    if len(cells) == each * len(ends):
        for place in range(len(ends)):
            own = [cell for cell, _ in cells[place * each : (place + 1) * each]]
            yield place, (own[0], own[-1])
        return
    begins = [0, *ends]
    for place, end in enumerate(ends):
        own = [cell for cell, at in cells if begins[place] < at <= end]
        if len(own) == each:
            yield place, (own[0], own[-1])
