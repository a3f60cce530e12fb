"""iozone's table: KiB/s for each file and record size, a column for each kind of access.

Phases of an iozone workload have their columns by their names. Other runs have one if a stream only reads or writes:
they begin with an empty page cache, so they are neither rereads nor rewrites. Sizes are in KiB, as in iozone; the file
size is that of all files of a stream together.
"""

from __future__ import annotations

from collections.abc import Sequence

from spindle.report.terminal.style import Style
from spindle.result.record import PhasesRecord, RunRecord
from spindle.result.workload import Backward, FixedSize, Sequential, Strided, WorkloadStream

COLUMNS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "stride-read",
)
_HEAD = (
    f"{'random':>{20 + 5 * 10}}{'random':>10}{'bkwd':>10}{'stride':>10}",
    f"{'kB':>12}{'reclen':>8}" + "".join(f"{name:>10}" for name in ("write", "rewrite", "read", "reread"))
    + "".join(f"{name:>10}" for name in ("read", "write", "read", "read")),
)  # fmt: skip


def page(runs: Sequence[RunRecord]) -> list[str]:
    """Return a row for each size of target and request; of several runs of one kind, the last."""
    rows: dict[tuple[int, int], dict[str, float]] = {}
    for run in runs:
        for spec, stream in zip(run.workload.streams, run.figures.streams, strict=False):
            column = _column(run.workload.name, spec)
            if column is not None and isinstance(spec.size, FixedSize):
                row = rows.setdefault((run.target.size_bytes, spec.size.bytes), {})
                row[column] = stream.bytes_per_s / 1024
    lines = list(_HEAD) if rows else ["no stream reads alone or writes alone, with one record size"]
    for (size, record), found in sorted(rows.items()):
        cells = "".join(f"{f'{found[name]:.0f}' if name in found else '':>10}" for name in COLUMNS)
        lines.append(f"{size >> 10:>12}{record / 1024:>8g}{cells}".rstrip())
    return lines


def phases_page(record: PhasesRecord, _style: Style) -> list[str]:
    """Return the table of the phases of an iozone workload."""
    return page(record.runs)


def _column(name: str, stream: WorkloadStream) -> str | None:
    kind = name.rpartition("_")[2]
    if kind in COLUMNS:
        return kind
    share = stream.mix.of_calls
    if share not in (0.0, 1.0) or not stream.only_data:
        return None
    if isinstance(stream.pattern, Sequential):
        return "write" if share else "read"
    if isinstance(stream.pattern, Strided | Backward):
        return None if share else "stride-read" if isinstance(stream.pattern, Strided) else "backward-read"
    return "random-write" if share else "random-read"
