"""`spindle verdicts`: list the verdicts."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.failure import spelled
from spindle.cli.output import json_option


@click.command("verdicts")
@json_option
def command(json: bool) -> Exit:
    """List the verdicts on results: name and meaning. `spindle help verdicts` has their limits."""
    from spindle.report.terminal.registries import verdicts

    for line in verdicts(json, spelled):
        print(line)
    return Exit.FINE
