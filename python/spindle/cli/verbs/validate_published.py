"""`spindle validate published`."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put


@click.command("published")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@json_option
def published(directory: str, json: bool) -> Exit:
    """Predict published measurements of real arrays: the tables of DIR (`spindle help validation`).

    Exit status 1 if a goal is missed.
    """
    from spindle.library.validation import validate_published
    from spindle.report.terminal.published import published_page

    compared = validate_published(directory)
    put(compared, published_page(compared), json)
    missed = sum(not goal.is_reached for goal in compared.goals)
    if missed:
        return failed(f"{directory}: {missed} of {len(compared.goals)} goals are missed")
    return Exit.FINE
