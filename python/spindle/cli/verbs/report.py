"""`spindle report`: write results as one file for people to read and share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.failure import spelled
from spindle.cli.options.alternatives import selections as selected
from spindle.cli.options.storing import store_option
from spindle.cli.output import status_of
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output

FORMATS = ("html", "md", "csv", "png", "svg", "txt", "json")


@click.command("report", cls=WritingCommand)
@click.argument("selections", metavar="SELECTION...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    cls=OutputOption,
    kind="report",
    help="Output file.  [default: stdout]",
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Format.  [default: by the ending of FILE; txt without a file]"
)
@click.option(
    "--shape",
    type=click.Choice(["fio", "bonnie", "iozone", "randomio"]),
    help="Write text in the shape of this tool's output, all runs together.",
)
@click.option("--title", metavar="TEXT", help="Title.  [default: made from workloads and targets]")
@store_option
@click.option("--json", is_flag=True, help="Same as --format json: sections, tables and chart specifications.")
def command(
    selections: tuple[str, ...],
    output: Output | None,
    form: str | None,
    shape: str | None,
    title: str | None,
    where: str | None,
    json: bool,
) -> Exit:
    """Write a report of results: a summary in words, tables, charts, verdicts, settings, and the commands that
    repeat the runs.

    SELECTION is a file that `--output` saved, a run's ID, tag:NAME, campaign:NAME[/factor=level,...], last or
    last:N.
    """
    from spindle.library import report
    from spindle.report.terminal.style import Style, style_of

    wanted = "json" if json else form or ("txt" if shape else "txt" if output is None else _by_name(output))
    if shape is not None and wanted != "txt":
        raise click.UsageError(f"--shape is for text, not for {wanted}; leave out one of them")
    with selected(where, selections) as chosen:
        if shape is not None:
            data = report.shaped(report.entries_of(chosen), shape)
        else:
            style = style_of(sys.stdout) if output is None else Style()
            data = report.rendered(chosen, wanted, title, style, spelled)
        records = [entry.record for entry in report.entries_of(chosen)]
    _write(data, output, wanted)
    return status_of(records, strict=False)


def _by_name(output: Output) -> str:
    from spindle.library.report import format_of

    return format_of(output.path, "-o")


def _write(data: bytes, output: Output | None, wanted: str) -> None:
    if output is not None:
        output.save(data)
        return
    if wanted == "png" and sys.stdout.isatty():
        raise click.UsageError("--format png: a picture cannot be printed; give -o FILE.png")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
