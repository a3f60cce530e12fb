"""The figures of a served drive, for a terminal."""

from __future__ import annotations

from spindle.report.terminal.style import Style
from spindle.serve.figures import ServeFigures


def page(figures: ServeFigures, _style: Style) -> list[str]:
    """The lines of a summary."""
    counts, seconds = figures.counts, figures.elapsed_ns / 1e9
    lines = [
        f"{figures.model}: served for {seconds:.1f} s to {figures.clients} clients, {figures.cpu_s:.1f} s of CPU time",
        f"requests     {counts.reads} reads ({counts.read_bytes} bytes), {counts.writes} writes "
        f"({counts.written_bytes} bytes), {counts.flushes} flushes, {counts.discards} discards, "
        f"{counts.write_zeroes} writes of zeros",
    ]
    if figures.lateness is not None:
        late = figures.lateness
        lines.append(
            f"completions  late by {late.p50_ns / 1e3:.1f} us (p50), {late.p99_ns / 1e3:.1f} us (p99), "
            f"{late.max_ns / 1e3:.1f} us at most"
        )
    if figures.problem is not None:
        lines.append(f"dropped      {figures.dropped} clients that broke the protocol; the last: {figures.problem}")
    return lines
