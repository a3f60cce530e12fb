"""`spindle show`: show a saved result, or another tool's, as tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.output import (
    emit,
    json_option,
    one_form,
    output_format_option,
    put,
    status_of,
    strict_option,
    why_option,
)

if TYPE_CHECKING:  # parsing options must not import what shows the result
    from spindle.formats.fio_output import OutputFormats
    from spindle.result.record import Record


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from",
    "form",
    metavar="FORMAT",
    help="Format of FILE (`spindle help formats`).  [default: by its content]",
)
@click.option(
    "--shape",
    type=click.Choice(["fio", "bonnie", "iozone", "randomio"]),
    help="Print in the shape of this tool's output.",
)
@output_format_option
@json_option
@why_option
@strict_option
def command(
    file: Path,
    form: str | None,
    shape: str | None,
    output_format: OutputFormats | None,
    json: bool,
    why: bool,
    strict: bool,
) -> Exit:
    """Show a result that `--output` or `--json` saved to FILE (- for stdin), or the output of another tool."""
    from spindle.formats import read

    one_form(json, output_format)
    records = read(file, form)
    if shape is not None:
        if json or output_format:
            raise click.UsageError("--shape and --json exclude each other; leave one out")
        return _shaped(file, records[0], shape, strict)
    if len(records) == 1:
        return emit(records[0], json, None, strict, output_format=output_format, why=why)
    return _several(records, json, strict, output_format, why)


def _several(records: list[Record], json: bool, strict: bool, output_format: OutputFormats | None, why: bool) -> Exit:
    """Show the results of a file with several: their pages, or a JSON list."""
    if output_format:
        from spindle.formats import fio_output

        sys.stdout.buffer.write(fio_output.write(records, output_format))
    if json:
        from spindle.result.document import encode

        sys.stdout.buffer.write(b"[" + b",".join(encode(record).rstrip() for record in records) + b"]\n")
    elif output_format is None or output_format.normal:
        for place, record in enumerate(records):
            if place:
                print()
            put(record, why=why)
    sys.stdout.flush()
    return status_of(records, strict)


def _shaped(file: Path, record: Record, shape: str, strict: bool) -> Exit:
    from spindle.report.document.entry import Entry
    from spindle.report.document.trial import runs_of
    from spindle.report.terminal.shapes import page
    from spindle.run.errors import Usage

    runs = runs_of(Entry(record=record, source=str(file)))
    if not runs:
        raise Usage(f"{file}: it has no run of Spindle's own, so --shape {shape} has nothing to show; leave it out")
    for line in page(shape, runs):
        print(line)
    return status_of([record], strict)
