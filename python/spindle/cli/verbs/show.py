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
    from spindle.library.result import read_all

    one_form(json, output_format)
    found = read_all(file, form)
    records = [each.record for each in found]
    if shape is not None:
        if json or output_format:
            raise click.UsageError("--shape and --json exclude each other; leave one out")
        return _shaped(file, records[0], shape, strict)
    if len(records) == 1:
        return emit(records[0], json, None, strict, output_format=output_format, why=why)
    data = b"[" + b",".join(each.to_json().rstrip() for each in found) + b"]\n" if json else b""
    put(records[0], data, json, output_format, why=why, runs=records)
    if not json and (output_format is None or output_format.normal):
        for record in records[1:]:
            print()
            put(record, why=why)
    return status_of(records, strict)


def _shaped(file: Path, record: Record, shape: str, strict: bool) -> Exit:
    from spindle.library.report import shaped
    from spindle.report.document.entry import Entry

    sys.stdout.flush()
    sys.stdout.buffer.write(shaped([Entry(record=record, source=str(file))], shape))
    sys.stdout.buffer.flush()
    return status_of([record], strict)
