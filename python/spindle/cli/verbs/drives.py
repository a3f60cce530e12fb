"""`spindle drives`: the catalogue of modelled drives."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.showing import show as put
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.group("drives", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> Exit | None:
    """List the drives that modelled machines can use; `show` draws the curves of one, `prices` prints an example of a
    file of prices."""
    if context.invoked_subcommand is not None:
        return None
    from spindle.report.terminal.drive import catalogue
    from spindle.report.terminal.style import style_of

    for line in catalogue(style_of(sys.stdout)):
        print(line)
    return Exit.FINE


@command.command("show", cls=WritingCommand)
@click.argument("name")
@click.option(
    "--chart",
    cls=OutputOption,
    kind="chart",
    help="Draw the curves to a PNG or SVG file.",
)
@json_option
def show(name: str, chart: Output | None, json: bool) -> Exit:
    """Show drive NAME: seek curve, transfer rate over the address space, IOPS by request size and queue depth, and the
    source of each number of its data sheet."""
    import spindle

    drive = spindle.drive(name)
    if chart is not None:
        from spindle.report.terminal import chart as charts
        from spindle.report.terminal.drive import curves

        charts.save(charts.picture(f"{drive.name}: {drive.title}", curves(drive)), chart)
    return put(drive, json)


@command.command("prices")
def prices() -> Exit:
    """Print an example of a file of prices. It is CSV with the columns model, price and currency; the figures are no
    current prices, replace them with your own."""
    from spindle import _core

    print(_core.example_prices(), end="")
    return Exit.FINE
