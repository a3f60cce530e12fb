"""Options of the preflight: how quiet the machine must be before a verb measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added

if TYPE_CHECKING:
    from spindle.run.preparation import PreflightOptions

_MOST_WAIT_S = 86_400

_OPTIONS = (
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse to measure if the machine is not quiet, and exit with 1 on a warning as well.",
    ),
    click.option(
        "--wait-idle",
        type=click.FloatRange(0, _MOST_WAIT_S),
        default=0.0,
        metavar="SECONDS",
        help="Wait at most this long for the machine to become quiet.",
    ),
    click.option(
        "--quiet-machine",
        is_flag=True,
        help="During the run, pause array checks, switch off swap, run CPUs at full clock; restore afterwards.",
    ),
    click.option(
        "--sync",
        type=click.Choice(["target", "machine"]),
        default="target",
        show_default=True,
        help="Write out dirty pages first: of the target's devices, or of the whole machine.",
    ),
    click.option(
        "--drop-caches", is_flag=True, help="Drop the whole page cache before each run, not only the target's pages."
    ),
)


def preflight_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the preflight options to a verb."""
    return added(command, _OPTIONS)


def preflight_of(values: dict[str, Any]) -> PreflightOptions:
    """Take the preflight options out of a verb's values."""
    from spindle.run.preparation import PreflightOptions

    return PreflightOptions(
        strict=values.pop("strict"),
        sync_machine=values.pop("sync") == "machine",
        drop_caches=values.pop("drop_caches"),
        wait_idle_s=values.pop("wait_idle"),
        quiet_machine=values.pop("quiet_machine"),
    )
