"""`spindle tune`: the best settings for a load, how sure that is, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.options.alternatives import metric_names
from spindle.cli.options.trials import carrying_out, run_options_of, store_option
from spindle.cli.output import json_option
from spindle.cli.showing import show

if TYPE_CHECKING:
    from spindle.campaign.execution import RunOptions
    from spindle.library.tuning import SpaceOptions
    from spindle.run.watch import Watch


@click.command("tune")
@click.argument("target", required=False)
@click.argument("workload", required=False)
@click.option("--load", metavar="COMMAND", help="Use a command as the load, instead of a workload.")
@click.option(
    "--maximise",
    multiple=True,
    metavar="METRIC",
    shell_complete=metric_names,
    help="The goal; default: iops (`spindle metrics`). Several goals give a front.",
)
@click.option(
    "--minimise",
    multiple=True,
    metavar="METRIC",
    shell_complete=metric_names,
    help="The goal: read.p99, for example. May be repeated.",
)
@click.option("--bound", "bounds", multiple=True, metavar="BOUND", help="A bound: read.p99<20ms. May be repeated.")
@click.option(
    "--knob",
    "knobs",
    multiple=True,
    metavar="NAME=RANGE",
    help="Narrow or add a setting: read_ahead_kb=64..16384:log, scheduler=none,bfq, options.depth=1..64, "
    "machine.array.level=raid5,raid6. May be repeated.",
)
@click.option("--only", is_flag=True, help="Move nothing but the settings of --knob.")
@click.option(
    "--allow", multiple=True, metavar="TRADE", help="Move settings that trade this too: durability. May be repeated."
)
@click.option("--kernel", is_flag=True, help="Run a modelled machine under the real kernel.")
@click.option(
    "--machine", metavar="FILE", help="A model of TARGET (`spindle inspect --machine`): it screens the settings first."
)
@click.option("--no-model", is_flag=True, help="Do not screen the settings of a modelled machine by the simulator.")
@click.option("--trials", type=click.IntRange(4, 10_000), help="Trials of the search; default: 48, with a model 16.")
@click.option(
    "--confirm",
    type=click.IntRange(3, 1000),
    default=12,
    help="Fresh trials of the winner and of the start, which decide.",
    show_default=True,
)
@click.option(
    "--method",
    type=click.Choice(["guided", "random", "grid"]),
    default="guided",
    help="How to search: by a Gaussian process, at random, or every combination.",
    show_default=True,
)
@click.option("--seed", type=click.IntRange(0, 2**53), default=1, help="Seed of the search and of the workloads.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change the plan: options.size=4KiB.")
@click.option("--space", is_flag=True, help="Show the settings that would be moved; do nothing.")
@click.option("--plan", "show_plan", is_flag=True, help="Print the plan, a campaign's; do nothing.")
@click.option("--name", default="tune", help="Name of the campaign.", show_default=True)
@click.option("--resume", metavar="NAME", help="Go on with this campaign, or show its decision again if it is done.")
@click.option("--apply", is_flag=True, help="Leave the best settings in force; `spindle restore` undoes it.")
@click.option(
    "--persist",
    multiple=True,
    type=click.Choice(["udev", "sysctl", "tuned"]),
    help="Write the file that sets the best settings at every boot. May be repeated.",
)
@store_option
@carrying_out
@json_option
def command(
    target: str | None,
    workload: str | None,
    space: bool,
    show_plan: bool,
    resume: str | None,
    name: str,
    store: str | None,
    json: bool,
    **values: Any,
) -> Exit:
    """Find the best settings of TARGET for WORKLOAD: by how much, how sure that is, and how to get back.

    Each trial sets some settings, measures, and puts them back. The settings found at the start run in every block of
    trials. The winner of the search is run again beside them, and only those fresh trials decide: "better by 12 %
    (8-16 %)", or "keep what you have".
    """
    from spindle.library.tuning import Aftermath, planned, resumed, space_of, tuned

    after = Aftermath(apply=values.pop("apply"), persist=values.pop("persist"))
    if resume is not None:
        if target is not None:
            raise click.UsageError("--resume goes on with the target and the load of then; leave them out")
        return show(resumed(resume, store, *_means(values), after), json)
    if target is None:
        raise click.UsageError("tune what? give a device, a file, a folder or a modelled machine, and a workload")
    load, options = values.pop("load"), _space_options(values)
    if space:
        return show(space_of(target, workload, load, options), json)
    asked = {key: values.pop(key) for key in ("maximise", "minimise", "bounds", "trials", "confirm", "method", "seed")}
    ready = planned(target, workload, load, options, assignments=values.pop("assignments"), name=name, **asked)
    if show_plan:
        print(ready.plan.text.rstrip())
        return Exit.FINE
    return show(tuned(ready, store, *_means(values), after), json)


def _space_options(values: dict[str, Any]) -> SpaceOptions:
    from spindle.library.tuning import SpaceOptions

    model = not values.pop("no_model")
    return SpaceOptions(
        model=model, **{key: values.pop(key) for key in ("knobs", "only", "allow", "kernel", "machine")}
    )


def _means(values: dict[str, Any]) -> tuple[RunOptions, Callable[[], AbstractContextManager[Watch]]]:
    from spindle.cli.session import session

    quiet = values.pop("quiet")
    return run_options_of(values), lambda: session(quiet)
