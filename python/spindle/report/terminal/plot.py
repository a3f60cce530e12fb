"""Throughput against latency in the terminal: one mark per run, latency logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spindle.base import units
from spindle.report.terminal.style import Style
from spindle.result.record import Knee

HEIGHT = 12
WIDEST = 78
LEAST = 40
"""Narrowest useful plot."""
MARGIN = 10


@dataclass(frozen=True)
class Mark:
    """One run."""

    iops: float
    latency_ns: float
    label: str
    """Its first character is at the point."""


def page(sweep: Knee, style: Style) -> list[str]:
    """Plot a sweep: each mark is labelled with its outstanding requests."""
    marks = [
        Mark(
            point.iops,
            point.mean_latency_ns,
            f"{'#' if point.outstanding == sweep.knee else 'o'}{point.outstanding}",
        )
        for point in sweep.points
        if point.mean_latency_ns > 0 and point.bytes_per_s > 0
    ]
    return drawn(marks, style, "mean latency", "o outstanding requests, # the knee")


def drawn(marks: Sequence[Mark], style: Style, title: str, legend: str) -> list[str]:
    """Plot latency upwards (logarithmic) and throughput to the right. Nothing if there is nothing to see."""
    marks = [mark for mark in marks if mark.latency_ns > 0 and mark.iops > 0]
    width = min(style.width or WIDEST, WIDEST)
    if len(marks) < 2 or width < LEAST:
        return []
    inner = width - MARGIN - 6
    low = math.log(min(mark.latency_ns for mark in marks))
    high = math.log(max(mark.latency_ns for mark in marks))
    most = max(mark.iops for mark in marks)
    grid = [[" "] * (inner + 6) for _ in range(HEIGHT)]
    for mark in marks:
        column = round(mark.iops / most * (inner - 1))
        share = (math.log(mark.latency_ns) - low) / (high - low) if high > low else 0.5
        row = HEIGHT - 1 - round(share * (HEIGHT - 1))
        for shift, char in enumerate(mark.label):
            if column + shift < len(grid[row]) and (shift == 0 or grid[row][column + shift] == " "):
                grid[row][column + shift] = char
    lines = [title]
    for at, cells in enumerate(grid):
        share = (HEIGHT - 1 - at) / (HEIGHT - 1)
        tick = units.duration(math.exp(low + share * (high - low))) if at % 4 == 0 or at == HEIGHT - 1 else ""
        lines.append(f"{tick.rjust(MARGIN - 2)} |{''.join(cells)}".rstrip())
    end = f"{units.count(most)} IOPS"
    lines.append(f"{' ' * (MARGIN - 1)}+{'-' * inner}")
    lines.append(f"{' ' * MARGIN}0{end.rjust(inner - 1)}")
    lines.append(f"{' ' * MARGIN}{legend}")
    return lines
