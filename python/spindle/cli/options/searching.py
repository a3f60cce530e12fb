"""Options that turn one run into many: the knee, the latency search, the open-loop curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added
from spindle.cli.options.keys import KEY_PREFIX

if TYPE_CHECKING:
    from spindle.run.searching import Search

SPACING = f"{KEY_PREFIX}spacing"
_OPTIONS = (
    click.option(
        "--find-knee", is_flag=True, help="Double the concurrency until throughput stops growing, and plot it."
    ),
    click.option(
        "--latency-target",
        multiple=True,
        metavar="[OPERATION:]FIGURE:TIME",
        help="Find the highest throughput within this latency: p99:5ms, read:p99.9:20ms, fsync:mean:2ms, max:1s. "
        "Several: all must be met.",
    ),
    click.option(
        "--search",
        type=click.Choice(["depth", "rate"]),
        help="Vary this for a latency target: requests outstanding (closed loop, default) or their rate (open loop).",
    ),
    click.option(
        "--curve",
        is_flag=True,
        help="Plot latency over throughput in open loop, from 10 % of the maximum until saturated.",
    ),
    click.option("--rates", metavar="LIST", help="Rates of the curve, requests a second: 500,1000,2k."),
)


def search_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the search options to a verb."""
    return added(command, _OPTIONS)


def search_of(values: dict[str, Any]) -> Search | None:
    """Take the search options out of a verb's values. Raises Usage."""
    knee, bounds = values.pop("find_knee"), values.pop("latency_target")
    variable, curve, rates = values.pop("search"), values.pop("curve"), values.pop("rates")
    if not (knee or bounds or curve or rates or variable):
        return None
    from spindle.library import options

    # The workload has no rate yet for the spacing.
    spacing = values.pop(SPACING, None) if curve or rates or variable == "rate" else None
    return options.search_of(
        find_knee=knee, latency_target=bounds, search=variable, curve=curve, rates=rates, spacing=spacing
    )
