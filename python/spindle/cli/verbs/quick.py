"""`spindle quick`: measure a device in about a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.options.engine import engine_options
from spindle.cli.options.preflight import preflight_options
from spindle.cli.options.storing import store_options, stored_by
from spindle.cli.options.targets import TARGET
from spindle.cli.output import emit, json_option, output_option, why_option
from spindle.cli.writing import WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("quick", cls=WritingCommand)
@click.argument("target", type=TARGET, required=False)
@engine_options
@store_options
@json_option
@why_option
@output_option
@preflight_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(target: str | None, json: bool, why: bool, output: Output | None, quiet: bool, **values: Any) -> Exit:
    """Measure TARGET in about a minute: a block device or a file (both only read), or a directory, in which a test file
    is created and removed. Without TARGET: the current directory.
    """
    import spindle
    from spindle.cli.session import live_line

    keeping = stored_by(values)
    record = spindle.quick(target, progress=live_line(quiet), **values).record
    return emit(record, json, output, values["strict"], keeping, why=why)
