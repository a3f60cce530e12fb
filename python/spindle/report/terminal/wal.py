"""Commits of a log: rate, and time until durable."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base.numbers import plain
from spindle.report.terminal import streams
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.figures import Op, Stream
from spindle.result.record import PhasesRecord, RunRecord

SHOWN = (50.0, 90.0, 99.0, 99.9)


def page(record: RunRecord, style: Style) -> list[str]:
    """Return the table of one run; a run without writes has no commits."""
    writes = any(stream.write is not None for stream in record.figures.streams)
    return _rows([record], style) if writes else streams.page(record, style)


def of_phases(record: PhasesRecord, style: Style) -> list[str]:
    """Return a row for each phase."""
    return _rows(record.runs, style)


def _rows(runs: Sequence[RunRecord], style: Style) -> list[str]:
    found = [
        (run.workload.name, stream, write, *_durable(stream, write))
        for run in runs
        for stream in run.figures.streams
        if (write := stream.write) is not None
    ]
    fastest = min((waited.latency.mean_ns for *_, waited in found), default=0.0)
    unit, factor = ("us", 1e3) if fastest < 1e6 else ("ms", 1e6)
    columns = [
        Column("", words=True),
        Column("commits/s"),
        Column("durable by", words=True),
        Column("commits each"),
        Column(f"mean {unit}"),
        *(Column(f"p{percent:g}") for percent in SHOWN),
        Column("max"),
        Column("MB/s"),
    ]
    rows = [
        [
            name if len(runs) > 1 else stream.name,
            plain(write.iops),
            by,
            plain(write.requests / waited.requests) if waited.requests else "",
            plain(waited.latency.mean_ns / factor),
            *("" if ns is None else plain(ns / factor) for ns in map(waited.latency.percentile, SHOWN)),
            plain(waited.latency.max_ns / factor),
            plain(write.bytes_per_s / 1e6),
        ]
        for name, stream, write, by, waited in found
    ]
    return table(columns, rows, style)


def _durable(stream: Stream, write: Op) -> tuple[str, Op]:
    """Return the operation that a commit waits for: the sync after it, or the write itself."""
    return ("sync", stream.fsync) if stream.fsync is not None else ("write", write)
