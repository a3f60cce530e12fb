"""iozone's table: KiB/s for each record size, a column for each kind of access.

Rereads and rewrites differ from reads and writes by what a cache holds; Spindle's reads begin with an empty page cache,
so only the first columns are filled. Sizes are in KiB, as iozone prints them.
"""

from __future__ import annotations

from collections.abc import Sequence

from spindle.result.record import RunRecord
from spindle.result.workload import FixedSize, Sequential, Strided, WorkloadStream

COLUMNS = ("write", "rewrite", "read", "reread", "random read", "random write", "stride read")
_HEAD = (
    f"{'random':>{20 + 5 * 10}}{'random':>10}{'stride':>10}",
    f"{'kB':>12}{'reclen':>8}" + "".join(f"{name:>10}" for name in ("write", "rewrite", "read", "reread"))
    + "".join(f"{name:>10}" for name in ("read", "write", "read")),
)  # fmt: skip


def page(runs: Sequence[RunRecord]) -> list[str]:
    """A row for each size of target and request; of several runs of one kind, the last."""
    rows: dict[tuple[int, int], dict[str, float]] = {}
    for run in runs:
        for spec, stream in zip(run.workload.streams, run.figures.streams, strict=False):
            column = _column(spec)
            if column is not None and isinstance(spec.size, FixedSize):
                rows.setdefault((run.target.size_bytes, spec.size.bytes), {})[column] = stream.bytes_per_s / 1024
    lines = list(_HEAD) if rows else ["no stream reads alone or writes alone, with one record size"]
    for (size, record), found in sorted(rows.items()):
        cells = "".join(f"{f'{found[name]:.0f}' if name in found else '':>10}" for name in COLUMNS)
        lines.append(f"{size >> 10:>12}{record / 1024:>8g}{cells}".rstrip())
    return lines


def _column(stream: WorkloadStream) -> str | None:
    share = stream.mix.write
    if share not in (0.0, 1.0):
        return None
    if isinstance(stream.pattern, Sequential):
        return "write" if share else "read"
    if isinstance(stream.pattern, Strided):
        return None if share else "stride read"
    return "random write" if share else "random read"
