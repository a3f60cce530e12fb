"""`spindle show`: a saved result as tables again."""

from __future__ import annotations

from pathlib import Path

import click

from spindle.cli.exits import Exit
from spindle.cli.output import emit, json_option, status_of, strict_option


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--shape",
    type=click.Choice(["fio", "bonnie", "iozone", "randomio"]),
    help="In the shape of this tool's output.",
)
@json_option
@strict_option
def command(file: Path, shape: str | None, json: bool, strict: bool) -> Exit:
    """Show a result that `--output` or `--json` saved to FILE (- for stdin)."""
    from spindle.result.document import read

    record = read(file)
    if shape is None:
        return emit(record, json, None, strict)
    if json:
        raise click.UsageError("--shape and --json exclude each other; leave one out")
    from spindle.report.document.entry import Entry
    from spindle.report.document.trial import runs_of
    from spindle.report.shapes import page
    from spindle.run.errors import Usage

    runs = runs_of(Entry(record=record, source=str(file)))
    if not runs:
        raise Usage(f"{file}: no run of Spindle's own is in it, so --shape {shape} has nothing to show; leave it out")
    for line in page(shape, runs):
        print(line)
    return status_of(record, strict)
