"""`spindle metrics`: list the metrics."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option


@click.command("metrics")
@json_option
def command(json: bool) -> Exit:
    """List the metrics of `compare`, `check` and plans: name, unit, better direction, meaning, and the results that
    have it. OPERATION stands for read, write, trim, zero, fsync, create and so on, pN for p50, p99, p99.9 and so on,
    D for r, w and d. One stream or phase of several: STREAM/iops."""
    from spindle.report.terminal.registries import metrics

    for line in metrics(json):
        print(line)
    return Exit.FINE
