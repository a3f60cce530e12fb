"""`spindle validate`: compare the models with measurements of real storage."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put
from spindle.cli.verbs.validate_drives import drives
from spindle.cli.verbs.validate_grid import grid
from spindle.cli.verbs.validate_kernel import kernel
from spindle.cli.verbs.validate_published import published
from spindle.cli.verbs.validate_rebuild import rebuild


@click.group("validate")
def command() -> None:
    """Compare the models with data of real arrays and drives; exit status 1 if they differ."""


@command.command("maps")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@json_option
def maps(directory: str, json: bool) -> Exit:
    """Compare address maps with block lists of real md arrays: every block, copy, parity and size."""
    from spindle.report.terminal.maps import maps_page, maps_report

    report = maps_report(directory)
    put(report, maps_page(report), json)
    if report.mismatches:
        return failed(f"{directory}: {report.mismatches} of {report.arrays} arrays differ from the map")
    return Exit.FINE


command.add_command(drives)
command.add_command(grid)
command.add_command(kernel)
command.add_command(published)
command.add_command(rebuild)
