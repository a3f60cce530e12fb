"""`spindle quick`: a device in about a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.care import care_of, care_options
from spindle.cli.exits import Exit
from spindle.cli.making import making_of, making_options
from spindle.cli.output import emit, json_option, output_option, why_option
from spindle.cli.storing import keep_options, keeping_of
from spindle.cli.targets import TARGET
from spindle.cli.writing import Writing

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("quick", cls=Writing)
@click.argument("target", type=TARGET, required=False)
@making_options
@keep_options
@json_option
@why_option
@output_option
@care_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(target: str | None, json: bool, why: bool, output: Output | None, quiet: bool, **values: Any) -> Exit:
    """Tell in about a minute what TARGET delivers: a block device or a file (both only read), or a directory, in which
    a test file is made and removed. Without TARGET: the current directory.
    """
    from spindle.cli.session import session
    from spindle.run.quick import quick

    care, keeping = care_of(values), keeping_of(values)
    with session(quiet) as watch:
        record = quick(target, watch, making_of(values), care=care)
    return emit(record, json, output, care.strict, keeping, why=why)
