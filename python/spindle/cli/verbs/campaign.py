"""`spindle campaign`: compare alternatives by many trials in random order; can be resumed at any time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spindle.base.words import listed
from spindle.cli.exits import Exit, failed
from spindle.cli.options.alternatives import metric_names
from spindle.cli.options.storing import opened
from spindle.cli.options.trials import carrying_out_anywhere, crew_of, run_options_of, store_option
from spindle.cli.output import json_option
from spindle.cli.showing import show as put

if TYPE_CHECKING:
    from spindle.campaign.execution import CheckedPlan
    from spindle.fleet.crew import HostCrew
    from spindle.library.campaigns import Start
    from spindle.library.stores import Store
    from spindle.store import Campaign


@click.group("campaign")
def command() -> None:
    """Compare alternatives: a plan of factors, run in random blocks, every trial stored.

    After a stop, a kill or a power loss, `spindle campaign resume` continues.
    """


@command.command("run")
@click.argument("plan", metavar="PLAN|PRESET")
@click.option("--target", metavar="TARGET", help="A device, a file, or a modelled machine; replaces the plan's.")
@click.option("--load", metavar="COMMAND", help="Use a command as the load; alternatives are switched while it runs.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change the plan. May be repeated.")
@click.option("--name", help="Name of the campaign; default: the plan's.")
@click.option(
    "--dry-run", is_flag=True, help="Show cells, trials, order, time and the changes to settings; do nothing."
)
@store_option
@carrying_out_anywhere
@json_option
def run(
    plan: str,
    target: str | None,
    load: str | None,
    assignments: tuple[str, ...],
    name: str | None,
    dry_run: bool,
    store: str | None,
    json: bool,
    **values: Any,
) -> Exit:
    """Run PLAN, a TOML file or a preset (`spindle campaign presets`).

    --set changes any key of it: `trials.count=5`, `options.seconds=10`; short forms: a factor's name for its levels
    (`chunk=64KiB,1MiB`), a workload key (`size=4KiB`), `trials=5`.
    """
    from spindle.library.campaigns import beginning, planned, previewed

    crew = crew_of(values)
    ready = planned(plan, target, load, assignments, crew)
    if dry_run:
        put(previewed(ready), json)
        return Exit.FINE
    with opened(store) as kept:
        return _show(_carried_out(ready, kept, beginning(ready, kept.raw, name), values, crew), kept, None, json)


@command.command("resume")
@click.argument("campaign", required=False)
@store_option
@carrying_out_anywhere
@json_option
def resume(campaign: str | None, store: str | None, json: bool, **values: Any) -> Exit:
    """Continue CAMPAIGN, a name or an ID; without it the last one that is not done.

    Consent to overwrite a device is not stored: give --erase again; --hosts too.
    """
    from spindle.library.campaigns import resuming, to_resume

    crew = crew_of(values)
    with opened(store, create=False) as kept:
        found, ready = to_resume(campaign, kept.raw, crew)
        if found.state == "done":
            print(f"spindle: campaign {found.name} is done", file=sys.stderr)
        else:
            found = _carried_out(ready, kept, resuming(found), values, crew)
        return _show(found, kept, None, json)


def _carried_out(
    ready: CheckedPlan, store: Store, start: Start, values: dict[str, Any], crew: HostCrew | None
) -> Campaign:
    """Run the campaign that `start` stores or finds."""
    from spindle.cli.session import session
    from spindle.library.campaigns import carried_out

    quiet = values.pop("quiet")
    means = run_options_of(values, crew)
    with session(quiet) as watch:
        return carried_out(ready, store.raw, start, means, watch)


def _show(campaign: Campaign, store: Store, metric: str | None, json: bool) -> Exit:
    from spindle.library.campaigns import result_of

    result = result_of(campaign, store.raw, metric)
    put(result, json)
    found = result.outcome
    if result.lost:
        name, lost = max(result.lost.items(), key=lambda one: int(one[1]["status"]))
        failed(f"campaign {campaign.name}: lost {listed(list(result.lost)[:8])}; {name}: {lost['reason']}")
        return Exit(lost["status"])
    if found.given_up:
        tried = found.done + found.planned + found.given_up
        return failed(f"campaign {campaign.name}: {found.given_up} of {tried} trials were given up")
    return Exit.FINE


@command.command("show")
@click.argument("campaign", required=False)
@click.option(
    "--metric",
    metavar="NAME",
    shell_complete=metric_names,
    help="Metric instead of the plan's: iops, read.p99_ns, device.r_await ... (`spindle metrics` lists them).",
)
@store_option
@json_option
def show(campaign: str | None, metric: str | None, store: str | None, json: bool) -> Exit:
    """Show the results of CAMPAIGN so far; without it of the last one."""
    from spindle.library.campaigns import named

    with opened(store, read_only=True) as kept:
        return _show(named(campaign, kept.raw), kept, metric, json)


@command.command("ls")
@store_option
@json_option
def list_(store: str | None, json: bool) -> Exit:
    """List the campaigns of the store."""
    from spindle.library.campaigns import CampaignList

    with opened(store, read_only=True) as kept:
        put(CampaignList(kept.campaigns), json)
    return Exit.FINE


@command.command("presets")
@click.argument("name", required=False)
@json_option
def presets(name: str | None, json: bool) -> Exit:
    """List the plans that come with the program, or print one."""
    from spindle.library.campaigns import plan_preset, plan_presets

    put(plan_preset(name) if name is not None else plan_presets(), json)
    return Exit.FINE
