"""`spindle metrics`: the metrics that there are."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option


@click.command("metrics")
@json_option
def command(json: bool) -> Exit:
    """List the metrics that `compare`, `check` and plans know: name, unit, better direction, meaning, and which results
    have it. OPERATION stands for read, write, trim, zero, fsync, create and so on, pN for p50, p99, p99.9 and so on,
    D for r, w and d. One stream or phase of several: STREAM/iops."""
    from spindle.report.registries import metrics

    for line in metrics(json):
        print(line)
    return Exit.FINE
