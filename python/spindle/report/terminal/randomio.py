"""randomio's table: total, read and write IOPS; latency min, avg, max and sdev in ms, in its own columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spindle.base.numbers import fitting, plain
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.figures import Latency, Op
from spindle.result.record import RunRecord

HEAD = (
    "  total |  read:         latency (ms)       |  write:        latency (ms)",
    "   iops |   iops   min    avg    max   sdev |   iops   min    avg    max   sdev",
    "--------+-----------------------------------+----------------------------------",
)
WIDTH = 79


def page(record: RunRecord, style: Style) -> list[str]:
    """Return the table of one run, all streams together."""
    reads = [stream.read for stream in record.figures.streams if stream.read is not None]
    writes = [stream.write for stream in record.figures.streams if stream.write is not None]
    read, write = _Side(reads), _Side(writes)
    total = f"{record.figures.iops:7.1f}"
    if style.width is not None and style.width < WIDTH:
        columns = [
            Column("", words=True),
            *(Column(head) for head in ("iops", "min ms", "avg ms", "max ms", "sdev ms")),
        ]
        lines = [f"total {total.strip()} iops", *table(columns, [read.row("read"), write.row("write")], style)]
    else:
        lines = [*HEAD, f"{total} |{read.cells()} |{write.cells()}"]
    return [*lines, *_beside(record, style)]


class _Side:
    """Reads or writes of all streams."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.iops = sum(op.iops for op in ops)
        self._all = merged([op.latency for op in ops], [op.requests for op in ops])

    def _ms(self) -> list[float]:
        return [value / 1e6 for value in self._all] if self._all else [0.0] * 4

    def cells(self) -> str:
        low, mean, high, sdev = self._ms()
        return (
            f"{self.iops:7.1f} {fitting(low, 5, 1)} {fitting(mean, 6, 1)} {fitting(high, 6, 1)} {fitting(sdev, 6, 1)}"
        )

    def row(self, name: str) -> list[str]:
        return [name, plain(self.iops), *(plain(value) for value in self._ms())]


def merged(latencies: Sequence[Latency], counts: Sequence[int]) -> tuple[float, float, float, float] | None:
    """Return (min, mean, max, sdev) of several distributions together, ns; exact, from their moments."""
    total = sum(counts)
    if not total:
        return None
    mean = sum(count * latency.mean_ns for latency, count in zip(latencies, counts, strict=True)) / total
    variance = (
        sum(
            count * (latency.sdev_ns * latency.sdev_ns + (latency.mean_ns - mean) * (latency.mean_ns - mean))
            for latency, count in zip(latencies, counts, strict=True)
        )
        / total
    )
    return (
        min(latency.min_ns for latency in latencies),
        mean,
        max(latency.max_ns for latency in latencies),
        math.sqrt(variance),
    )


def _beside(record: RunRecord, style: Style) -> list[str]:
    """Return figures without a column in randomio. It counts an fsync as part of its write; here fsync is separate."""
    streams = record.figures.streams
    lines = []
    for name, ops, note in (
        ("trim", [stream.trim for stream in streams], ""),
        ("zero", [stream.zero for stream in streams], ""),
        ("fsync", [stream.fsync for stream in streams], " (not within the write columns)"),
    ):
        made = [op for op in ops if op is not None]
        found = merged([op.latency for op in made], [op.requests for op in made])
        if found is not None:
            low, mean, high, sdev = (plain(value / 1e6) for value in found)
            rate = plain(sum(op.iops for op in made))
            lines += style.wrap(f"{name}: {rate} a second, {low} / {mean} / {high} / {sdev} ms{note}")
    return lines
