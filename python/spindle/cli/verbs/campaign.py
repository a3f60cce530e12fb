"""`spindle campaign`: compare alternatives by many trials in random order; can be resumed at any time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.alternatives import metric_names
from spindle.cli.options.trials import carrying_out, run_options_of, store_option
from spindle.cli.output import json_option, put_lines

if TYPE_CHECKING:
    from spindle.campaign.execution import CheckedPlan
    from spindle.campaign.outcome import Outcome
    from spindle.library.campaigns import Start
    from spindle.store import Campaign, Store


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
@carrying_out
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
    from spindle.library.campaigns import beginning, planned
    from spindle.store import open_store

    ready = planned(plan, target, load, assignments)
    if dry_run:
        return _preview(ready, json)
    with open_store(store) as opened:
        return _carry_out(ready, opened, beginning(ready, opened, name), json, values)


@command.command("resume")
@click.argument("campaign", required=False)
@store_option
@carrying_out
@json_option
def resume(campaign: str | None, store: str | None, json: bool, **values: Any) -> Exit:
    """Continue CAMPAIGN, a name or an ID; without it the last one that is not done.

    Consent to overwrite a device is not stored: give --erase again.
    """
    from spindle.library.campaigns import resuming, to_resume
    from spindle.store import open_store

    with open_store(store) as opened:
        found, ready = to_resume(campaign, opened)
        if found.state == "done":
            print(f"spindle: campaign {found.name} is done", file=sys.stderr)
            return _show(found, opened, None, json)
        return _carry_out(ready, opened, resuming(found), json, values)


def _preview(ready: CheckedPlan, json: bool) -> Exit:
    from spindle.campaign.preview import preview
    from spindle.report.terminal import campaign as report
    from spindle.report.terminal.style import style_of

    found = preview(ready)
    if json:
        print(report.to_json(found.to_dict()))
    else:
        put_lines(report.of_preview(found, style_of(sys.stdout)))
    return Exit.FINE


def _carry_out(ready: CheckedPlan, store: Store, start: Start, json: bool, values: dict[str, Any]) -> Exit:
    """Run the campaign that `start` stores or finds."""
    from spindle.cli.session import session
    from spindle.library.campaigns import carried_out

    quiet = values.pop("quiet")
    means = run_options_of(values)
    with session(quiet) as watch:
        campaign = carried_out(ready, store, start, means, watch)
    return _show(campaign, store, None, json)


def _show(campaign: Campaign, store: Store, metric: str | None, json: bool) -> Exit:
    from spindle.campaign.outcome import outcome_of

    found = outcome_of(campaign, store, metric)
    _print(found, json)
    if found.given_up:
        tried = found.done + found.planned + found.given_up
        return failed(f"campaign {campaign.name}: {found.given_up} of {tried} trials were given up")
    return Exit.FINE


def _print(found: Outcome, json: bool) -> None:
    from spindle.report.terminal import campaign as report
    from spindle.report.terminal.style import style_of

    if json:
        print(report.to_json(found.to_dict()))
    else:
        put_lines(report.of_outcome(found, style_of(sys.stdout)))


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
    from spindle.store import StoreUsage, open_store

    with open_store(store) as opened:
        if campaign is None:
            every = opened.campaigns.all()
            if not every:
                raise StoreUsage("there is no campaign yet; `spindle campaign run PRESET` starts one")
            return _show(every[-1], opened, metric, json)
        return _show(opened.campaigns.get(campaign), opened, metric, json)


@command.command("ls")
@store_option
@json_option
def list_(store: str | None, json: bool) -> Exit:
    """List the campaigns of the store."""
    from spindle.report.terminal import campaign as report
    from spindle.report.terminal.style import style_of
    from spindle.store import open_store

    with open_store(store) as opened:
        rows = []
        for one in opened.campaigns.all():
            trials = opened.campaigns.trials(one.name)
            rows.append((one, sum(trial.state == "done" for trial in trials), len(trials)))
    if json:
        print(
            report.to_json(
                [
                    {
                        "name": one.name,
                        "id": one.id,
                        "created": one.created,
                        "state": one.state,
                        "done": done,
                        "trials": of,
                    }
                    for one, done, of in rows
                ]
            )
        )
        return Exit.FINE
    for line in report.of_list(rows, style_of(sys.stdout)):
        print(line)
    return Exit.FINE


@command.command("presets")
@click.argument("name", required=False)
@json_option
def presets(name: str | None, json: bool) -> Exit:
    """List the plans that come with the program, or print one."""
    from spindle.campaign.source import open_plan, preset_names
    from spindle.report.terminal import campaign as report
    from spindle.report.terminal.style import style_of

    if name is not None:
        plan = open_plan(name)
        print(report.to_json({"name": plan.name, "text": plan.text}) if json else plan.text.rstrip())
        return Exit.FINE
    rows = [(one, open_plan(one).about) for one in preset_names()]
    for line in (
        [report.to_json([{"name": one, "about": about} for one, about in rows])]
        if json
        else report.of_presets(rows, style_of(sys.stdout))
    ):
        print(line)
    return Exit.FINE
