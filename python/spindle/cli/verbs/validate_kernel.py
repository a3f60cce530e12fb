"""`spindle validate kernel`."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put


@click.command("kernel")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--kernel",
    "version",
    metavar="[VERSION]",
    is_flag=False,
    flag_value="default",
    help="Compare the lab instead: the real kernel on modelled drives, a boot for each case (`spindle help lab`).",
)
@click.option("--only", metavar="PATTERN", multiple=True, help="Only cases of such names, as `c-raid5-*`; repeatable.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, help="With --kernel: labs at the same time.")
@json_option
def kernel(directory: str, version: str | None, only: tuple[str, ...], jobs: int, json: bool) -> Exit:
    """Compare the simulator with requests and times of the real Linux kernel: DIR/requests.csv, DIR/elevators.csv.

    Exit status 1 if a goal is missed.
    """
    from spindle.library.validation import validate_kernel
    from spindle.report.terminal.kernel_cases import kernel_page

    compared = validate_kernel(directory, kernel=version, only=only, jobs=jobs)
    put(compared, kernel_page(compared), json)
    missed = sum(not goal.reached for goal in compared.goals)
    if missed:
        return failed(f"{directory}: {missed} of {len(compared.goals)} goals are missed")
    return Exit.FINE
