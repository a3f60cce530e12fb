"""`--precondition`: fill flash and write to it at random until steady, then measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added

if TYPE_CHECKING:
    from spindle.run.precondition import Preconditioning

_OPTIONS = (
    click.option(
        "--precondition",
        is_flag=True,
        help="Fill the workload's region twice, write at random until steady, then measure: the state of flash in "
        "use. Writes to TARGET, so it needs --create or --erase.",
    ),
    click.option(
        "--precondition-anyway", is_flag=True, help="Precondition a rotating disk too, although it changes nothing."
    ),
    click.option("--precondition-time", metavar="TIME", help="Longest time of the random writes (default 25m)."),
)


def precondition_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the preconditioning options to a verb."""
    return added(command, _OPTIONS)


def preconditioning_of(values: dict[str, Any]) -> Preconditioning | None:
    """Take the preconditioning options out of a verb's values. Raises Usage."""
    wanted, anyway = values.pop("precondition"), values.pop("precondition_anyway")
    limit: str | None = values.pop("precondition_time")
    if not wanted and not anyway and limit is None:
        return None
    from spindle.library import options

    return options.preconditioning_of(precondition=wanted, precondition_anyway=anyway, precondition_time=limit)
