"""`spindle convert`: convert fio job files to native workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.failure import spelled
from spindle.cli.jobfile import print_findings, section_option
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("convert", cls=WritingCommand)
@click.argument("job")
@click.argument("target", type=TARGET, required=False)
@click.option(
    "-o",
    "--output",
    cls=OutputOption,
    kind="workload",
    metavar="FILE.toml",
    help="Write the workload to this file.",
)
@section_option
@json_option
def command(job: str, target: str | None, output: Output | None, sections: tuple[str, ...], json: bool) -> Exit:
    """Convert the fio job file JOB (`-`: the standard input) to a workload for `spindle run`, and list each option that
    is not converted.

    TARGET replaces the file or device that the jobs name. Nothing is run.
    """
    from spindle.library.conversion import convert

    converted = convert(job, target, section=sections)
    if json:
        print(converted.to_json())
    else:
        print_findings(converted.remarks)
    text = converted.to_toml(spelled)
    if output is not None:
        output.save(text.encode())
    elif not json:
        sys.stdout.write(text)
    return Exit.FINE
