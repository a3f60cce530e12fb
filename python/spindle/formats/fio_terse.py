"""fio's terse output (`--minimal`, `--output-format=terse`), versions 3, 4 and 5: HOWTO, "Terse output".

Fields are separated by `;`. Bytes are KiB, rates KiB/s, times microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from spindle.result.imported import PartialLatency, PartialOp, PartialStream
from spindle.result.record import Level, Verdict

from .found import Found, known
from .numbers import amount, number, scaled, scaled_whole, whole
from .text import Text

DIRECTIONS = {"3": ("read", "write"), "4": ("read", "write", "trim"), "5": ("read", "write", "trim")}
LENGTHS = {"3": 41, "4": 41, "5": 47}
"""Fields of a direction: version 5 adds the number of bandwidth samples and five fields of IOPS."""
BEFORE = 5
"""Versions, name, group, error."""
PERCENTILES = 20


def looks(text: Text) -> bool:
    """A line that begins with the two versions."""
    return re.search(r"^[2345];(fio-[^;]*;)?[^;\n]*;\d+;\d+;", text.head, re.M) is not None


def read(text: Text) -> list[Found]:
    """The lines of a run have rising groups: where the group falls, another run begins."""
    runs: list[list[tuple[int, list[str]]]] = []
    for at, line in enumerate(text.lines):
        if re.match(r"2;[^;]*;\d+;\d+;", line):
            text.fail(at, "fio's terse version 2 is not read; 3, 4, 5 and JSON are")
        if re.match(r"[345];fio-[^;]*;", line):
            fields = line.rstrip().split(";")
            if not runs or _group(fields) < _group(runs[-1][-1][1]):
                runs.append([])
            runs[-1].append((at, fields))
    return [_run(text, run) for run in runs]


def _group(fields: Sequence[str]) -> int:
    return (whole(fields[3]) or 0) if len(fields) > 3 else 0


def _run(text: Text, lines: list[tuple[int, list[str]]]) -> Found:
    names = list(dict.fromkeys(fields[2] for _, fields in lines))
    return Found(
        tool="fio",
        version=lines[0][1][1],
        workload=names[0] if len(names) == 1 else None,
        settings={"terse_version": lines[0][1][0]},
        streams=_told_apart([_stream(text, at, fields) for at, fields in lines]),
        verdicts=list(_errors(lines)),
    )


def _told_apart(streams: list[PartialStream]) -> list[PartialStream]:
    """Two lines of the same name and group are clones of a job, or two runs in one file: nobody knows, so that their
    rates must not be added up.
    """
    names = [(stream.name, stream.group) for stream in streams]
    if len(set(names)) == len(names):
        return streams
    return [replace(stream, group=place) for place, stream in enumerate(streams)]


def _errors(lines: list[tuple[int, list[str]]]) -> Iterator[Verdict]:
    for _, fields in lines:
        if len(fields) > 4 and whole(fields[4]):
            yield Verdict(
                check="errors",
                level=Level.INVALID,
                evidence=f"fio says that job {fields[2]} ended with error {fields[4]}",
                advice="its figures are partial; mend the cause and repeat the run",
            )


def _stream(text: Text, at: int, fields: Sequence[str]) -> PartialStream:
    version = fields[0]
    names, length = DIRECTIONS[version], LENGTHS[version]
    cpu = BEFORE + length * len(names)
    if len(fields) < cpu + 5:
        text.fail(at, f"{len(fields)} fields where terse version {version} has at least {cpu + 5}: cut off")
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
