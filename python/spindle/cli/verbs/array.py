"""`spindle array`: the properties of an array before it is made."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.showing import show


@click.group("array")
def command() -> None:
    """RAID arrays: map, capacity, fault tolerance, risk of a loss, advice."""


def _size(_context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from spindle import _core

    return None if value is None else _core.parse_size(value)


def _sizes(_context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    from spindle import _core

    return [_core.parse_size(size.strip()) for size in value.split(",")]


def _share(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise click.BadParameter(f"{value!r} is not a share below 1, such as 1.5% or 0.015")
    return share


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


@command.command("reliability")
@click.option(
    "--level", required=True, metavar="LEVEL", help="raid0, raid1, raid4, raid5, raid6, raid10, raid50, raid60."
)
@click.option(
    "--drives", required=True, metavar="NxSIZE", help="Drives without spares: 8x18TB, or 8xMODEL of the catalogue."
)
@click.option("--layout", default="n2", show_default=True, metavar="NAME", help="Layout of RAID10: n2, f2, o2, n3.")
@click.option("--groups", type=click.IntRange(1, 500), default=1, metavar="N", help="Groups of RAID50 and RAID60.")
@click.option("--spares", type=click.IntRange(0, 50), default=0, metavar="N", help="Hot spares, in addition.")
@click.option("--afr", metavar="SHARE", callback=_share, help="Drives that fail in a year: 1.5%. Default: the sheet's.")
@click.option(
    "--ure-per-bit", type=float, metavar="RATE", help="Unreadable bits per bit read: 1e-15. Default: the sheet's."
)
@click.option("--rebuild-hours", type=float, metavar="H", help="Rebuild of a drive. Default: simulated, for a model.")
@click.option(
    "--replace-hours",
    type=float,
    default=24.0,
    show_default=True,
    metavar="H",
    help="Until a failed drive is replaced.",
)
@click.option(
    "--latent-per-year", type=float, default=0.0, metavar="N", help="Latent sector errors of a drive in a year."
)
@click.option("--scrub-days", type=float, default=30.0, show_default=True, metavar="D", help="Interval of scrubs.")
@click.option("--no-scrub", is_flag=True, help="Never scrub: latent errors stay.")
@click.option(
    "--batch-correlation", type=float, default=1.0, metavar="F", help="Rise of the failure rate with each failed drive."
)
@click.option(
    "--wear-shape", type=float, default=1.0, metavar="B", help="Weibull shape of the life times; above 1: wear-out."
)
@click.option("--age-years", type=float, default=0.0, metavar="Y", help="Age of the drives at the start.")
@click.option("--years", type=float, default=1.0, show_default=True, metavar="Y", help="Time looked at.")
@click.option("--simulate", is_flag=True, help="Simulate it by Monte Carlo too.")
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of the simulation.")
@json_option
def reliability(
    level: str,
    drives: str,
    layout: str,
    groups: int,
    spares: int,
    afr: float | None,
    ure_per_bit: float | None,
    rebuild_hours: float | None,
    replace_hours: float,
    latent_per_year: float,
    scrub_days: float,
    no_scrub: bool,
    batch_correlation: float,
    wear_shape: float,
    age_years: float,
    years: float,
    simulate: bool,
    seed: int,
    json: bool,
) -> Exit:
    """Compute an array's risk of losing data. Show the probability within a year by cause, and the numbers that it
    depends on."""
    import spindle
    from spindle.cli.showing import show

    found = spindle.array_risk(
        level,
        drives,
        layout=layout,
        groups=groups,
        spares=spares,
        afr=afr,
        ure_per_bit=ure_per_bit,
        rebuild_hours=rebuild_hours,
        replace_hours=replace_hours,
        latent_per_year=latent_per_year,
        scrub_days=None if no_scrub else scrub_days,
        batch_correlation=batch_correlation,
        wear_shape=wear_shape,
        age_years=age_years,
        years=years,
        simulate=simulate,
        seed=seed,
    )
    return show(found, json)


@command.command("advise")
@click.option(
    "--drives",
    required=True,
    metavar="NxSIZE",
    help="All drives: 6x12TB, 6xMODEL of the catalogue, or /dev/sdb,/dev/sdc,...",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["database", "mixed", "stream", "archive"]),
    default="mixed",
    show_default=True,
    help="Load.",
)
@click.option(
    "--survive",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    metavar="N",
    help="Drives of which any may fail.",
)
@click.option("--spares", type=click.IntRange(0, 8), metavar="N", help="Hot spares. Default: 0 and 1 are compared.")
@click.option(
    "--most-loss",
    metavar="SHARE",
    default="2%",
    show_default=True,
    callback=_share,
    help="Largest yearly probability of a loss.",
)
@click.option(
    "--replace-hours",
    type=float,
    default=24.0,
    show_default=True,
    metavar="H",
    help="Until a failed drive is replaced.",
)
@click.option(
    "--batch-correlation", type=float, default=1.0, metavar="F", help="Rise of the failure rate with each failed drive."
)
@click.option(
    "--file-system", type=click.Choice(["xfs", "ext4", "none"]), default="xfs", show_default=True, help="File system."
)
@json_option
def advise(
    drives: str,
    purpose: str,
    survive: int,
    spares: int | None,
    most_loss: float,
    replace_hours: float,
    batch_correlation: float,
    file_system: str,
    json: bool,
) -> Exit:
    """Advise on an array for your drives. Show level, layout, chunk, spares and file system with the alternatives, and
    print the setup script; nothing is executed."""
    import spindle
    from spindle.cli.showing import show

    found = spindle.array_advice(
        drives,
        purpose=purpose,
        survive=survive,
        spares=spares,
        most_loss=most_loss,
        replace_hours=replace_hours,
        batch_correlation=batch_correlation,
        file_system=file_system,
    )
    return show(found, json)
