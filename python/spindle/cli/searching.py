"""Options that make many runs of one: the knee, a bound on latency, the open-loop curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.keys import KEY_PREFIX

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
        help="Find the highest throughput at which this holds: p99:5ms, read:p99.9:20ms, fsync:mean:2ms, max:1s. "
        "Several: all must hold.",
    ),
    click.option(
        "--search",
        type=click.Choice(["depth", "rate"]),
        help="What a latency target varies: requests outstanding (closed loop, default), or their rate (open loop).",
    ),
    click.option(
        "--curve",
        is_flag=True,
        help="Latency over throughput in open loop, from 10 % of the most until saturated.",
    ),
    click.option("--rates", metavar="LIST", help="Rates of the curve, requests a second: 500,1000,2k."),
)


def search_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def search_of(values: dict[str, Any]) -> Search | None:
    """Takes what was given out of a verb's values. Raises Usage."""
    knee, bounds = values.pop("find_knee"), values.pop("latency_target")
    variable, curve, rates = values.pop("search"), values.pop("curve"), values.pop("rates")
    given = [
        name
        for name, wanted in (("--find-knee", knee), ("--latency-target", bounds), ("--curve", curve or rates))
        if wanted
    ]
    if not given and variable is None:
        return None
    from spindle.run.bounds import parse_bounds
    from spindle.run.curve import parse_rates
    from spindle.run.errors import Usage
    from spindle.run.latency_search import LatencySearch
    from spindle.run.searching import DrawCurve, FindKnee, FindTarget

    if len(given) > 1:
        raise Usage(f"{' and '.join(given)}: each is a search of its own; give one of them")
    if variable is not None and not bounds:
        raise Usage("--search: it says how a latency target is searched for; give --latency-target p99:5ms")
    if knee:
        return FindKnee()
    # The workload itself has no rate yet that the spacing could belong to.
    spacing = values.pop(SPACING, None) if curve or rates or variable == "rate" else None
    if bounds:
        return FindTarget(LatencySearch(tuple(parse_bounds(bounds)), variable or "depth", spacing=spacing))
    return DrawCurve(parse_rates(rates) if rates else (), spacing)
