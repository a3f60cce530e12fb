"""hddtest's series: the throughput of each second."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base.numbers import plain
from spindle.report.terminal import throughput
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.figures import Interval
from spindle.result.record import RunRecord

MOST_ROWS = 60
"""Most rows; a longer series is shown in longer intervals."""


def page(record: RunRecord, style: Style) -> list[str]:
    """Return a row for each second (or a few, in a long run), then the total."""
    series = record.figures.series
    together = -(-len(series) // MOST_ROWS) if series else 1
    rows = [_row(series[at : at + together]) for at in range(0, len(series), together)]
    writes = any(float(row[3]) or float(row[4]) for row in rows)
    reads = any(float(row[1]) or float(row[2]) for row in rows)
    heads = ["second", "read MB/s", "IOPS", "write MB/s", "IOPS", "max ms"]
    kept = [at for at in range(6) if at in (0, 5) or (at in (1, 2) and reads) or (at in (3, 4) and writes)]
    lines = table([Column(heads[at]) for at in kept], [[row[at] for at in kept] for row in rows], style)
    return [*lines, "", *throughput.page(record, style)]


def _row(intervals: Sequence[Interval]) -> list[str]:
    seconds = sum(interval.length_ns for interval in intervals) / 1e9 or 1.0
    streams = [stream for interval in intervals for stream in interval.streams]
    worst = max((stream.max_latency_ns for stream in streams), default=0)
    return [
        plain((intervals[-1].start_ns + intervals[-1].length_ns) / 1e9),
        plain(sum(stream.read_bytes for stream in streams) / seconds / 1e6),
        plain(sum(stream.reads for stream in streams) / seconds),
        plain(sum(stream.write_bytes for stream in streams) / seconds / 1e6),
        plain(sum(stream.writes for stream in streams) / seconds),
        plain(worst / 1e6),
    ]
