"""A sweep for the knee: its steps, the plot, and the knee."""

from __future__ import annotations

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal import plot
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import Knee


def page(sweep: Knee, style: Style) -> list[str]:
    """Return table, plot and a sentence."""
    columns = [Column(head) for head in ("outstanding", "IOPS", "MB/s", "mean ms", "p99 ms")] + [Column("", words=True)]
    rows = [
        [
            str(point.outstanding),
            plain(point.iops),
            plain(point.bytes_per_s / 1e6),
            plain(point.mean_latency_ns / 1e6),
            "" if point.p99_latency_ns is None else plain(point.p99_latency_ns / 1e6),
            "<- knee" if point.outstanding == sweep.knee else "",
        ]
        for point in sweep.points
    ]
    drawn = plot.page(sweep, style)
    return [*table(columns, rows, style), *([""] if drawn else []), *drawn, "", *style.wrap(sentence(sweep))]


def sentence(sweep: Knee) -> str:
    """Say where the knee is."""
    at = next((point for point in sweep.points if point.outstanding == sweep.knee), None)
    if at is None:
        return "No knee: nothing was measured."
    most = max(point.bytes_per_s for point in sweep.points)
    reached = f"{units.count(at.iops)} IOPS at {units.duration(at.mean_latency_ns)}"
    if not sweep.levelled_off:  # nothing is known beyond: an interval would end too early
        return f"Throughput still grew at the last step: the knee is at {at.outstanding} ({reached}) or beyond."
    share = f"{units.percent(at.bytes_per_s / most)} of the highest throughput" if at.bytes_per_s < most else "the most"
    return f"The knee is at {at.outstanding} outstanding: {reached}, {share}; more only adds latency{_between(sweep)}."


def _between(sweep: Knee) -> str:
    """Return the interval of the knee, in brackets."""
    if sweep.knee_range is None:
        return " (no interval: its steps are too short to estimate their scatter)"
    low, high = sweep.knee_range
    return f" (95 % interval: {low})" if low == high else f" (95 % interval: {low} to {high})"
