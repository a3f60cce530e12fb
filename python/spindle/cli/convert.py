"""`spindle convert`: fio's job files as native workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.jobfile import section_option
from spindle.cli.output import json_option
from spindle.cli.targets import TARGET
from spindle.cli.writing import OutputOption, Writing

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("convert", cls=Writing)
@click.argument("job")
@click.argument("target", type=TARGET, required=False)
@click.option(
    "-o",
    "--output",
    cls=OutputOption,
    kind="workload",
    metavar="FILE.toml",
    help="Write the workload here.",
)
@section_option
@json_option
def command(job: str, target: str | None, output: Output | None, sections: tuple[str, ...], json: bool) -> Exit:
    """Turn fio's job file JOB (`-`: the standard input) into a workload for `spindle run`, and tell each option that is
    not carried over.

    TARGET stands for the file or device that the jobs name. Nothing is run.
    """
    from spindle.cli.jobfile import tell
    from spindle.formats.fio_job import JobFileRefused, Level, as_json, convert, toml_of

    conversion = convert(job, target, only=sections)
    if json:
        print(as_json(conversion))
    errors = [finding for finding in conversion.findings if finding.level is Level.ERROR]
    tell([] if json else [finding for finding in conversion.findings if finding.level is not Level.ERROR])
    if errors:
        raise JobFileRefused(errors)
    text = toml_of(conversion)
    if output is not None:
        output.save(text.encode())
    elif not json:
        sys.stdout.write(text)
    return Exit.FINE
