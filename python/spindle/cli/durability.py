"""`spindle durability`: write, sync, and note elsewhere what was acknowledged, until the power is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spindle.cli.consent import consent_of, consent_options
from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.targets import TARGET


def size_option(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """A size above 0, as bytes."""
    if text is None:
        return None
    from spindle import _core

    try:
        value = _core.parse_size(text)
    except _core.ConfigError as error:
        raise click.BadParameter(str(error), context, parameter) from None
    if value <= 0:
        raise click.BadParameter("must be more than 0", context, parameter)
    return value


def _seconds(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1e9:
        raise click.BadParameter(f"{value:g} is not a time; give seconds above 0", context, parameter)
    return value


@click.command("durability")
@click.argument("target", type=TARGET)
@click.option(
    "--journal",
    required=True,
    metavar="FILE|tcp://HOST:PORT",
    help="Note acknowledged syncs here: a new file on another device, or `spindle verify --listen` on another host.",
)
@click.option(
    "--create",
    metavar="[SIZE]",
    is_flag=False,
    flag_value="64MiB",
    callback=size_option,
    help="Make TARGET, a test file of this size (64 MiB); it stays, to be checked after the crash.",
)
@click.option(
    "--sync",
    type=click.Choice(["fsync", "fdatasync", "dsync", "fua", "none"]),
    default="fsync",
    show_default=True,
    help="What the writers rely on; dsync: O_DSYNC, fua: RWF_DSYNC on each write, none: nothing, to see loss found.",
)
@click.option(
    "--pattern",
    type=click.Choice(["mixed", "append", "random"]),
    default="mixed",
    show_default=True,
    help="A log written round and round, blocks overwritten at random, or every second worker the one and the other.",
)
@click.option("--workers", type=click.IntRange(1, 256), default=4, show_default=True, help="Writers side by side.")
@click.option("--block", default="4KiB", show_default=True, callback=size_option, metavar="SIZE", help="Of each write.")
@click.option(
    "--batch",
    type=click.IntRange(1, 65536),
    default=4,
    show_default=True,
    help="Up to so many writes come before a sync.",
)
@click.option(
    "--size",
    callback=size_option,
    metavar="SIZE",
    help="Write this much of TARGET, from its start.  [default: 64MiB, or all of a test file]",
)
@click.option("--buffered", is_flag=True, help="Write through the page cache.")
@click.option(
    "--seconds", type=float, callback=_seconds, help="End after this time.  [default: at the crash, or Ctrl-C]"
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of the order of writes.  [default: drawn]")
@click.option("--journal-on-target", is_flag=True, help="Agree to a journal on the device that is tested.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The secret that the receiver of the journal wants, the same as there; only you may read it.",
)
@consent_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str,
    journal: str,
    create: int | None,
    block: int,
    size: int | None,
    buffered: bool,
    json: bool,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Write to TARGET, sync, and note every sync that was acknowledged in a journal elsewhere, until its power is cut.
    Then `spindle verify --after-crash JOURNAL` tells which acknowledged writes are lost, and whether order was kept.

    A block device is written only with --erase naming it, a file only if --create makes it.
    """
    from spindle.cli.session import session
    from spindle.report.durability import print_written
    from spindle.run.durability.writing import Writing, write

    consent = consent_of(values)
    order = Writing(
        target=target,
        journal=journal,
        create_bytes=create,
        block_bytes=block,
        size_bytes=size,
        direct=not buffered,
        consent=consent,
        **values,
    )
    with session(quiet) as watch:
        written = write(order, watch)
    print_written(written, json)
    return Exit.FINE
