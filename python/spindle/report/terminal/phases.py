"""Phases that ran one after another: a row each, or the usual table of the workload."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from msgspec.structs import replace

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal import metadata, wal
from spindle.report.terminal.shapes import bonnie, iozone
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import PhaseFigures, PhasesRecord, RunRecord, Verdict

SHAPES: dict[str, Callable[[PhasesRecord, Style], list[str]]] = {
    "metadata": metadata.phases,
    "wal": wal.of_phases,
    "bonnie": bonnie.phases_page,
    "iozone": iozone.phases_page,
}
"""Tables of workloads with their own."""
ACROSS = (iozone.phases_page,)
"""Tables with rows for several combinations of varied values."""
MOST_NAMES = 8
"""Most phases named one by one."""
FIRST_NAMES = 2
"""Phases named if there are more."""


def head(record: PhasesRecord, style: Style) -> list[str]:
    """Workload and target."""
    seconds = units.seconds(round(sum(phase.seconds for phase in record.phases), 2))
    return [
        *style.headline(f"{record.workload.name} on {record.target.words}"),
        *style.wrap(f"{_how_many(record)} in {seconds}{_sizes(record)}; seed {record.workload.seed}; {record.id}"),
    ]


def _how_many(record: PhasesRecord) -> str:
    if not record.varied:
        return f"{len(record.phases)} of {len(record.workload.phases)} phases"
    asked = prod(len(variation.values) for variation in record.varied)
    keys = " x ".join(variation.key for variation in record.varied)
    each = f", each of {len(record.workload.phases)} phases" if record.workload.phases else ""
    return f"{len(_combinations(record))} of {asked} combinations of {keys}{each}"


def _sizes(record: PhasesRecord) -> str:
    """Mention the smallest target; the heading has the largest."""
    sizes = {run.target.size_bytes for run in record.runs}
    return f"; the smallest target was {units.size(min(sizes))}" if len(sizes) > 1 else ""


def page(record: PhasesRecord, style: Style) -> list[str]:
    """Return the usual table of the workload."""
    shape = SHAPES.get(record.workload.table) if record.workload.phases else None
    if shape is None:
        return rows(record, style)
    if shape in ACROSS or not record.varied:
        return shape(record, style)
    found: list[str] = []
    for name, part in _combinations(record).items():
        found += ["", *style.headline(name), *shape(part, style)]
    return found[1:]


def _combinations(record: PhasesRecord) -> dict[str, PhasesRecord]:
    """Return the completed part of each combination, by its values."""
    found: dict[str, tuple[list[PhaseFigures], list[RunRecord]]] = {}
    for phase, run in zip(record.phases, record.runs, strict=True):
        name = ", ".join(f"{key} {value}" for key, value in phase.varied.items())
        phases, runs = found.setdefault(name, ([], []))
        phases.append(phase)
        runs.append(run)
    return {name: replace(record, phases=phases, runs=runs) for name, (phases, runs) in found.items()}


def rows(record: PhasesRecord, style: Style) -> list[str]:
    """Return a row for each operation of each phase."""
    columns = [
        *(Column(variation.key) for variation in record.varied),
        *([Column("phase", words=True)] if record.workload.phases else []),  # the name of a single load is redundant
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
    which = [*phase.varied.values(), *([phase.name] if record.workload.phases else [])]
    for at, (name, op) in enumerate(ops):
        first = at == 0
        found.append(
            [
                *(word if first else "" for word in which),
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
    return found or [[*which, "", "", "", "", "", plain(phase.seconds), plain(phase.cpu_percent), str(run.level)]]


def verdicts_of(record: PhasesRecord) -> list[Verdict]:
    """Return the verdicts of the whole, then each check of the phases once for each level, with the names of its phases
    and the evidence of the first."""
    found: dict[tuple[str, str], tuple[Verdict, list[str]]] = {}
    for phase, run in zip(record.phases, record.runs, strict=True):
        name = _name_of(phase, record)
        for verdict in run.verdicts:
            _, names = found.setdefault((verdict.check, verdict.level), (verdict, []))
            if name not in names:
                names.append(name)
    merged = [replace(verdict, check=f"{_listed(names)}: {verdict.check}") for verdict, names in found.values()]
    return [*record.verdicts, *merged]


def _name_of(phase: PhaseFigures, record: PhasesRecord) -> str:
    values = " ".join(f"{key}={value}" for key, value in phase.varied.items())
    return " ".join([*([phase.name] if record.workload.phases else []), *([values] if values else [])])


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:FIRST_NAMES])} and {len(names) - FIRST_NAMES} more"
