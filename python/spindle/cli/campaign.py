"""`spindle campaign`: alternatives compared by many trials in fair order, resumable at any moment."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.alternatives import metric_names
from spindle.cli.care import care_of, care_options
from spindle.cli.exits import Exit, failed
from spindle.cli.making import making_of, making_options
from spindle.cli.output import json_option
from spindle.cli.targets import TARGET

if TYPE_CHECKING:
    from spindle.campaign.execution import Ready
    from spindle.campaign.outcome import Outcome
    from spindle.run.consent import Consent
    from spindle.store import Campaign, Store


@click.group("campaign")
def command() -> None:
    """Compare alternatives: a plan of factors, tried in random blocks, every trial kept.

    A campaign that was stopped, killed or cut short by a power loss goes on with `spindle campaign resume`.
    """


def _store_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--store",
        metavar="FILE|URL",
        help="Where results are kept; default: $SPINDLE_STORE, or the user's data folder.",
    )(function)


_CARRYING_OUT = (
    click.option("--jobs", type=click.IntRange(1, 1024), default=1, help="Modelled machines: trials at the same time."),
    care_options,
    making_options,
    click.option(
        "--erase", type=TARGET, metavar="DEVICE", help="Write to this block device; the target must be the same device."
    ),
    click.option("--erase-signature", metavar="TYPE", help="Overwrite this signature too; say what was shown: ext4."),
    click.option("--erase-stacked", is_flag=True, help="Write to a device that is built of other devices."),
    click.option("--erase-shared", is_flag=True, help="Write to a partition while others of its disk are in use."),
    click.option("--yes", is_flag=True, help="Do not ask before a device is overwritten."),
    click.option("-q", "--quiet", is_flag=True, help="No progress."),
)


def _carrying_out(function: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(_CARRYING_OUT):
        function = option(function)
    return function


@command.command("run")
@click.argument("plan", metavar="PLAN|PRESET")
@click.option("--target", metavar="TARGET", help="A device, a file, or a modelled machine; goes before the plan's.")
@click.option("--load", metavar="COMMAND", help="A command as the load; alternatives are switched while it runs.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change the plan. May be repeated.")
@click.option("--name", help="Name of the campaign; default: the plan's.")
@click.option("--dry-run", is_flag=True, help="Show cells, trials, order, time and what would be changed; do nothing.")
@_store_option
@_carrying_out
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
    """Carry out PLAN, a TOML file or a preset (`spindle campaign presets`).

    --set changes any key of it: `trials.count=5`, `options.seconds=10`; short forms: a factor's name for its levels
    (`chunk=64KiB,1MiB`), a workload key (`size=4KiB`), `trials=5`.
    """
    from spindle.campaign.execution import begin, checked, made_ready
    from spindle.campaign.source import open_plan
    from spindle.store import open_store

    more = [f"target={target}"] if target is not None else []
    more += [f"load.command={load}"] if load is not None else []
    ready = made_ready(open_plan(plan, [*assignments, *more]))
    if dry_run:
        return _preview(ready, json)
    with open_store(store) as opened:

        def start(consent: Consent) -> tuple[Campaign, Consent]:
            left = checked(ready, consent)  # before it is entered: what is refused has not begun
            return begin(ready, opened, name), left

        return _carry_out(ready, opened, start, json, values)


@command.command("resume")
@click.argument("campaign", required=False)
@_store_option
@_carrying_out
@json_option
def resume(campaign: str | None, store: str | None, json: bool, **values: Any) -> Exit:
    """Go on with CAMPAIGN, a name or an identity; without it with the last one that is not done.

    Consent to overwrite a device is not kept: give --erase again.
    """
    from spindle.campaign.execution import latest, reopened
    from spindle.store import open_store

    with open_store(store) as opened:
        found = opened.campaigns.get(campaign) if campaign is not None else latest(opened)
        ready = reopened(found, opened)
        if found.state == "done":
            print(f"spindle: campaign {found.name} is done", file=sys.stderr)
            return _show(found, opened, None, json)
        return _carry_out(ready, opened, lambda consent: (found, consent), json, values)


def _preview(ready: Ready, json: bool) -> Exit:
    from spindle.campaign.preview import preview
    from spindle.report import campaign as report
    from spindle.report.style import style_of

    found = preview(ready)
    for line in [report.to_json(found.to_dict())] if json else report.of_preview(found, style_of(sys.stdout)):
        print(line)
    return Exit.FINE


def _carry_out(
    ready: Ready,
    store: Store,
    start: Callable[[Consent], tuple[Campaign, Consent]],
    json: bool,
    values: dict[str, Any],
) -> Exit:
    """`start` enters the campaign, or finds it; what is left to be agreed to comes back."""
    from spindle.campaign import execution
    from spindle.cli.consent import ask
    from spindle.cli.session import session
    from spindle.host.signals import Stopped
    from spindle.run.consent import Consent
    from spindle.run.errors import RunFailed

    confirm = None if values.pop("yes") else ask
    asked = Consent(
        values.pop("erase"),
        values.pop("erase_signature"),
        values.pop("erase_stacked"),
        values.pop("erase_shared"),
        confirm,
    )
    jobs, quiet = values.pop("jobs"), values.pop("quiet")
    making, care = making_of(values), care_of(values)
    with session(quiet) as watch:
        campaign, consent = start(asked)
        means = execution.Means(consent=consent, making=making, care=care, jobs=jobs)
        try:
            execution.carry_out(campaign, ready, store, watch, means)
        except Stopped as stopped:
            watch.end()
            trials = store.campaigns.trials(campaign.name)
            done = sum(one.state == "done" for one in trials)
            raise RunFailed(
                f"campaign {campaign.name}: stopped by {stopped} after {done} of {len(trials)} trials; "
                f"`spindle campaign resume {campaign.name}` goes on"
            ) from None
    return _show(store.campaigns.get(campaign.name), store, None, json)


def _show(campaign: Campaign, store: Store, metric: str | None, json: bool) -> Exit:
    from spindle.campaign.outcome import outcome_of

    found = outcome_of(campaign, store, metric)
    _print(found, json)
    if found.given_up:
        tried = found.done + found.planned + found.given_up
        return failed(f"campaign {campaign.name}: {found.given_up} of {tried} trials were given up")
    return Exit.FINE


def _print(found: Outcome, json: bool) -> None:
    from spindle.report import campaign as report
    from spindle.report.style import style_of

    for line in [report.to_json(found.to_dict())] if json else report.of_outcome(found, style_of(sys.stdout)):
        print(line)


@command.command("show")
@click.argument("campaign", required=False)
@click.option(
    "--metric",
    metavar="NAME",
    shell_complete=metric_names,
    help="Another figure than the plan's: iops, read.p99_ns, device.r_await ... (`spindle metrics` lists them).",
)
@_store_option
@json_option
def show(campaign: str | None, metric: str | None, store: str | None, json: bool) -> Exit:
    """What CAMPAIGN found so far; without it the last one."""
    from spindle.store import StoreUsage, open_store

    with open_store(store) as opened:
        if campaign is None:
            every = opened.campaigns.all()
            if not every:
                raise StoreUsage("there is no campaign yet; `spindle campaign run PRESET` begins one")
            return _show(every[-1], opened, metric, json)
        return _show(opened.campaigns.get(campaign), opened, metric, json)


@command.command("ls")
@_store_option
@json_option
def list_(store: str | None, json: bool) -> Exit:
    """The campaigns of the store."""
    from spindle.report import campaign as report
    from spindle.report.style import style_of
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
    """The plans that come with the program, or the text of one."""
    from spindle.campaign.source import open_plan, preset_names
    from spindle.report import campaign as report
    from spindle.report.style import style_of

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
