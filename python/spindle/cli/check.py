"""`spindle check`: did anything get worse? For continuous integration."""

from __future__ import annotations

import re
import sys

import click

from spindle.cli.alternatives import across_time_option, invalid_option, metric_option, share
from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.storing import store_option


@click.command("check")
@click.argument("selection")
@click.option("--baseline", required=True, metavar="TAG", help="What to hold it against: a tag, or any selection.")
@click.option(
    "--threshold",
    default="5%",
    show_default=True,
    callback=share(0, 1, inclusive=True),
    metavar="SHARE",
    help="A loss up to this is let pass.",
)
@metric_option
@click.option(
    "--confidence", default="95%", show_default=True, callback=share(0.5, 1), metavar="SHARE",
    help="How sure a loss must be; of all metrics taken together.",
)  # fmt: skip
@click.option("--fail-unclear", is_flag=True, help="Exit with 1 as well where the runs do not tell; for CI.")
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
    """Exit with 1 if SELECTION is worse than the baseline by more than the threshold, beyond chance; else with 0.

    A selection is a saved result (FILE.json), a run in the store, tag:NAME or campaign:NAME[/factor=level].
    """
    from spindle.cli.alternatives import believable, opened, sides_of, trouble
    from spindle.report.check import encode, page
    from spindle.report.style import style_of
    from spindle.stats.gate import gate
    from spindle.stats.study import check_names

    texts = [selection_of(baseline), selection]
    with opened(where, texts) as store:
        sides = sides_of(store, texts, metrics)
        check_names(sides, metrics)
        (before, now), notes = believable(sides, with_invalid)
        notes = [*trouble(store, texts, sides), *notes]
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
        for line in page(found, style_of(sys.stdout)):
            print(line)
    if found.outcome == "lost" or (fail_unclear and found.outcome != "fine"):
        worst = next(check for check in found.checks if check.outcome == found.outcome)
        return failed(f"{found.now} against {found.baseline}: {worst.metric}: {found.outcome}: {worst.words}")
    return Exit.FINE


def selection_of(baseline: str) -> str:
    """A bare name is a tag."""
    from spindle.store.selection import parse

    bare = re.fullmatch(r"[0-9A-Za-z._+-]+", baseline) and not re.match(r"[0-9]{8}T|model-[0-9a-f]+$", baseline)
    return f"tag:{baseline}" if bare and baseline != "last" and parse(baseline).kind == "id" else baseline
