"""`spindle array`: what an array is, before there is one."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option


@click.group("array")
def command() -> None:
    """RAID arrays: where each block lies, what they hold, bear and cost."""


def _size(_context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from spindle import _core

    return None if value is None else _core.parse_size(value)


def _sizes(_context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    from spindle import _core

    return [_core.parse_size(size.strip()) for size in value.split(",")]


@command.command("layout")
@click.option(
    "--level",
    required=True,
    metavar="LEVEL",
    help="linear, raid0, raid1, raid4, raid5, raid6, raid10, raid50 or raid60.",
)
@click.option("--layout", metavar="NAME", help="As mdadm names it: f2, left-symmetric, alternate. Default: mdadm's.")
@click.option("--drives", type=click.IntRange(1), metavar="N", help="Number of drives.")
@click.option("--chunk", metavar="SIZE", callback=_size, help="Chunk; for linear the rounding. Default: 512KiB.")
@click.option(
    "--drive-size",
    "sizes",
    metavar="SIZE[,SIZE...]",
    default="1TB",
    show_default=True,
    callback=_sizes,
    help="What each drive gives to the array, or one size for all.",
)
@click.option("--groups", type=click.IntRange(1, 1000), metavar="N", help="Groups of RAID50 and RAID60. Default: 2.")
@click.option("--outer-chunk", metavar="SIZE", callback=_size, help="Chunk over the groups. Default: a group's stripe.")
@click.option(
    "--rebuild-rate",
    metavar="SIZE",
    callback=_size,
    help="Bytes a second of a rebuild. Default: md's limit, 200000KiB.",
)
@click.option("--rows", type=click.IntRange(1, 10_000), metavar="N", help="Rows to draw of each section.")
@json_option
def layout(
    level: str,
    layout: str | None,
    drives: int | None,
    chunk: int | None,
    sizes: list[int],
    groups: int | None,
    outer_chunk: int | None,
    rebuild_rate: int | None,
    rows: int | None,
    json: bool,
) -> Exit:
    """Draw the map of an array and tell its capacity, fault tolerance, cost of small writes, time and risk
    of a rebuild, and the commands that make it and its file system."""
    from spindle.report.array import array_json, array_page

    if drives is None and len(sizes) < 2:
        raise click.UsageError("how many drives? give --drives N, or a --drive-size for each")
    if drives is not None and len(sizes) > 1 and drives != len(sizes):
        raise click.UsageError(f"--drives {drives} but {len(sizes)} drive sizes; give one size, or one for each")
    if len(sizes) == 1:
        sizes = sizes * min(drives or 1, MOST_DRIVES)
    options = {"layout": layout, "chunk": chunk, "groups": groups, "outer_chunk": outer_chunk, "rows": rows}
    if rebuild_rate == 0:
        raise click.UsageError("--rebuild-rate 0: a rebuild that never ends; give bytes a second, as 150MB")
    for line in (array_json if json else array_page)(level, sizes, options, rebuild_rate):
        print(line)
    return Exit.FINE


MOST_DRIVES = 1000
"""More than md takes (384): the core refuses it, without a list of a billion sizes being made first."""
