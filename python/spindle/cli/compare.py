"""`spindle compare`: alternatives against each other."""

from __future__ import annotations

import sys

import click

from spindle.cli.alternatives import across_time_option, invalid_option, metric_option, share
from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.storing import store_option


@click.command("compare")
@click.argument("selections", nargs=-1, required=True, metavar="A [B]...")
@metric_option
@click.option("--by", multiple=True, metavar="FACTOR", help="One campaign: tell its trials apart by this factor alone.")
@click.option("--percentiles", is_flag=True, help="Compare the whole latency distributions as well.")
@click.option(
    "--confidence",
    default="95%",
    show_default=True,
    callback=share(0.5, 1),
    metavar="SHARE",
    help="Of all statements taken together.",
)
@click.option(
    "--apart",
    default="5%",
    show_default=True,
    callback=share(0, 10),
    metavar="SHARE",
    help="How many trials would tell this difference?",
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
    """Compare B, C ... with A: by how much they differ, how sure that is, and how many trials would tell more.

    Each is a saved result (FILE.json), a run in the store, tag:NAME, campaign:NAME or campaign:NAME/factor=level. A
    campaign alone is compared within itself: which of its cells is the best, and what each factor does.
    """
    from spindle.cli.alternatives import believable, cells_of, opened, plan_levels, sides_of, trouble
    from spindle.report.compare import encode, page
    from spindle.report.style import style_of
    from spindle.run.errors import Usage
    from spindle.stats.study import study

    with opened(where, selections) as store:
        sides = sides_of(store, selections, metrics)
        troubled = trouble(store, selections, sides)
        if len(sides) == 1:
            sides = cells_of(sides[0], by, plan_levels(store, selections[0]))
            if len(sides) == 1:
                raise Usage(f"{selections[0]}: one alternative alone; name another to compare it with")
        elif by:
            raise Usage("--by: tells the trials of one campaign apart; give one selection, or leave it out")
        kept, notes = believable(sides, with_invalid)
        found = study(
            kept,
            metrics,
            confidence=confidence,
            apart=apart,
            power=power,
            across_time=across_time,
            percentiles=percentiles,
            cells=len(selections) == 1,
            notes=[*troubled, *notes],
        )
    if json:
        sys.stdout.write(encode(found))
    else:
        for line in page(found, style_of(sys.stdout)):
            print(line)
    return Exit.FINE
