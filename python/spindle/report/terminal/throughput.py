"""The figures of dd and `time`: MB/s, bytes, elapsed, user and system CPU time."""

from __future__ import annotations

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal.streams import nothing
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import RunRecord


def page(record: RunRecord, style: Style) -> list[str]:
    """Return a row for each stream and direction, then the times of the run."""
    figures = record.figures
    rows = [
        [stream.name, name, plain(op.bytes_per_s / 1e6), plain(op.iops), units.size(op.bytes)]
        for stream in figures.streams
        for name, op in stream.ops()
    ]
    columns = [Column("stream", words=True), Column("op", words=True), Column("MB/s"), Column("IOPS"), Column("moved")]
    rows += [[stream.name, *nothing(len(columns) - 1)] for stream in figures.streams if not stream.requests]
    cpu = figures.cpu
    times = (
        f"real {figures.elapsed_ns / 1e9:.2f} s, user {cpu.user_ns / 1e9:.2f} s, sys {cpu.system_ns / 1e9:.2f} s "
        f"(measured {figures.measured_s:.2f} s)"
    )
    return [*table(columns, rows, style), *style.wrap(times)]
