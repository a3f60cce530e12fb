"""Output of dd (GNU, busybox, BSD, any language) and Schily's sdd on stderr.

Bytes and time are as exact as written; the rate is computed from them, not the rounded one at the end of the
line. dd does not name its input and output: the operation is `copy`.
"""

from __future__ import annotations

import re

from spindle.result.imported import PartialOp, PartialStream

from .found import Repetition
from .numbers import amount, whole
from .text import Text

LONGEST = 200
"""Longest line of dd; longer ones are not matched, because the patterns would be slow."""
_RECORDS = re.compile(r"^\s*(\d+)\+(\d+) (.+?)\s*$")
_NUMBER = r"([\d.,]+(?:e[+-]?\d+)?)"
_COMMA = r"[,\uff0c\u3001]"
"""Commas, also those of Chinese and Japanese."""
_COPIED = re.compile(
    rf"^\s*(\d+) ?[^\d\s(;,]+(?: ?\([^)]*\))?[^\d;]*?(?:{_COMMA}| )\s*{_NUMBER} ?[^\d\s,\uff0c\u3001()]+ ?"
    rf"(?:{_COMMA}|\()? ?\s*(?:{_NUMBER}|Infinity) ?([kKMGTP]?i?)[^\d\s]*/[^\d\s]+\)?\s*$"
)
_SDD_MOVED = re.compile(r"^\s*(?:\S*/)?sdd: (Read|Wrote)\s+(\d+) records? \+ (\d+) bytes \(total of (\d+) bytes")
_SDD_TIME = re.compile(r"^\s*(?:\S*/)?sdd: Total time\s+([\d.]+)\s*sec")
_OLDEST = re.compile(r"^\s*\d+\+\d+ (?:records?|enregistrements|Datens|registros|record|blocks)", re.M)
_SIGN = re.compile(rf"{_OLDEST.pattern}|^\s*(?:\S*/)?sdd: (?:Read|Wrote)\s", re.M)


def looks(text: Text) -> bool:
    """True for records in and out, or bytes copied."""
    return _SIGN.search(text.head) is not None or any(_copied(line) for line in text.head.split("\n")[:200])


def read(text: Text) -> list[Repetition]:
    """Read each run of the program."""
    return _sdd(text) if re.search(r"^\s*(?:\S*/)?sdd: (Read|Wrote)\s", text.whole, re.M) else _dd(text)


def _copied(line: str) -> re.Match[str] | None:
    return _COPIED.match(line) if len(line) < LONGEST else None


def _dd(text: Text) -> list[Repetition]:
    found: list[Repetition] = []
    records: list[re.Match[str]] = []
    ends_tell = any(_RECORDS.match(line) for line in text.lines)
    for at, line in enumerate(text.lines):
        if match := _RECORDS.match(line):
            if len(records) == 2:  # an old dd prints no more
                found.append(_copy(records, None, None))
                records = []
            records.append(match)
        elif copied := _copied(line):
            if ends_tell and not records:
                continue  # status=progress: not the final line
            seconds = amount(copied[2])
            if seconds is None:
                text.fail(at, f"{copied[2][:30]!r} is not a time")
            found.append(_copy(records, whole(copied[1]), seconds))
            records = []
        elif records and re.match(r"^\s*\d+ (bytes|octets|Bytes?)\b", line):
            text.fail(at, f"not a line of dd: {line.strip()[:60]}")
    if records:
        found.append(_copy(records, None, None))
    return found


def _copy(records: list[re.Match[str]], size: int | None, seconds: float | None) -> Repetition:
    names = ("records in", "records out")
    extra = {
        f"{part}{name}": value
        for name, match in zip(names, records, strict=False)
        for part, group in (("", 1), ("partial ", 2))
        if (value := amount(match[group])) is not None and (group == 1 or value)
    }
    return Repetition(tool="dd", workload="dd", streams=[_stream("copy", size, None, seconds, extra)])


def _stream(
    name: str, size: int | None, requests: int | None, seconds: float | None, extra: dict[str, float]
) -> PartialStream:
    rate = size / seconds if size is not None and seconds else None
    iops = requests / seconds if requests is not None and seconds else None
    operation = PartialOp(requests=requests, bytes=size, iops=iops, bytes_per_s=rate)
    return PartialStream(name="main", seconds=seconds, operations={name: operation}, extra=extra)


def _sdd(text: Text) -> list[Repetition]:
    found = []
    moved: dict[str, re.Match[str]] = {}
    for at, line in enumerate(text.lines):
        if match := _SDD_MOVED.match(line):
            if match[1] in moved:
                found.append(_sdd_run(moved, None))
                moved = {}
            moved[match[1]] = match
        elif (time := _SDD_TIME.match(line)) and moved:
            seconds = amount(time[1])
            if seconds is None:
                text.fail(at, f"{time[1][:30]!r} is not a time")
            found.append(_sdd_run(moved, seconds))
            moved = {}
        elif re.match(r"^\s*(?:\S*/)?sdd: (Read|Wrote|Total)", line):
            text.fail(at, f"not a line of sdd: {line.strip()[:60]}")
    if moved:
        found.append(_sdd_run(moved, None))
    return found


def _sdd_run(moved: dict[str, re.Match[str]], seconds: float | None) -> Repetition:
    name = "copy" if len(moved) == 2 else "read" if "Read" in moved else "write"
    one = moved.get("Wrote") or moved["Read"]
    extra = {f"{verb} records".lower(): float(whole(match[2]) or 0) for verb, match in moved.items()}
    return Repetition(tool="sdd", workload="sdd", streams=[_stream(name, whole(one[4]), None, seconds, extra)])
