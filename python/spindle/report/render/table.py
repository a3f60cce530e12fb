"""The figures as CSV: a row for each operation of each stream of each run; units are in the names of the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from spindle.report.document.entry import Entry
from spindle.report.document.trial import runs_of
from spindle.result.figures import Op
from spindle.result.imported import PartialLatency
from spindle.result.record import ImportedRecord, Level, RunRecord

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_FIXED = (
    "run",
    "started",
    "workload",
    "target",
    "target_kind",
    "stream",
    "op",
    "outstanding",
    "measured_s",
    "requests",
    "bytes",
    "iops",
    "bytes_per_s",
    "min_ns",
    "mean_ns",
    *(f"p{percent:g}_ns" for percent in PERCENTILES),
    "max_ns",
    "sdev_ns",
    "verdict",
    "verdict_checks",
)


def table(entries: Sequence[Entry]) -> bytes:
    """Return the file. Campaign factors have columns `factor.NAME`."""
    factors = sorted({name for entry in entries for name in entry.cell})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*_FIXED, *(f"factor.{_safe(name)}" for name in factors)])
    for entry in entries:
        factor_cells = [_safe(entry.cell.get(name, "")) for name in factors]
        rows = [row for run in runs_of(entry) for row in _rows(run)]
        if isinstance(entry.record, ImportedRecord):
            rows += _imported(entry.record)
        writer.writerows([*row, *factor_cells] for row in rows)
    return file.getvalue().encode("utf-8", "backslashreplace")


def _rows(run: RunRecord) -> Iterator[list[str]]:
    bad = sorted({verdict.check for verdict in run.verdicts if verdict.level is not Level.OK})
    for spec, stream in zip(run.workload.streams, run.figures.streams, strict=False):
        named = [*stream.ops(), *([("fsync", stream.fsync)] if stream.fsync is not None else [])]
        for name, op in named:
            yield [
                run.id,
                run.started,
                _safe(run.workload.name),
                _safe(run.target.asked),
                run.target.kind,
                _safe(stream.name),
                name,
                str(spec.outstanding),
                f"{run.figures.measured_s:.6f}",
                *_figures(op),
                str(run.level),
                " ".join(bad),
            ]


def _imported(record: ImportedRecord) -> Iterator[list[str]]:
    """Yield rows; figures that the file lacks are empty."""
    bad = sorted({verdict.check for verdict in record.verdicts if verdict.level is not Level.OK})
    for stream in record.streams:
        for name, op in stream.operations.items():
            timed = op.timed or PartialLatency()
            yield [
                record.id,
                record.started or "",
                _safe(record.workload or record.source.tool),
                _safe(record.target or ""),
                "imported",
                _safe(stream.name),
                name,
                "",
                _known(stream.seconds),
                _known(op.requests),
                _known(op.bytes),
                _known(op.iops),
                _known(op.bytes_per_s),
                _known(timed.min_ns),
                _known(timed.mean_ns),
                *(_known(timed.percentile(percent)) for percent in PERCENTILES),
                _known(timed.max_ns),
                _known(timed.sdev_ns),
                str(record.level),
                " ".join(bad),
            ]


def _known(value: float | None) -> str:
    return "" if value is None else repr(value)


def _figures(op: Op) -> list[str]:
    latency = op.latency
    return [
        str(op.requests),
        str(op.bytes),
        repr(op.iops),
        repr(op.bytes_per_s),
        str(latency.min_ns),
        repr(latency.mean_ns),
        *("" if (ns := latency.percentile(percent)) is None else str(ns) for percent in PERCENTILES),
        str(latency.max_ns),
        repr(latency.sdev_ns),
    ]


def _safe(text: str) -> str:
    """Escape names that a spreadsheet would read as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text
