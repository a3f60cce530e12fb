"""`spindle show`: a saved result as tables again."""

from __future__ import annotations

from pathlib import Path

import click

from spindle.cli.exits import Exit
from spindle.cli.output import emit, json_option, strict_option


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@json_option
@strict_option
def command(file: Path, json: bool, strict: bool) -> Exit:
    """Show a result that `--output` or `--json` saved to FILE (- for stdin)."""
    from spindle.result.document import read

    return emit(read(file), json, None, strict)
