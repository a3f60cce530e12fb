"""`spindle array`: the properties of an array before it is made."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.showing import show


@click.group("array")
def command() -> None:
    """RAID arrays: block map, capacity, fault tolerance and write cost."""


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
@click.option("--layout", metavar="NAME", help="A name of mdadm: f2, left-symmetric, alternate. Default: mdadm's.")
@click.option("--drives", type=click.IntRange(1), metavar="N", help="Number of drives.")
@click.option("--chunk", metavar="SIZE", callback=_size, help="Chunk size; for linear the rounding. Default: 512KiB.")
@click.option(
    "--drive-size",
    "sizes",
    metavar="SIZE[,SIZE...]",
    default="1TB",
    show_default=True,
    callback=_sizes,
    help="Size that each drive gives to the array, or one size for all.",
)
@click.option("--groups", type=click.IntRange(1, 1000), metavar="N", help="Groups of RAID50 and RAID60. Default: 2.")
@click.option(
    "--outer-chunk", metavar="SIZE", callback=_size, help="Chunk size over the groups. Default: a group's stripe."
)
@click.option(
    "--rebuild-rate",
    metavar="SIZE",
    callback=_size,
    help="Rebuild speed in bytes/s. Default: md's limit, 200000KiB.",
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
    """Draw the map of an array. Show its capacity, fault tolerance, cost of small writes, time and risk
    of a rebuild, and the commands that create it and its file system."""
    import spindle

    found = spindle.array_map(
        level,
        drives,
        layout=layout,
        chunk=chunk,
        drive_size=sizes,
        groups=groups,
        outer_chunk=outer_chunk,
        rebuild_rate=rebuild_rate,
        rows=rows,
    )
    return show(found, json)
