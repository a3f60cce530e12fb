"""`spindle validate grid`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output
    from spindle.validation.grid.grids import GridName


@click.command("grid", cls=WritingCommand)
@click.option("--buffered", is_flag=True, help="I/O through the page cache and file systems instead of direct I/O.")
@click.option("--bitmaps", is_flag=True, help="Writes to arrays with a write-intent bitmap and without one.")
@click.option("--only", metavar="TEXT", default="", help="Only points whose name contains TEXT.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Other points of the same kind, which follow from this number.",
)
@click.option("--chart", cls=OutputOption, kind="chart", help="Draw the differences to a PNG, SVG or HTML file.")
@json_option
def grid(buffered: bool, bitmaps: bool, only: str, seed: int | None, chart: Output | None, json: bool) -> Exit:
    """Compare the simulator with the real kernel in the lab: the same machines and loads both ways (`make lab-grid`,
    `make lab-grid-buffered`, `make lab-grid-bitmaps`).

    Some 4 CPU minutes, 6 with --buffered, 7 with --bitmaps. Exit status 1 if a goal is missed.
    """
    from spindle.library.plot import ending_of
    from spindle.library.validation import validate_grid
    from spindle.report.terminal.grid import grid_page

    if chart is not None:
        ending_of(chart)
    if buffered and bitmaps:
        raise click.UsageError("--buffered and --bitmaps are two grids; choose one")
    which: GridName = "buffered" if buffered else "bitmaps" if bitmaps else "direct"
    compared = validate_grid(only, grid=which, seed=seed, say=lambda text: print(text, file=sys.stderr))
    put(compared, grid_page(compared), json)
    if chart is not None:
        from spindle.library.validation import grid_plot

        grid_plot(compared).write(chart)
    if not compared.reaches_goals:
        return failed("a goal is missed")
    return Exit.FINE
