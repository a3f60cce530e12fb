"""`--precondition`: flash is filled and written at random until steady before it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from spindle.run.precondition import Preconditioning

_OPTIONS = (
    click.option(
        "--precondition",
        is_flag=True,
        help="Fill the workload's region twice, then write at random until steady, then measure: flash as it is in "
        "use. Writes to TARGET, and so needs --create or --erase.",
    ),
    click.option("--precondition-anyway", is_flag=True, help="The same on a rotating disk, where it changes nothing."),
    click.option("--precondition-time", metavar="TIME", help="Longest time of the random writes (default 25m)."),
)


def precondition_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def preconditioning_of(values: dict[str, Any]) -> Preconditioning | None:
    """Takes what was given out of a verb's values. Raises Usage."""
    wanted, anyway = values.pop("precondition"), values.pop("precondition_anyway")
    limit: str | None = values.pop("precondition_time")
    if not wanted and not anyway and limit is None:
        return None
    from spindle import _core
    from spindle.run.errors import Usage
    from spindle.run.precondition import LIMIT, Preconditioning

    if not wanted and not anyway:
        raise Usage("--precondition-time: nothing is preconditioned; it goes with --precondition")
    try:
        seconds = _core.parse_duration(limit or LIMIT)
    except _core.ConfigError as error:
        raise Usage(f"--precondition-time: {error}; write for example 25m") from None
    if seconds <= 0:
        raise Usage("--precondition-time: must be above 0")
    return Preconditioning(anyway, limit or LIMIT)
