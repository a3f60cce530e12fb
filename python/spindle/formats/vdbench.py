"""vdbench's flatfile.html: columns by name, a line for each interval, and one for the average of each run.

MB are 2^20 bytes, response times ms (the comments at the head of the file). Reads and writes are separate if
the file separates them: all of one kind (`read%`), or `MB_read` and `MB_write` beside it; else
they stay together as `mixed`.
"""

from __future__ import annotations

import re

from spindle.result.imported import Moment, PartialLatency, PartialOp, PartialStream

from .found import Repetition, known
from .numbers import amount, scaled, scaled_whole
from .text import Text

MIB = 1 << 20
_HEADING = re.compile(r"^\s*tod\s+(?:timestamp\s+)?Run\s+Interval\s+.*\brate\b", re.I)
_TAG = re.compile(r"<[^<>]{0,200}>")
ASKED = ("reqrate", "xfersize", "threads", "rdpct", "rhpct", "whpct", "seekpct", "lunsize", "compratio", "dedupratio")
EXTRA = ("queue_depth", "cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle", "bytes/io", "read%")


def looks(text: Text) -> bool:
    """True for its line of column names."""
    return any(_HEADING.match(_TAG.sub("", line[:4000])) for line in text.head.split("\n"))


def read(text: Text) -> list[Repetition]:
    """Read all runs of the file; a repeated one gets a number after its name."""
    columns: list[str] = []
    streams: list[PartialStream] = []
    series: list[Moment] = []
    run: str | None = None
    version = None
    for at, line in enumerate(text.lines):
        line = _TAG.sub("", line[:4000]).strip()
        if _HEADING.match(line):
            columns = [name.lower() for name in line.split()]
            continue
        if not columns or not line or line.startswith("*"):
            continue
        cells = line.split()
        if len(cells) != len(columns):
            text.fail(at, f"{len(cells)} values under {len(columns)} columns: cut off")
        row = dict(zip(columns, cells, strict=True))
        if amount(row["rate"]) is None:
            text.fail(at, f"rate: {row['rate'][:30]!r} is not a number")
        if row["run"] != run:
            run, series = row["run"], []
        version = row.get("version", version)
        if row["interval"].startswith("avg"):
            streams.append(_stream(row, len(streams), series))
            series = []
        else:
            operations = _operations(row)
            rates = {f"{name}.iops": op.iops for name, op in operations.items() if op.iops is not None}
            series.append(Moment(at=row["tod"][:40], values=rates))
    if series and run is not None:  # stopped before its average was written
        streams.append(PartialStream(name=run, group=len(streams), operations={}, series=series))
    return [Repetition(tool="vdbench", version=version, streams=streams)] if streams else []


def _stream(row: dict[str, str], place: int, series: list[Moment]) -> PartialStream:
    return PartialStream(
        name=row["run"],
        group=place,
        operations=_operations(row),
        settings={name: row[name] for name in ASKED if name in row},
        extra={name: value for name in EXTRA if (value := amount(row.get(name))) is not None},
        series=series,
    )


def _operations(row: dict[str, str]) -> dict[str, PartialOp]:
    share, rate = amount(row.get("read%")), amount(row["rate"])
    split = share is not None and rate is not None and 0 < share < 100
    if split and share is not None and rate is not None and "mb_read" in row and "mb_write" in row:
        return {
            "read": _operation(row, "read", rate * share / 100, row["mb_read"]),
            "write": _operation(row, "write", rate * (100 - share) / 100, row["mb_write"]),
        }
    name = {100.0: "read", 0.0: "write"}.get(share, "mixed") if share is not None and rate else "mixed"
    whole = PartialOp(
        iops=rate,
        bytes_per_s=scaled(row.get("mb/sec"), MIB),
        latency=_latency(row.get("resp"), row.get("resp_max"), row.get("resp_std")),
    )
    return {name: whole}


def _operation(row: dict[str, str], name: str, iops: float, rate: str) -> PartialOp:
    return PartialOp(
        iops=iops,
        bytes_per_s=scaled(rate, MIB),
        latency=_latency(row.get(f"{name}_resp"), row.get(f"{name}_max"), row.get(f"{name}_std")),
    )


def _latency(mean: str | None, most: str | None, sdev: str | None) -> PartialLatency | None:
    return known(PartialLatency(mean_ns=scaled(mean, 1e6), max_ns=scaled_whole(most, 1e6), sdev_ns=scaled(sdev, 1e6)))
