"""`spindle presets`: the workloads that come with the program."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option


@click.command("presets")
@click.argument("name", required=False)
@json_option
def command(name: str | None, json: bool) -> Exit:
    """List the presets, or print preset NAME as a workload file to start from; with --json, resolved."""
    from spindle.report.terminal.presets import listing, one

    for line in listing(json) if name is None else one(name, json):
        print(line)
    return Exit.FINE
