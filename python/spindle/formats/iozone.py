"""iozone's report as text: the table of file and record sizes, the Excel part of `-R`, and the throughput mode of `-t`.

Sizes are KiB and rates KiB/s, operations/s with `-O`, microseconds an operation with `-N`. A column of the table is
named only by its place; the tests are taken from the command line in the report, or else from the position of the
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spindle.result.imported import PartialLatency, PartialOp, PartialStream
from spindle.result.record import Level, Verdict

from .found import Repetition
from .numbers import amount, scaled, whole
from .text import Text

KIB = 1024.0
TESTS = (
    ("write", "rewrite"),
    ("read", "reread"),
    ("random-read", "random-write"),
    ("backward-read",),
    ("record-rewrite",),
    ("stride-read",),
    ("fwrite", "frewrite"),
    ("fread", "freread"),
)
"""Columns of each `-i N`."""
COLUMNS = tuple(name for names in TESTS for name in names)
REPORTS = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random-read",
    "random write": "random-write",
    "backward read": "backward-read",
    "record rewrite": "record-rewrite",
    "stride read": "stride-read",
    "fwrite": "fwrite",
    "re-fwrite": "frewrite",
    "fread": "fread",
    "re-fread": "freread",
}
UNIT = Verdict(
    check="unit",
    level=Level.WARN,
    evidence="the file does not name its unit: KiB/s is assumed, which iozone writes without -O or -N",
    advice="import the whole report, not the tables alone",
)
_HEADING = re.compile(r"^\s*(?:kB|KB)\s+reclen\s+write\b")
_ROW = re.compile(r"^\s*\d+\s+\d+(\s+\d+)*\s*$")
_REPORT = re.compile(r'^\s*"([A-Za-z -]+?) report"\s*$')
_CHILDREN = re.compile(r"^\s*Children see throughput for\s+(\d+)\s+(.+?)\s*=\s*(\S+)\s+(\S+)/sec")
_PROCESS = re.compile(r"^\s*(Min|Max|Avg) throughput per (?:process|thread)\s*=\s*(\S+)")
_SIGNS = re.compile(
    r'Iozone: Performance Test|^\s*(?:kB|KB)\s+reclen\s+write|Children see throughput for|"Writer report"', re.M
)
_EXCEL = re.compile(r'^"(?:Re-)?(?:Writer|Reader|Fwrite|Fread|Random read|Random write)[^"]* report"', re.M | re.I)


def looks(text: Text) -> bool:
    """True for its heading, or that of one of its tables."""
    return _SIGNS.search(text.head) is not None or _EXCEL.search(text.head) is not None


def read(text: Text) -> list[Repetition]:
    """Return one for each run of the program: its banner or a command line begins another."""
    starts = [at for at, line in enumerate(text.lines) if "Iozone: Performance Test" in line]
    if not starts:
        starts = [0]
    ends = [*starts[1:], len(text.lines)]
    return [found for start, end in zip(starts, ends, strict=True) if (found := _run(text, start, end)).streams]


def _run(text: Text, start: int, end: int) -> Repetition:
    lines = text.lines[start:end]
    settings = _settings(lines)
    streams: dict[str, PartialStream] = {}
    for stream in [
        *_table(text, start, lines, settings),
        *_throughput(lines, settings),
        *_excel(text, start, lines, settings),
    ]:
        streams.setdefault(stream.name, stream)  # the Excel part repeats the table
    command = settings.get("command line", "")
    version = next((found[1] for line in lines if (found := re.search(r"\$Revision: ([\d.]+) \$", line))), None)
    target = re.search(r"\s-f\s*(\S+)", command)
    numbered = [
        PartialStream(name=s.name, group=place, operations=s.operations, settings=s.settings, extra=s.extra)
        for place, s in enumerate(streams.values())
    ]
    return Repetition(
        tool="iozone",
        version=version,
        target=target[1] if target else None,
        settings=settings,
        streams=numbered,
        verdicts=[] if "output" in settings or "command line" in settings else [UNIT],
    )


def _settings(lines: Sequence[str]) -> dict[str, str]:
    patterns = {
        "command line": r"Command line used: (.+)",
        "output": r"Output is in (.+)",
        "run began": r"Run began: (.+)",
        "record size": r"Record Size (.+)",
        "file size": r"File size set to (.+)",
        "direct": r"(O_DIRECT) feature enabled",
        "sync": r"(SYNC) Mode",
        "fsync": r"Include (fsync) in write timing",
        "close": r"Include (close) in write timing",
    }
    found = {}
    for line in lines:
        for name, pattern in patterns.items():
            if name not in found and (match := re.search(pattern, line)):
                found[name] = match[1].strip()
    return found


def _operation(name: str, value: str, settings: dict[str, str]) -> PartialOp:
    unit = settings.get("output", "").lower()
    if unit.startswith(("ops", "operations per")):
        return PartialOp(iops=amount(value))
    if "microseconds" in unit:
        return PartialOp(latency=PartialLatency(mean_ns=scaled(value, 1e3)))
    return PartialOp(bytes_per_s=scaled(value, KIB))


def _kind(name: str) -> str:
    return "rewrite" if name == "record-rewrite" else "write" if "write" in name else "read"


def _cell(name: str, size: int, record: int, value: str, settings: dict[str, str]) -> PartialStream:
    return PartialStream(
        name=f"{name}-{_size(record)}-of-{_size(size)}",
        operations={_kind(name): _operation(name, value, settings)},
        settings={"test": name, "file size": f"{size} KiB", "record size": f"{record} KiB"},
    )


def _size(kib: int) -> str:
    for unit in ("KiB", "MiB", "GiB"):
        if kib % 1024 or not kib:
            return f"{kib}{unit}"
        kib //= 1024
    return f"{kib}TiB"


def _table(text: Text, start: int, lines: Sequence[str], settings: dict[str, str]) -> Iterator[PartialStream]:
    heading: str | None = None
    for at, line in enumerate(lines):
        if _HEADING.match(line):
            heading = line
        elif heading is not None and _ROW.match(line):
            numbers = line.split()
            names = _columns(heading, line, settings)
            if names is None:
                text.fail(start + at, f"{len(numbers) - 2} figures: their tests are unknown")
            size, record = whole(numbers[0]), whole(numbers[1])
            if size is None or record is None:
                text.fail(start + at, "no file and record size")
            for name, value in zip(names, numbers[2:], strict=True):
                yield _cell(name, size, record, value, settings)
        elif heading is not None and line.strip() and re.match(r"^\s*\d+\s+\d+\s", line):
            text.fail(start + at, f"not a row of figures: {line.strip()[:50]}")


def _columns(heading: str, line: str, settings: dict[str, str]) -> list[str] | None:
    """Return the names of the figures of a row."""
    count = len(line.split()) - 2
    tests = sorted(
        {int(n) for n in re.findall(r"\s-i\s*(\d+)", settings.get("command line", ""))} & set(range(len(TESTS)))
    )
    asked = [name for test in tests or range(len(TESTS)) for name in TESTS[test]]
    if len(asked) == count:
        return asked
    if not tests and count in (9, 11):  # without the f-tests, or without those of a library that lacks pwritev
        return list(COLUMNS[:count])
    ends = [found.end() for found in re.finditer(r"\S+", heading)][2:]
    places = [found.end() for found in re.finditer(r"\S+", line)][2:]
    if len(ends) != len(COLUMNS) or len(places) > len(ends):
        return None
    chosen: list[int] = []
    for place in places:
        free = range(chosen[-1] + 1 if chosen else 0, len(ends))
        if not free:
            return None
        chosen.append(min(free, key=lambda column: abs(ends[column] - place)))
    return [COLUMNS[column] for column in chosen]


def _throughput(lines: Sequence[str], settings: dict[str, str]) -> Iterator[PartialStream]:
    for at, line in enumerate(lines):
        found = _CHILDREN.match(line)
        if found is None or amount(found[3]) is None:
            continue
        test = "-".join(found[2].split())
        own = {**settings, "output": found[4]}
        spread = [match for near in lines[at + 1 : at + 6] if (match := _PROCESS.match(near))]
        yield PartialStream(
            name=f"{test}-{found[1]}",
            operations={"write" if "writ" in test else "read": _operation(test, found[3], own)},
            settings={"test": test, "processes": found[1]},
            extra={f"{m[1]} throughput per process": v for m in spread if (v := amount(m[2])) is not None},
        )


def _excel(text: Text, start: int, lines: Sequence[str], settings: dict[str, str]) -> Iterator[PartialStream]:
    name: str | None = None
    records: list[int] = []
    for at, line in enumerate(lines):
        if found := _REPORT.match(line):
            name, records = REPORTS.get(found[1].lower()), []
        elif name is not None and line.strip():
            cells = [cell.strip('"') for cell in line.split()]
            numbers = [whole(cell) for cell in cells]
            if any(each is None for each in numbers):
                name = None  # the tables are over
            elif not records:
                records = [each for each in numbers if each is not None]
            else:
                size = numbers[0] or 0
                if len(cells) - 1 > len(records):
                    text.fail(start + at, f"{len(cells) - 1} figures under {len(records)} record sizes")
                for record, cell in zip(records, cells[1:], strict=False):
                    if cell != "0":  # was not measured
                        yield _cell(name, size, record, cell, settings)
