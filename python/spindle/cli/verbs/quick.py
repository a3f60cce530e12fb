"""`spindle quick`: measure a device in about a minute."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.options.engine import engine_options
from spindle.cli.options.predicting import check_calibrate, predict_options
from spindle.cli.options.preflight import preflight_options
from spindle.cli.options.storing import store_options, stored_by
from spindle.cli.options.targets import TARGET
from spindle.cli.output import emit, json_option, output_option, why_option
from spindle.cli.writing import WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output
    from spindle.prediction.source import MachineFile
    from spindle.result.record import Record


@click.command("quick", cls=WritingCommand)
@click.argument("target", type=TARGET, required=False)
@predict_options
@engine_options
@store_options
@json_option
@why_option
@output_option
@preflight_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str | None,
    predict: str | None,
    calibrate: bool,
    json: bool,
    why: bool,
    output: Output | None,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Measure TARGET in about a minute: a block device or a file (both only read), or a directory, in which a test file
    is created and removed. Without TARGET: the current directory.
    """
    import spindle
    from spindle.cli.session import live_line

    if predict is not None and json:
        raise click.UsageError("--predict prints a table for people; leave --json out")
    check_calibrate(predict, calibrate)
    keeping = stored_by(values)
    # Before the minute that the look takes.
    machine = _machine(predict or target or ".", calibrate, quiet) if predict is not None else None
    record = spindle.quick(target, progress=live_line(quiet), **values).record
    status = emit(record, json, output, values["strict"], keeping, why=why)
    if machine is not None:
        _put_beside(record, machine, quiet)
    return status


def _machine(name: str, calibrate: bool, quiet: bool) -> MachineFile:
    from spindle.cli.session import live_line
    from spindle.library.predicting import machine_of

    return machine_of(name, calibrate, live_line(quiet))


def _put_beside(record: Record, machine: MachineFile, quiet: bool) -> None:
    from spindle.cli.output import put_lines
    from spindle.cli.session import live_line
    from spindle.library.predicting import beside_look
    from spindle.report.terminal.style import style_of

    found = beside_look(record, machine, live_line(quiet))
    put_lines(["", *found.page(style_of(sys.stdout))])
