"""`spindle schema`: JSON Schema of the program's output."""

from __future__ import annotations

from typing import Literal

import click

from spindle.cli.exits import Exit


@click.command("schema")
@click.argument("of", type=click.Choice(["result", "workload", "workload-file", "inspect", "doctor"]))
def command(of: Literal["result", "workload", "workload-file", "inspect", "doctor"]) -> Exit:
    """Print the JSON Schema of a result (the output of --json), of a resolved workload, of a workload file, or of the
    output of `spindle inspect --json` or `spindle doctor --json`.
    """

    from spindle.base.plain import as_json
    from spindle.library.schemas import schema

    print(as_json(schema(of)))
    return Exit.FINE
