"""Modelled drives compared with traces of real ones: a block per drive, reads and writes separate."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from msgspec import Struct

from spindle import _core
from spindle.base.decoding import decode_json
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table


class Score(Struct, frozen=True):
    """Differences of model and measurement over some requests; times in ms."""

    requests: int
    measured_mean_ms: float
    modelled_mean_ms: float
    demerit_ms: float
    demerit_percent: float
    mae_ms: float
    correlation: float | None


class Reference(Struct, frozen=True):
    """Scores of DiskSim 4.0 with the same parameters and trace; times in ms."""

    demerit_ms: float
    mae_ms: float
    correlation: float
    reads_demerit_ms: float
    writes_demerit_ms: float


class DriveReport(Struct, frozen=True):
    """One drive, or all together."""

    drive: str
    name: str
    total: Score
    reads: Score | None
    writes: Score | None
    reference: Reference | None
    worse: list[str]
    notes: list[str]


class Failure(Struct, frozen=True):
    """A drive that could not be compared."""

    drive: str
    problem: str


class DrivesReport(Struct, frozen=True):
    """All drives."""

    drives: list[DriveReport]
    all: DriveReport | None
    failures: list[Failure]
    without_trace: list[str]


COLUMNS = [
    Column("drive", words=True),
    Column("requests", words=True),
    Column("number"),
    Column("measured ms"),
    Column("modelled ms"),
    Column("demerit ms"),
    Column("% of mean"),
    Column("MAE ms"),
    Column("r"),
    Column("reference", words=True),
]

LEGEND = ["demerit: root mean square over quantiles; MAE and r: per request; reference: DiskSim 4.0, the same figures"]


def drives_report(directory: str) -> DrivesReport:
    """Replay every trace of a directory. Raises ConfigError if it has none."""
    return decode_json(_core.validate_drives(directory), DrivesReport)


def drives_page(report: DrivesReport) -> Iterator[str]:
    """Yield the page: the figures, then those that are worse than the reference."""
    if report.all is not None:
        rows = [row for drive in [*report.drives, report.all] for row in _rows(drive)]
        yield from table(COLUMNS, rows, style_of(sys.stdout))
        yield ""
        yield from LEGEND
    for drive in report.drives:
        for note in drive.notes:
            yield f"note: {drive.drive}: {note}"
    for name in report.without_trace:
        yield f"not compared: {name}: names no trace"
    for failure in report.failures:
        yield f"not compared: {failure.drive}: {failure.problem}"
    compared = [drive for drive in report.drives if drive.reference is not None]
    for drive in compared:
        for figure in drive.worse:
            yield f"worse than the reference: {drive.drive}: {figure}"
    if compared and not any(drive.worse for drive in compared):
        yield "no figure is worse than the reference"


def _rows(drive: DriveReport) -> Iterator[list[str]]:
    reference = drive.reference
    all_of = reads_of = writes_of = ""
    if reference is not None:
        all_of = f"{reference.demerit_ms:.3f}, MAE {reference.mae_ms:.2f}, r {reference.correlation:.3f}"
        reads_of = f"{reference.reads_demerit_ms:.3f}"
        writes_of = f"{reference.writes_demerit_ms:.3f}"
    parts = [("all", drive.total, all_of), ("reads", drive.reads, reads_of), ("writes", drive.writes, writes_of)]
    for what, score, beside in parts:
        if score is not None:
            yield [drive.drive, what, *_figures(score), beside]


def _figures(score: Score) -> list[str]:
    return [
        str(score.requests),
        f"{score.measured_mean_ms:.3f}",
        f"{score.modelled_mean_ms:.3f}",
        f"{score.demerit_ms:.3f}",
        f"{score.demerit_percent:.1f}",
        f"{score.mae_ms:.3f}",
        "-" if score.correlation is None else f"{score.correlation:.3f}",
    ]
