"""`spindle predict`: what a target should deliver."""

from __future__ import annotations

from typing import Any

import click

from spindle.cli.exits import Exit
from spindle.cli.grouped import GroupedCommand
from spindle.cli.options.groups import COMMON, PREDICT
from spindle.cli.options.keys import key_options, overrides_of, set_option
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
from spindle.cli.showing import show


@click.command("predict", cls=GroupedCommand, groups=PREDICT, common=COMMON)
@click.argument("target", type=TARGET)
@click.argument("workload")
@click.option(
    "--calibrate",
    is_flag=True,
    help="TARGET without a data sheet: read its device for some seconds, and describe it by a service time.",
)
@set_option
@key_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str,
    workload: str,
    calibrate: bool,
    assignments: tuple[tuple[str, str], ...],
    json: bool,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Predict what WORKLOAD does on TARGET, with the band that uncertain numbers of the machine give each figure.

    TARGET: a modelled machine (`spindle help simulator`), or a device, a file or a folder, whose block stack is
    inspected. WORKLOAD: as of `spindle run`. Nothing is written; a real device is read only with --calibrate.
    """
    from spindle.cli.session import live_line
    from spindle.library.predicting import predicted

    found = predicted(target, workload, (*overrides_of(values), *assignments), calibrate, live_line(quiet))
    return show(found, json)
