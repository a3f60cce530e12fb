"""Throughput against latency in the terminal: one mark a step of the sweep, the knee marked."""

from __future__ import annotations

import math

from spindle.report.style import Style
from spindle.result import units
from spindle.result.record import Knee

HEIGHT = 12
WIDEST = 78
LEAST = 40
"""Below this width a plot says nothing."""
MARGIN = 10


def page(sweep: Knee, style: Style) -> list[str]:
    """Latency upwards (logarithmic), throughput to the right; each mark is labelled with its outstanding requests."""
    points = [point for point in sweep.points if point.mean_latency_ns > 0 and point.bytes_per_s > 0]
    width = min(style.width or WIDEST, WIDEST)
    if len(points) < 2 or width < LEAST:
        return []
    inner = width - MARGIN - 6
    low = math.log(min(point.mean_latency_ns for point in points))
    high = math.log(max(point.mean_latency_ns for point in points))
    most = max(point.iops for point in points)
    grid = [[" "] * (inner + 6) for _ in range(HEIGHT)]
    for point in points:
        column = round(point.iops / most * (inner - 1))
        share = (math.log(point.mean_latency_ns) - low) / (high - low) if high > low else 0.5
        row = HEIGHT - 1 - round(share * (HEIGHT - 1))
        at_knee = point.outstanding == sweep.knee
        label = f"{'#' if at_knee else 'o'}{point.outstanding}"
        for shift, char in enumerate(label):
            if column + shift < len(grid[row]) and (shift == 0 or grid[row][column + shift] == " "):
                grid[row][column + shift] = char
    lines = ["mean latency"]
    for at, cells in enumerate(grid):
        share = (HEIGHT - 1 - at) / (HEIGHT - 1)
        tick = units.duration(math.exp(low + share * (high - low))) if at % 4 == 0 or at == HEIGHT - 1 else ""
        lines.append(f"{tick.rjust(MARGIN - 2)} |{''.join(cells)}".rstrip())
    end = f"{units.count(most)} IOPS"
    lines.append(f"{' ' * (MARGIN - 1)}+{'-' * inner}")
    lines.append(f"{' ' * MARGIN}0{end.rjust(inner - 1)}")
    lines.append(f"{' ' * MARGIN}o outstanding requests, # the knee")
    return lines
