"""`spindle check`: detect regressions, for continuous integration."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.alternatives import across_time_option, invalid_option, metric_option, share
from spindle.cli.options.storing import store_option
from spindle.cli.output import json_option
from spindle.cli.showing import show


@click.command("check")
@click.argument("selection")
@click.option("--baseline", required=True, metavar="TAG", help="Compare with this tag or selection.")
@click.option(
    "--threshold",
    default="5%",
    show_default=True,
    callback=share(0, 1, inclusive=True),
    metavar="SHARE",
    help="Accept a loss up to this.",
)
@metric_option
@click.option(
    "--confidence", default="95%", show_default=True, callback=share(0.5, 1), metavar="SHARE",
    help="Confidence level, for all metrics together.",
)  # fmt: skip
@click.option("--fail-unclear", is_flag=True, help="Exit with 1 as well if the runs cannot decide; for CI.")
@across_time_option
@invalid_option
@store_option
@json_option
def command(
    selection: str,
    baseline: str,
    threshold: float,
    metrics: tuple[str, ...],
    confidence: float,
    fail_unclear: bool,
    across_time: bool,
    with_invalid: bool,
    where: str | None,
    json: bool,
) -> Exit:
    """Exit with 1 if SELECTION is significantly worse than the baseline by more than the threshold, else with 0.

    A selection is a saved result (FILE.json), a run in the store, tag:NAME or campaign:NAME[/factor=level].
    """
    from spindle.cli.options.alternatives import selections
    from spindle.library.checking import tagged, tested

    with selections(where, [tagged(baseline), selection]) as both:
        found = tested(both, metrics, threshold, confidence, across_time, with_invalid)
    show(found, json)
    if found or (fail_unclear and found.outcome != "fine"):
        gate, worst = found.gate, found.worst
        return failed(f"{gate.now} against {gate.baseline}: {worst.metric}: {found.outcome}: {worst.words}")
    return Exit.FINE
