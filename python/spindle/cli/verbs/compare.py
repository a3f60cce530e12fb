"""`spindle compare`: compare alternatives."""

from __future__ import annotations

import sys

import click

from spindle.cli.exits import Exit
from spindle.cli.options.alternatives import across_time_option, invalid_option, metric_option, share
from spindle.cli.options.storing import store_option
from spindle.cli.output import json_option, put_lines


@click.command("compare")
@click.argument("selections", nargs=-1, required=True, metavar="A [B]...")
@metric_option
@click.option("--by", multiple=True, metavar="FACTOR", help="One campaign: group its trials by this factor only.")
@click.option("--percentiles", is_flag=True, help="Compare the whole latency distributions as well.")
@click.option(
    "--confidence",
    default="95%",
    show_default=True,
    callback=share(0.5, 1),
    metavar="SHARE",
    help="Confidence level, for all statements together.",
)
@click.option(
    "--apart",
    default="5%",
    show_default=True,
    callback=share(0, 10),
    metavar="SHARE",
    help="Show the number of trials that would detect this difference ...",
)
@click.option(
    "--power",
    default="90%",
    show_default=True,
    callback=share(0, 1),
    metavar="SHARE",
    help="... with this probability.",
)
@across_time_option
@invalid_option
@store_option
@json_option
def command(
    selections: tuple[str, ...],
    metrics: tuple[str, ...],
    by: tuple[str, ...],
    percentiles: bool,
    confidence: float,
    apart: float,
    power: float,
    across_time: bool,
    with_invalid: bool,
    where: str | None,
    json: bool,
) -> Exit:
    """Compare B, C ... with A: by how much they differ, with confidence intervals, and how many more trials are needed.

    Each is a saved result (FILE.json), a run in the store, tag:NAME, campaign:NAME or campaign:NAME/factor=level. A
    single campaign is compared within itself: which of its cells is best, and the effect of each factor.
    """
    from spindle.cli.options.alternatives import selections as selected
    from spindle.library.comparing import studied
    from spindle.report.terminal.compare import encode, page
    from spindle.report.terminal.style import style_of

    with selected(where, selections) as alternatives:
        found = studied(
            alternatives,
            metrics,
            by=by,
            percentiles=percentiles,
            confidence=confidence,
            apart=apart,
            power=power,
            across_time=across_time,
            with_invalid=with_invalid,
        )
    if json:
        sys.stdout.write(encode(found))
    else:
        put_lines(page(found, style_of(sys.stdout)))
    return Exit.FINE
