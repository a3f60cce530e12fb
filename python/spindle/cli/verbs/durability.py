"""`spindle durability`: write and sync until the power is cut; record acknowledged writes on another device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.consent import confirmed, consent_options
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
from spindle.cli.showing import show


def size_option(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Convert a size above 0 to bytes."""
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
    metavar="FILE|tcp://HOST:PORT",
    help="Record acknowledged syncs here: a new file on another device, or `spindle verify --listen` on another host.",
)
@click.option(
    "--create",
    metavar="[SIZE]",
    is_flag=False,
    flag_value="64MiB",
    callback=size_option,
    help="Create TARGET, a test file of this size (64 MiB); it is kept, to be checked after the crash.",
)
@click.option(
    "--sync",
    type=click.Choice(["fsync", "fdatasync", "dsync", "fua", "none"]),
    default="fsync",
    show_default=True,
    help="How writes are made durable; dsync: O_DSYNC, fua: RWF_DSYNC on each write, none: not at all, to see a loss.",
)
@click.option(
    "--pattern",
    type=click.Choice(["mixed", "append", "random"]),
    default="mixed",
    show_default=True,
    help="append: a circular log; random: blocks overwritten at random; mixed: workers alternate between both.",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), default=4, show_default=True, help="Number of concurrent writers."
)
@click.option(
    "--block", default="4KiB", show_default=True, callback=size_option, metavar="SIZE", help="Size of each write."
)
@click.option(
    "--batch",
    type=click.IntRange(1, 65536),
    default=4,
    show_default=True,
    help="Most writes before a sync.",
)
@click.option(
    "--size",
    callback=size_option,
    metavar="SIZE",
    help="Write to this much of TARGET, from its start.  [default: 64MiB, or all of a test file]",
)
@click.option("--buffered", is_flag=True, help="Write through the page cache.")
@click.option(
    "--seconds", type=float, callback=_seconds, help="End after this time.  [default: at the crash, or Ctrl-C]"
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed for the order of writes.  [default: random]")
@click.option(
    "--kernel",
    is_flag=True,
    help="TARGET is a machine: cut its power again and again in the lab, in virtual time, and check each time.",
)
@click.option("--cuts", type=click.IntRange(1, 100_000), help="With --kernel: number of cuts.  [default: 20]")
@click.option(
    "--lying",
    multiple=True,
    metavar="DRIVE",
    help="With --kernel: this drive, vda ..., ignores flushes from the first write on.  [repeatable]",
)
@click.option("--journal-on-target", is_flag=True, help="Allow a journal on the tested device.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with the secret of the journal's receiver; only you may be able to read it.",
)
@consent_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str,
    journal: str | None,
    kernel: bool,
    cuts: int | None,
    lying: tuple[str, ...],
    json: bool,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Write to TARGET, sync, and record every acknowledged sync in a journal elsewhere, until the power is cut. Then
    `spindle verify --after-crash JOURNAL` reports lost acknowledged writes, and whether the order was kept.

    A block device is written to only if --erase names it, a file only if --create creates it.

    With --kernel TARGET is a modelled machine (a file, or a name of the catalogue): its array and file system are made
    in the lab, the power is cut at random moments, and every block is checked after the next boot. --seconds: the
    virtual time within which the cut comes (0.2 s).
    """

    if kernel:
        return _cut(target, journal, 20 if cuts is None else cuts, lying, json, values)
    if cuts is not None or lying:
        raise click.UsageError("--cuts, --lying: use them with --kernel")
    if journal is None:
        raise click.UsageError("--journal is missing: a new file on another device, or tcp://HOST:PORT")
    import spindle
    from spindle.cli.session import live_line

    return show(spindle.durability(target, journal, progress=live_line(quiet), **confirmed(values)), json)


def _cut(
    machine: str, journal: str | None, cuts: int, lying: tuple[str, ...], json: bool, values: dict[str, Any]
) -> Exit:
    from spindle.library.cuts import power_cuts

    taken = ("sync", "pattern", "workers", "block", "batch", "size", "buffered")
    others = [name for name, value in values.items() if value and name not in (*taken, "seconds", "seed")]
    if journal is not None or others:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in (["journal"] if journal else []) + others)
        raise click.UsageError(f"{names}: not with --kernel, which keeps journal and drives itself")
    found = power_cuts(
        machine,
        cuts,
        values["seed"] or 1,
        lying,
        window_s=values["seconds"],
        **{name: values[name] for name in taken},
    )
    show(found, json)
    return Exit.FINE if found.sound else failed(f"{machine}: {found.summary}")
