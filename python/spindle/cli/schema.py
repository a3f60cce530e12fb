"""`spindle schema`: JSON Schema of what the program prints."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit


@click.command("schema")
@click.argument("of", type=click.Choice(["result", "workload"]))
def command(of: str) -> Exit:
    """Print the JSON Schema of a result (what --json prints) or of a resolved workload."""
    import msgspec

    from spindle.result.document import schema

    print(msgspec.json.format(msgspec.json.encode(schema(of)), indent=2).decode())
    return Exit.FINE
