"""`spindle validate rebuild`."""

from __future__ import annotations

import sys

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put


@click.command("rebuild")
@click.option("--only", metavar="TEXT", default="", help="Only points whose name contains TEXT.")
@json_option
def rebuild(only: str, json: bool) -> Exit:
    """Compare a member's rebuild beside a load in the simulator and under the real kernel: its time, and what the load
    loses.

    Some 15 CPU minutes. Exit status 1 if the goal is missed.
    """
    from spindle.library.validation import validate_rebuild
    from spindle.report.terminal.rebuilds import rebuilds_page

    compared = validate_rebuild(only, say=lambda text: print(text, file=sys.stderr))
    put(compared, rebuilds_page(compared), json)
    if not compared.reaches_goal:
        return failed("the goal is missed")
    return Exit.FINE
