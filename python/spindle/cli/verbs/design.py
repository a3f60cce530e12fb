"""`spindle design`: the cheapest drives and array that meet a need."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.options.workers import where_of, worker_options
from spindle.cli.output import json_option
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("design", cls=WritingCommand)
@click.argument("requirement", required=False, type=click.Path(path_type=Path))
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Prices of the drives that can be bought: CSV with the columns model,price, or TOML.",
)
@click.option("--usable", metavar="SIZE", help="Space that is needed: 12TB.")
@click.option("--workload", metavar="WORKLOAD", help="The load: a preset or a workload file. Default: --mix, --size.")
@click.option("--iops", metavar="N", help="Requests per second, which arrive at random.")
@click.option("--mix", metavar="READS/WRITES", help="Shares of reads and writes: 70/30.")
@click.option("--size", metavar="SIZE", help="Size of the requests: 8KiB.")
@click.option("--p99", metavar="TIME", help="Most 99th percentile of the latency, of reads and writes each: 20ms.")
@click.option("--survive", metavar="N", help="Drives that may fail, any of them. Default: 1.")
@click.option("--rebuild", metavar="TIME", help="Longest rebuild, beside the load: 48h.")
@click.option("--yearly-loss", metavar="P", help="Most probability of losing data in a year: 1e-4.")
@click.option("--bays", metavar="N", help="Most drives. Default: 24.")
@click.option("--budget", metavar="PRICE", help="Most money for drives.")
@click.option("--watts", metavar="N", help="Most power of the drives.")
@click.option("--machine", cls=OutputOption, kind="machine", help="Save the machine file of the data's array.")
@click.option("--chart", cls=OutputOption, kind="chart", help="Draw the front to a PNG, SVG or HTML file.")
@click.option(
    "--whole-front", is_flag=True, help="Show designs too that differ from a cheaper one by less than is known."
)
@click.option("--example", is_flag=True, help="Print a requirement file; do nothing.")
@worker_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    requirement: Path | None,
    prices: Path | None,
    machine: Output | None,
    chart: Output | None,
    whole_front: bool,
    example: bool,
    json: bool,
    quiet: bool,
    **flags: Any,
) -> Exit:
    """Find the cheapest drives, RAID level, layout and chunk that meet a need.

    REQUIREMENT: a TOML file (--example prints one); the options are for the common case of one load. Candidates are
    sorted out by formulas, then simulated. Nothing is executed. The exit status is 1 if nothing meets the need.
    """
    from spindle.library import designing

    if example:
        print(designing.example(), end="")
        return Exit.FINE
    from spindle.cli.output import put_lines
    from spindle.cli.session import live_line
    from spindle.cli.showing import show
    from spindle.library.plot import ending_of
    from spindle.report.terminal.style import style_of

    if prices is None:
        raise click.UsageError("prices of what? give a file of drives that can be bought with --prices")
    where = where_of(flags)
    given = {key: value for key, value in flags.items() if value is not None}
    if requirement is not None and given:
        raise click.UsageError(f"--{next(iter(given)).replace('_', '-')}: the requirement file says it; leave it out")
    if chart is not None:
        ending_of(chart)
    found = designing.designed(requirement or given, prices, where, live_line(quiet))
    if machine is not None and found.recommendation is not None:
        machine.save(found.machine().encode())
    if chart is not None and found.recommendation is not None:
        found.plot().write(chart)
    if whole_front and not json:
        put_lines(found.full_page(style_of(sys.stdout)))
    else:
        show(found, json)
    return Exit.FINE if found.recommendation is not None else Exit.FAILED
