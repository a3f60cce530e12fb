"""Latency over throughput in open loop: points, plot, and the start of saturation."""

from __future__ import annotations

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal import plot
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.search import Curve


def page(curve: Curve, style: Style) -> list[str]:
    """Return table, plot and a sentence."""
    columns, rows = table_of(curve)
    marks = [
        plot.Mark(point.iops, float(latency), mark)
        for point in curve.points
        for latency, mark in (
            (point.p50_latency_ns or 0, "+" if point.saturated else "o"),
            (point.p99_latency_ns or 0, "X" if point.saturated else "9"),
        )
    ]
    legend = "o p50, 9 p99; + p50 and X p99 where saturated"
    drawn = plot.drawn(marks, style, "latency from the intended start", legend)
    return [*table(columns, rows, style), *([""] if drawn else []), *drawn, "", *style.wrap(sentence(curve))]


def table_of(curve: Curve) -> tuple[list[Column], list[list[str]]]:
    """Return one row per point."""
    heads = ["offered IOPS", "served IOPS", "MB/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "largest lag ms"]
    rows = [
        [
            plain(point.offered_iops),
            plain(point.iops),
            plain(point.bytes_per_s / 1e6),
            *(
                "" if value is None else plain(value / 1e6)
                for value in (
                    point.mean_latency_ns,
                    point.p50_latency_ns,
                    point.p99_latency_ns,
                    point.p999_latency_ns,
                    point.max_lag_ns,
                )
            ),
            "saturated" if point.saturated else "",
        ]
        for point in curve.points
    ]
    return [*(Column(head) for head in heads), Column("", words=True)], rows


def sentence(curve: Curve) -> str:
    """Say up to which rate requests are served as they come."""
    carried = next((point for point in curve.points if point.offered_iops == curve.sustained_iops), None)
    if not curve.points:
        return "No curve: nothing was measured."
    if carried is None:
        return (
            f"Saturated from the first point on, {units.count(curve.points[0].offered_iops)} requests a second: "
            "the limit is below the curve."
        )
    tail = "" if carried.p99_latency_ns is None else f", p99 {units.duration(carried.p99_latency_ns)}"
    text = f"{units.count(carried.offered_iops)} requests a second are served as they come{tail}"
    if curve.saturated_iops is None:
        return f"{text}; saturation is beyond the curve."
    return (
        f"{text}; {units.count(curve.saturated_iops)} are not: the backlog grows, and latencies there depend on the "
        "length of the run."
    )
