"""`spindle check`: detect regressions, for continuous integration."""

from __future__ import annotations

import re
import sys

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.alternatives import across_time_option, invalid_option, metric_option, share
from spindle.cli.options.storing import store_option
from spindle.cli.output import json_option, put_lines


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
    from spindle.library.comparing import believable, sides_of, trouble
    from spindle.report.terminal.check import encode, page
    from spindle.report.terminal.style import style_of
    from spindle.stats.gate import gate
    from spindle.stats.study import check_names

    with selections(where, [selection_of(baseline), selection]) as both:
        sides = sides_of(both, metrics)
        check_names(sides, metrics)
        (before, now), notes = believable(sides, with_invalid)
        notes = [*trouble(both, sides), *notes]
        found = gate(
            before,
            now,
            metrics,
            threshold=threshold,
            confidence=confidence,
            across_time=across_time,
            notes=notes,
        )
    if json:
        sys.stdout.write(encode(found))
    else:
        put_lines(page(found, style_of(sys.stdout)))
    if found.outcome == "lost" or (fail_unclear and found.outcome != "fine"):
        worst = next(check for check in found.checks if check.outcome == found.outcome)
        return failed(f"{found.now} against {found.baseline}: {worst.metric}: {found.outcome}: {worst.words}")
    return Exit.FINE


def selection_of(baseline: str) -> str:
    """Read a bare name as a tag."""
    from spindle.store.selection import parse

    bare = re.fullmatch(r"[0-9A-Za-z._+-]+", baseline) and not re.match(r"[0-9]{8}T|model-[0-9a-f]+$", baseline)
    return f"tag:{baseline}" if bare and baseline != "last" and parse(baseline).kind == "id" else baseline
