"""`spindle schema`: JSON Schema of the program's output."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit


@click.command("schema")
@click.argument("of", type=click.Choice(["result", "workload", "workload-file", "inspect", "doctor"]))
def command(of: str) -> Exit:
    """Print the JSON Schema of a result (the output of --json), of a resolved workload, of a workload file, or of the
    output of `spindle inspect --json` or `spindle doctor --json`.
    """
    import msgspec

    if of == "inspect":
        from spindle.inspect import schema as found

        document = found()
    elif of == "doctor":
        from spindle.doctor import schema as found

        document = found()
    elif of == "workload-file":
        from spindle.result.workload_file import schema as found

        document = found()
    else:
        from spindle.result.document import schema

        document = schema(of)
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    return Exit.FINE
