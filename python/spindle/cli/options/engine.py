"""Options of the load engine, shared by the verbs that run a load."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added

if TYPE_CHECKING:
    from spindle.run.engine import EngineOptions


MOST_CPUS = 1 << 13
"""Above the NR_CPUS of any kernel."""


def _cpus(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """`0,2-5` -> (0, 2, 3, 4, 5)."""
    if value is None:
        return None
    found: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part.strip())
        if match is None:
            raise click.BadParameter(f"{value!r} is not a list of CPUs; write for example 0,2-5")
        begin, end = int(match[1]), int(match[2] or match[1])
        if end < begin or end >= MOST_CPUS:
            raise click.BadParameter(f"{part!r} is not a range of CPUs; write for example 2-5")
        found.extend(range(begin, end + 1))
    return tuple(dict.fromkeys(found))


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["auto", "io_uring", "pread"]),
        default="auto",
        show_default=True,
        help="I/O back end; auto measures and uses the fastest.",
    ),
    click.option("--sqpoll", is_flag=True, help="Let a kernel thread poll for submissions (io_uring)."),
    click.option("--iopoll", is_flag=True, help="Poll for completions (io_uring, direct I/O)."),
    click.option(
        "--timestamps",
        type=click.Choice(["request", "batch"]),
        default="request",
        show_default=True,
        help="Read the clock for each completion, or once for a batch of completions.",
    ),
    click.option("--tolerate-errors", is_flag=True, help="Count I/O errors and continue."),
    click.option("--cpus", callback=_cpus, metavar="LIST", help="Pin workers to these CPUs, round-robin: 0,2-5."),
    click.option("--cpus-shared", is_flag=True, help="Let each worker run on any of --cpus instead of one each."),
)


def engine_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the engine options to a verb."""
    return added(command, _OPTIONS)


def engine_of(values: dict[str, Any]) -> EngineOptions:
    """Take the engine options out of a verb's values."""
    from spindle.run.engine import EngineOptions

    return EngineOptions(
        engine=values.pop("engine"),
        sqpoll=values.pop("sqpoll"),
        iopoll=values.pop("iopoll"),
        timestamps=values.pop("timestamps"),
        tolerate_errors=values.pop("tolerate_errors"),
        cpus=values.pop("cpus"),
        cpus_shared=values.pop("cpus_shared"),
    )
