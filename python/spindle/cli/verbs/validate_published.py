"""`spindle validate published`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.workers import where_of, worker_options
from spindle.cli.output import json_option
from spindle.cli.showing import put
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("published", cls=WritingCommand)
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--sensitivity", is_flag=True, help="Put each assumed number at both ends of its range: its effect on the errors."
)
@click.option(
    "--chart", cls=OutputOption, kind="chart", help="Draw published against predicted to a PNG, SVG or HTML file."
)
@worker_options
@json_option
def published(directory: str, sensitivity: bool, chart: Output | None, json: bool, **workers: Any) -> Exit:
    """Predict published measurements of real arrays: the tables of DIR (`spindle help validation`).

    `--sensitivity` takes some 20 CPU minutes; `--chart` then draws its bands. Exit status 1 if a goal is missed.
    """
    from spindle.cli.session import live_line
    from spindle.library.plot import ending_of
    from spindle.library.validation import published_plot, validate_published, validate_sensitivity
    from spindle.report.terminal import published as terminal

    if chart is not None:
        ending_of(chart)
    where, progress = where_of(workers), live_line(quiet=False)
    if sensitivity:
        effects = validate_sensitivity(directory, where, progress)
        put(effects, terminal.sensitivity_page(effects), json)
        goals, plotted = effects.goals, partial(published_plot, effects.figures)
    else:
        compared = validate_published(directory, where, progress)
        put(compared, terminal.published_page(compared), json)
        goals, plotted = compared.goals, partial(published_plot, compared.compared)
    if chart is not None:
        plotted().write(chart)
    missed = sum(not goal.is_reached for goal in goals)
    if missed:
        return failed(f"{directory}: {missed} of {len(goals)} goals are missed")
    return Exit.FINE
