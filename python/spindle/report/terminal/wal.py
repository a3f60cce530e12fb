"""Commits of a log: rate, and time until durable."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base.numbers import plain
from spindle.report.terminal import streams
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result import workload
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
    """Return a row for each stream that writes, or that completed nothing."""
    found = [
        (run.workload.name if len(runs) > 1 else got.name, got, *_durable(asked, got))
        for run in runs
        for asked, got in zip(run.workload.streams, run.figures.streams, strict=True)
        if got.write is not None or not got.requests
    ]
    fastest = min((waited.latency.mean_ns for *_, waited in found if waited is not None), default=0.0)
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
    rows = [[name, *_cells(stream.write, by, waited, factor)] for name, stream, by, waited in found]
    return table(columns, rows, style)


def _cells(write: Op | None, by: str, waited: Op | None, factor: float) -> list[str]:
    """Return the cells of a stream; a time until durable only if something became durable."""
    if write is None or waited is None:
        return ["0", by, *[""] * (len(SHOWN) + 4)]
    return [
        plain(write.iops),
        by,
        plain(write.requests / waited.requests) if waited.requests else "",
        plain(waited.latency.mean_ns / factor),
        *("" if ns is None else plain(ns / factor) for ns in map(waited.latency.percentile, SHOWN)),
        plain(waited.latency.max_ns / factor),
        plain(write.bytes_per_s / 1e6),
    ]


def _durable(asked: workload.WorkloadStream, got: Stream) -> tuple[str, Op | None]:
    """Return the operation that a commit waits for: the sync after it, or the write itself."""
    sync = asked.sync
    if sync.fsync_every or sync.fdatasync_every or sync.fsync_fraction:
        return "sync", got.fsync
    return "write", got.write
