"""`spindle fleet`: one load on many hosts at one instant, and the hosts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.added import added
from spindle.cli.options.hosts import agent_option
from spindle.cli.options.keys import key_options, overrides_of, set_option
from spindle.cli.options.storing import store_option
from spindle.cli.output import json_option
from spindle.cli.showing import show

if TYPE_CHECKING:
    from spindle.library.fleets import FleetOptions, FleetResult

HOSTS = (
    click.option(
        "--hosts",
        required=True,
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="The hosts (TOML): name, ssh, target.",
    ),
    click.option(
        "--erase",
        multiple=True,
        metavar="HOST:DEVICE",
        help="Allow writing to this host's device, the same as its target. May be repeated.",
    ),
    click.option(
        "--erase-content", multiple=True, metavar="HOST", help="Its device may be other than empty. May be repeated."
    ),
    click.option(
        "--erase-stacked",
        multiple=True,
        metavar="HOST",
        help="Its device may be built of other devices (md, dm, loop). May be repeated.",
    ),
    agent_option,
    click.option("--all-or-none", is_flag=True, help="Start nothing unless every host is ready."),
)  # fmt: skip


@click.group("fleet")
def command() -> None:
    """Run one load on many hosts at one instant, and compare the hosts.

    ssh starts spindle-agent on each host; no host listens. Each host's trial is claimed in the store before its load
    begins, so that it begins at most once.
    """


@command.command("run")
@click.argument("workload")
@click.option("--name", help="Name of the run in the store.  [default: fleet- and the time]")
@set_option
@key_options
@store_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def run(
    workload: str,
    name: str | None,
    assignments: tuple[tuple[str, str], ...],
    where: str | None,
    json: bool,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Run WORKLOAD, as of `spindle run`, on all hosts of a file at one instant.

    A host that is not ready, or is lost, does not stop the others; it is named, and the exit status says so.
    """
    from spindle.cli.session import live_line
    from spindle.library.fleets import launched, new_name

    options = _options(values)
    overrides = (*overrides_of(values), *assignments)
    found = launched(workload, options, overrides, live_line(quiet), name=name or new_name(), store=where)
    return _print(found, json)


@command.command("resume")
@click.argument("name")
@click.option(
    "--again",
    multiple=True,
    metavar="HOST",
    help="Run this host once more, although its load may have begun. May be repeated.",
)
@store_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def resume(name: str, again: tuple[str, ...], where: str | None, json: bool, quiet: bool, **values: Any) -> Exit:
    """Run the hosts of NAME that have not begun. Consent is given again."""
    from spindle.cli.session import live_line
    from spindle.library.fleets import resumed

    return _print(resumed(name, _options(values), live_line(quiet), again=again, store=where), json)


@command.command("compare")
@click.argument("name")
@store_option
@json_option
def compare(name: str, where: str | None, json: bool) -> Exit:
    """Show the hosts of NAME side by side: figures, all together, and hosts slower than their peers."""
    from spindle.library.fleets import compared

    return _print(compared(name, where), json)


for each in (run, resume):
    added(each, HOSTS)


def _options(values: dict[str, Any]) -> FleetOptions:
    """Take the options of the fleet out of a verb's values."""
    from spindle.library.fleets import FleetOptions

    names = ("hosts", "erase", "erase_content", "erase_stacked", "agent", "all_or_none")
    return FleetOptions(**{name: values.pop(name) for name in names})


def _print(found: FleetResult, json: bool) -> Exit:
    show(found, json)
    if missing := [one.name for one in found.comparison.missing]:
        failed(f"{found.comparison.name}: {len(missing)} hosts have no valid result: {', '.join(missing[:8])}")
    return Exit(found.status)
