"""fio's terse output (`--minimal`, `--output-format=terse`), versions 3, 4 and 5: HOWTO, "Terse output".

Fields are separated by `;`. Bytes are KiB, rates KiB/s, times microseconds. `unified_rw_reporting=mixed` writes one
part instead of one for each direction, `both` adds that part to them. With fio's `--status-interval` all lines are
written every so often, with the totals since the start: they are one run, with the figures of the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from spindle.result.imported import PartialLatency, PartialOp, PartialStream
from spindle.result.record import Level, Verdict

from .found import Repetition, known, writer_of
from .numbers import amount, number, scaled, scaled_whole, whole
from .text import Text

DIRECTIONS = {"3": ("read", "write"), "4": ("read", "write", "trim"), "5": ("read", "write", "trim")}
LENGTHS = {"3": 41, "4": 41, "5": 47}
"""Fields of a direction: version 5 adds the number of bandwidth samples and five fields of IOPS."""
BEFORE = 5
"""Versions, name, group, error."""
PERCENTILES = 20
LEAST_INTERVAL_MS = 200
"""Least increase of a job's time between two reports of one run; the times of clones hardly differ."""
Lines = list[tuple[int, list[str]]]
"""(line from 0, fields) of each job."""
_SHARE = re.compile(r"([\d.]+%)?")
"""Empty if unknown: Spindle writes such lines."""


def looks(text: Text) -> bool:
    """True for a line that begins with the two versions."""
    return re.search(r"^[2345];(fio-[^;]*;)?[^;\n]*;\d+;\d+;", text.head, re.M) is not None


def read(text: Text) -> list[Repetition]:
    """Read the lines. In a run the groups rise: where the group falls, another run begins."""
    runs: list[Lines] = []
    for at, line in enumerate(text.lines):
        if re.match(r"2;[^;]*;\d+;\d+;", line):
            text.fail(at, "fio's terse version 2 is not read; 3, 4, 5 and JSON are")
        if re.match(r"[345];fio-[^;]*;", line):
            fields = line.rstrip().split(";")
            if not runs or _group(fields) < _group(runs[-1][-1][1]):
                runs.append([])
            runs[-1].append((at, fields))
    return [_run(text, run) for run in _ended(runs)]


def _group(fields: Sequence[str]) -> int:
    return (whole(fields[3]) or 0) if len(fields) > 3 else 0


def _ended(runs: list[Lines]) -> list[Lines]:
    """Drop reports that are followed by a later one of the same run."""
    found: list[Lines] = []
    goes_on = False
    for run in runs:
        # The last report may follow at once; the second is an interval behind the first.
        goes_on = bool(found) and _names(found[-1]) == _names(run) and _is_continued(found[-1], run, first=not goes_on)
        if goes_on:
            found.pop()
        found.append(run)
    return found


def _names(lines: Lines) -> list[list[str]]:
    return [fields[2:4] for _, fields in lines]


def _is_continued(earlier: Lines, later: Lines, first: bool) -> bool:
    """True if these are two reports of one run: the later one has at least as much of all jobs."""
    rising = all(_goes_on(before[1], after[1]) for before, after in zip(earlier, later, strict=True))
    return rising and (not first or _worked_ms(later) - _worked_ms(earlier) >= LEAST_INTERVAL_MS)


def _last_report(lines: Lines) -> Lines:
    """Return the last report if the lines are several reports of one run (the same jobs in the same order, and no
    total falls), else all."""
    names = _names(lines)
    period = next((each for each in range(1, len(names)) if names == _repeated(names, each)), len(names))
    reports = [lines[at : at + period] for at in range(0, len(lines), period)]
    rising = [_is_continued(earlier, later, first=not at) for at, (earlier, later) in enumerate(pairwise(reports))]
    return reports[-1] if rising and all(rising) else lines


def _repeated(names: list[list[str]], period: int) -> list[list[str]]:
    return names[:period] * (len(names) // period)


def _goes_on(before: Sequence[str], after: Sequence[str]) -> bool:
    """True if the later line of a job may be a later report of the same run: it moved more, if it worked longer."""
    if len(before) != len(after) or before[0] != after[0]:
        return False
    for start in range(BEFORE, _cpu_at(before) or BEFORE, LENGTHS[before[0]]):
        was, now = before[start : start + 12], after[start : start + 12]
        moved, worked = (_number(now[at]) - _number(was[at]) for at in (0, 3))
        if moved < 0 or worked < 0 or (worked > LEAST_INTERVAL_MS and not moved):
            return False
        timed = _number(was[10]) > 0
        if timed and (_number(now[8]) > _number(was[8]) or _number(now[9]) < _number(was[9])):  # least and most
            return False
    return True


def _worked_ms(lines: Lines) -> float:
    """Return the time that all jobs were at work, in total."""
    return sum(
        _number(fields[start + 3])
        for _, fields in lines
        for start in range(BEFORE, _cpu_at(fields) or BEFORE, LENGTHS[fields[0]])
    )


def _number(text: str) -> float:
    return amount(text) or 0.0


def _cpu_at(fields: Sequence[str]) -> int | None:
    """Return the start of the CPU shares: after one part, one for each direction, or one more. None: missing."""
    directions, length = len(DIRECTIONS[fields[0]]), LENGTHS[fields[0]]
    places = (BEFORE + length * parts for parts in (1, directions, directions + 1))
    return next(
        (at for at in places if len(fields) >= at + 5 and all(_SHARE.fullmatch(each) for each in fields[at : at + 2])),
        None,
    )


def _run(text: Text, lines: Lines) -> Repetition:
    lines = _last_report(lines)
    names = list(dict.fromkeys(fields[2] for _, fields in lines))
    tool, version = writer_of(lines[0][1][1])
    return Repetition(
        tool=tool,
        version=version,
        workload=names[0] if len(names) == 1 else None,
        settings={"terse_version": lines[0][1][0]},
        streams=_separated([_stream(text, at, fields) for at, fields in lines]),
        verdicts=list(_errors(lines)),
    )


def _separated(streams: list[PartialStream]) -> list[PartialStream]:
    """Separate lines of the same name and group. They are clones of a job or two runs in one file; that is unknown, so
    their rates must not be added up.
    """
    names = [(stream.name, stream.group) for stream in streams]
    if len(set(names)) == len(names):
        return streams
    return [replace(stream, group=place) for place, stream in enumerate(streams)]


def _errors(lines: Lines) -> Iterator[Verdict]:
    for _, fields in lines:
        if len(fields) > 4 and whole(fields[4]):
            yield Verdict(
                check="errors",
                level=Level.INVALID,
                evidence=f"fio says that job {fields[2]} ended with error {fields[4]}",
                advice="its figures are partial; fix the cause and repeat the run",
            )


def _stream(text: Text, at: int, fields: Sequence[str]) -> PartialStream:
    version = fields[0]
    names, length = DIRECTIONS[version], LENGTHS[version]
    cpu = _cpu_at(fields)
    if cpu is None:
        least = BEFORE + length * len(names) + 5
        text.fail(at, f"{len(fields)} fields where terse version {version} has at least {least}: cut off")
    if cpu == BEFORE + length:
        names = ("mixed",)
    operations = {}
    seconds = []
    for place, name in enumerate(names):
        start = BEFORE + place * length
        own = fields[start : start + length]
        if whole(own[0]) or amount(own[2]):
            operations[name] = _operation(text, at, own)
            seconds.append(scaled(own[3], 1e-3) or 0.0)
    extra = zip(("usr_cpu", "sys_cpu", "ctx", "majf", "minf"), fields[cpu : cpu + 5], strict=True)
    return PartialStream(
        name=fields[2] or "job",
        group=whole(fields[3]) or 0,
        seconds=max(seconds, default=None),
        operations=operations,
        extra={name: value for name, each in extra if (value := number(each.rstrip("%"))) is not None},
    )


def _operation(text: Text, at: int, own: Sequence[str]) -> PartialOp:
    if any(number(each) is None for each in own[:4]):
        text.fail(at, f"not numbers: {';'.join(own[:4])[:60]}")
    return PartialOp(
        bytes=scaled_whole(own[0], 1024),
        bytes_per_s=scaled(own[1], 1024),
        iops=amount(own[2]),
        submission=_latency(own[4:8]),
        completion=_latency(own[8:12], own[12 : 12 + PERCENTILES]),
        latency=_latency(own[32:36]),
    )


def _latency(moments: Sequence[str], percentiles: Sequence[str] = ()) -> PartialLatency | None:
    least, most, mean, sdev = moments
    if not amount(most) and not amount(mean):  # nothing was timed
        return None
    pairs = [each.partition("%=") for each in percentiles]
    ranks = [(number(percent), scaled_whole(time, 1e3)) for percent, _, time in pairs]
    return known(
        PartialLatency(
            min_ns=scaled_whole(least, 1e3),
            max_ns=scaled_whole(most, 1e3),
            mean_ns=scaled(mean, 1e3),
            sdev_ns=scaled(sdev, 1e3),
            percentiles=sorted((rank, ns) for rank, ns in ranks if rank and 0 < rank <= 100 and ns is not None),
        )
    )
