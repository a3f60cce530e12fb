"""Phases that ran one after another: a row each, or the table that people of the workload know."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from spindle.report import metadata, wal
from spindle.report.heading import target_words
from spindle.report.number import plain
from spindle.report.shapes import bonnie, iozone
from spindle.report.style import Style
from spindle.report.table import Column, table
from spindle.result import units
from spindle.result.record import PhaseFigures, PhasesRecord, RunRecord, Verdict

SHAPES: dict[str, Callable[[PhasesRecord, Style], list[str]]] = {
    "metadata": metadata.phases,
    "wal": wal.of_phases,
    "bonnie": bonnie.phases_page,
    "iozone": iozone.phases_page,
}
"""The tables of workloads that have one of their own."""


def head(record: PhasesRecord, style: Style) -> list[str]:
    """Workload and target."""
    seconds = units.seconds(round(sum(phase.seconds for phase in record.phases), 2))
    return [
        *style.headline(f"{record.workload.name} on {target_words(record.target)}"),
        *style.wrap(
            f"{len(record.phases)} of {len(record.workload.phases)} phases in {seconds}; seed {record.workload.seed}; "
            f"{record.id}"
        ),
    ]


def page(record: PhasesRecord, style: Style) -> list[str]:
    """The table of the workload's field."""
    return SHAPES.get(record.workload.table, rows)(record, style)


def rows(record: PhasesRecord, style: Style) -> list[str]:
    """A row for each operation of each phase."""
    columns = [
        Column("phase", words=True),
        Column("op", words=True),
        Column("MB/s"),
        Column("IOPS"),
        Column("mean ms"),
        Column("worst ms"),
        Column("s"),
        Column("CPU %"),
        Column("verdict", words=True),
    ]
    found = [row for phase, run in zip(record.phases, record.runs, strict=True) for row in _rows_of(phase, run, record)]
    return table(columns, found, style)


def _rows_of(phase: PhaseFigures, run: RunRecord, record: PhasesRecord) -> list[list[str]]:
    several = len(run.figures.streams) > 1
    ops = [
        (f"{stream.name} {name}" if several else name, op)
        for stream in run.figures.streams
        for name, op in (*stream.ops(), *((("fsync", stream.fsync),) if stream.fsync is not None else ()))
    ]
    found = []
    for at, (name, op) in enumerate(ops):
        first = at == 0
        found.append(
            [
                phase.name if first else "",
                name,
                plain(op.bytes_per_s / 1e6) if op.bytes else "",
                plain(op.iops),
                plain(op.latency.mean_ns / 1e6),
                plain(op.latency.max_ns / 1e6),
                plain(phase.seconds) if first else "",
                plain(phase.cpu_percent) if first else "",
                str(run.level) if first else "",
            ]
        )
    return found or [[phase.name, "", "", "", "", "", plain(phase.seconds), plain(phase.cpu_percent), str(run.level)]]


def verdicts_of(record: PhasesRecord) -> list[Verdict]:
    """Those of the whole, then each check of the phases once for each level, with the phases that it is about."""
    found: dict[tuple[str, str], tuple[Verdict, list[str]]] = {}
    for run in record.runs:
        for verdict in run.verdicts:
            _, names = found.setdefault((verdict.check, verdict.level), (verdict, []))
            if run.workload.name not in names:
                names.append(run.workload.name)
    merged = [replace(verdict, check=f"{', '.join(names)}: {verdict.check}") for verdict, names in found.values()]
    return [*record.verdicts, *merged]
