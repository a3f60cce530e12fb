"""Options for how quiet the machine must be, shared by the verbs that measure it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from spindle.run.preparation import Care

_MOST_WAIT_S = 86_400

_OPTIONS = (
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse to measure when the machine is not quiet, and exit with 1 on a warning as well.",
    ),
    click.option(
        "--wait-idle",
        type=click.FloatRange(0, _MOST_WAIT_S),
        default=0.0,
        metavar="SECONDS",
        help="Wait up to so long for the machine to become quiet.",
    ),
    click.option(
        "--quiet-machine",
        is_flag=True,
        help="For the run, pause checks of arrays, switch off swap, set CPUs to full clock; put back afterwards.",
    ),
    click.option(
        "--sync",
        type=click.Choice(["target", "machine"]),
        default="target",
        show_default=True,
        help="Write out first what is dirty: on the target's devices, or everywhere.",
    ),
    click.option(
        "--drop-caches", is_flag=True, help="Drop the whole page cache before each load, not only the target's pages."
    ),
)


def care_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds them all."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def care_of(values: dict[str, Any]) -> Care:
    """Takes them out of a verb's values."""
    from spindle.run.preparation import Care

    return Care(
        strict=values.pop("strict"),
        sync_machine=values.pop("sync") == "machine",
        drop_caches=values.pop("drop_caches"),
        wait_idle_s=values.pop("wait_idle"),
        quiet_machine=values.pop("quiet_machine"),
    )
