"""Options of verbs that make many trials and store each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added
from spindle.cli.options.engine import engine_of, engine_options
from spindle.cli.options.hosts import agent_option
from spindle.cli.options.preflight import preflight_of, preflight_options
from spindle.cli.options.targets import TARGET
from spindle.cli.options.workers import where_of, worker_options

if TYPE_CHECKING:
    from spindle.campaign.execution import RunOptions
    from spindle.fleet.crew import HostCrew


def store_option(function: click.decorators.FC) -> click.decorators.FC:
    """`--store`."""
    return click.option(
        "--store",
        metavar="FILE|URL",
        help="Store of the results; default: $SPINDLE_STORE, or your data folder.",
    )(function)


_CARRYING_OUT = (
    click.option(
        "--jobs", type=click.IntRange(1, 1024), default=1, help="Modelled machines: number of trials at the same time."
    ),
    worker_options,
    preflight_options,
    engine_options,
)
_CONSENT = (
    click.option(
        "--erase-signature", metavar="TYPE", help="Overwrite this signature too; give its name as shown: ext4."
    ),
    click.option("--erase-stacked", is_flag=True, help="Allow writing to a device built of other devices."),
    click.option(
        "--erase-shared", is_flag=True, help="Allow writing to a partition while others on its disk are in use."
    ),
    click.option("--yes", is_flag=True, help="Do not ask before overwriting a device."),
    click.option("-q", "--quiet", is_flag=True, help="No progress."),
)


_ERASE = click.option(
    "--erase",
    type=TARGET,
    metavar="DEVICE",
    help="Allow writing to this block device; the target must be the same device.",
)
_ON_HOSTS = (
    click.option(
        "--hosts",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Carry out every trial on each of these hosts, as of `spindle fleet`, on its own target.",
    ),
    agent_option,
    click.option(
        "--erase",
        type=TARGET,
        multiple=True,
        metavar="DEVICE",
        help="Allow writing to this block device; the target must be the same device. With --hosts: HOST:DEVICE; may "
        "be repeated.",
    ),
    click.option(
        "--erase-content",
        multiple=True,
        metavar="HOST",
        help="With --hosts: the device of this host may be other than empty. May be repeated.",
    ),
)


def carrying_out(function: click.decorators.FC) -> click.decorators.FC:
    """Options of a verb that makes trials here."""
    return added(function, (*_CARRYING_OUT, _ERASE, *_CONSENT))


def carrying_out_anywhere(function: click.decorators.FC) -> click.decorators.FC:
    """Options of a verb that makes trials here, or on hosts."""
    return added(function, (*_CARRYING_OUT, *_ON_HOSTS, *_CONSENT))


def crew_of(values: dict[str, Any]) -> HostCrew | None:
    """Take the options of hosts out of a verb's values; `erase` becomes the one device of this machine, or None."""
    from spindle.library import campaigns

    erase, content = values["erase"], values.pop("erase_content")
    crew = campaigns.crew_of(values.pop("hosts"), erase, content, values["erase_stacked"], values.pop("agent"))
    here = campaigns.consent_here(crew, erase, values["erase_signature"], False, values["erase_shared"], None)
    values["erase"] = here.erase
    return crew


def run_options_of(values: dict[str, Any], crew: HostCrew | None = None) -> RunOptions:
    """The options of running trials; `values` as click gives them."""
    from spindle.campaign.execution import RunOptions
    from spindle.cli.options.consent import consent_of

    return RunOptions(
        consent=consent_of(values),
        crew=crew,
        engine_options=engine_of(values),
        preflight_options=preflight_of(values),
        jobs=values.pop("jobs"),
        where=where_of(values),
    )
