"""One row for each stream and operation: rates and the latency distribution."""

from __future__ import annotations

from spindle.base.numbers import plain
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.figures import Latency, Op
from spindle.result.record import RunRecord

SHOWN = (50.0, 90.0, 99.0, 99.9)


def page(record: RunRecord, style: Style) -> list[str]:
    """Return the table of one run."""
    ops: list[tuple[str, str, Op, Latency]] = []
    for stream in record.figures.streams:
        for name, op in stream.ops():
            ops.append((stream.name, name, op, op.latency))
            if op.service is not None:
                ops.append(("", f"{name} service", op, op.service))
        if stream.fsync is not None:
            ops.append((stream.name, "fsync", stream.fsync, stream.fsync.latency))
    fastest = min((latency.mean_ns for *_, latency in ops), default=0.0)
    unit, factor = ("us", 1e3) if fastest < 1e6 else ("ms", 1e6)
    columns = [
        Column("stream", words=True),
        Column("op", words=True),
        Column("IOPS"),
        Column("MB/s"),
        Column(f"mean {unit}"),
        *(Column(f"p{percent:g}") for percent in SHOWN),
        Column("max"),
    ]
    rows = [_row(stream, name, op, latency, factor) for stream, name, op, latency in ops]
    empty = [[stream.name, *nothing(len(columns) - 1)] for stream in record.figures.streams if not stream.requests]
    return table(columns, [*rows, *empty], style)


def nothing(cells: int) -> list[str]:
    """Return the cells after the name of a stream that completed no request: no operation, a rate of 0."""
    return ["-", "0", *[""] * (cells - 2)]


def _row(stream: str, name: str, op: Op, latency: Latency, factor: float) -> list[str]:
    percentiles = [latency.percentile(percent) for percent in SHOWN]
    service = name.endswith(" service")
    return [
        stream,
        name,
        "" if service else plain(op.iops),
        "" if service or op.bytes == 0 else plain(op.bytes_per_s / 1e6),
        plain(latency.mean_ns / factor),
        *("" if value is None else plain(value / factor) for value in percentiles),
        plain(latency.max_ns / factor),
    ]
