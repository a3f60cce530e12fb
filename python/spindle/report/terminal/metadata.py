"""Metadata operations: rate, latency, and the time of the flush at the end."""

from __future__ import annotations

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import PhasesRecord, RunRecord
from spindle.result.workload import FixedSize, Names

COLUMNS = [
    Column("phase", words=True),
    Column("operation", words=True),
    Column("order", words=True),
    Column("names"),
    Column("ops/s"),
    Column("mean us"),
    Column("p99 us"),
    Column("worst ms"),
    Column("sync s"),
    Column("s"),
    Column("CPU %"),
    Column("verdict", words=True),
]


def phases(record: PhasesRecord, style: Style) -> list[str]:
    """Return a row for each stream of each phase."""
    return _page(record.runs, style)


def page(record: RunRecord, style: Style) -> list[str]:
    """Return the table of a single load."""
    return _page([record], style)


def _page(runs: list[RunRecord], style: Style) -> list[str]:
    found = [row for run in runs for row in _rows(run)]
    return [*style.wrap(_subject(runs)), "", *table(COLUMNS, found, style)]


def _subject(runs: list[RunRecord]) -> str:
    """Return the trees and the state of the caches."""
    trees: dict[str, str] = {}
    workers = set()
    for run in runs:
        for stream in run.workload.streams:
            if stream.names is not None:
                trees.setdefault(stream.names.tree.name, _tree(stream.names))
                workers.add(stream.outstanding)
    cold = {run.preparation is not None and run.preparation.dropped_caches for run in runs}
    caches = {
        frozenset({True}): "cold: the kernel's caches were dropped before each phase",
        frozenset({False}): "names stay in the kernel's caches from phase to phase",
    }.get(frozenset(cold), "some phases cold, some not")
    threads = "/".join(str(count) for count in sorted(workers))
    return f"{'; '.join(trees.values())}; {threads} thread{'s' if threads != '1' else ''}; {caches}"


def _tree(names: Names) -> str:
    tree = names.tree
    own = " for each worker" if tree.each == "worker" else ""
    match tree.size:
        case None:
            content = "empty files"
        case FixedSize(bytes=size):
            content = f"files of {units.size(size)}"
        case _:
            content = "files of several sizes"
    directories = "one directory" if tree.directories == 1 else f"{units.count(tree.directories)} directories"
    return f"{units.count(tree.files)} {content} in {directories}{own}"


def _rows(run: RunRecord) -> list[list[str]]:
    figures = run.figures
    seconds = figures.elapsed_ns / 1e9
    cpu = 100 * (figures.cpu.user_ns + figures.cpu.system_ns) / max(1, figures.elapsed_ns)
    found: list[list[str]] = []
    for spec, stream in zip(run.workload.streams, figures.streams, strict=True):
        sync = stream.fsync
        if not stream.requests:
            found.append(_nothing(run, stream.name, seconds))
        for name, op in stream.ops():
            p99 = op.latency.percentile(99.0)
            first = not found
            found.append(
                [
                    run.workload.name if first else "",
                    name if len(figures.streams) == 1 else f"{stream.name} {name}",
                    spec.names.order if spec.names is not None else "",
                    units.count(op.requests),
                    units.count(op.iops) if op.iops >= 100 else plain(op.iops),
                    plain(op.latency.mean_ns / 1e3),
                    "" if p99 is None else plain(p99 / 1e3),
                    plain(op.latency.max_ns / 1e6),
                    "" if sync is None else plain(sync.latency.mean_ns * sync.requests / 1e9),
                    plain(seconds) if first else "",
                    plain(cpu) if first else "",
                    str(run.level) if first else "",
                ]
            )
    return found


def _nothing(run: RunRecord, stream: str, seconds: float) -> list[str]:
    """Return the row of a stream that completed no operation."""
    name = "-" if len(run.figures.streams) == 1 else f"{stream} -"
    return [run.workload.name, name, "", "0", "0", "", "", "", "", plain(seconds), "", str(run.level)]
