"""`spindle inspect`: the block stack, of this machine or of a captured one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
from spindle.cli.showing import show
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.command("inspect", cls=WritingCommand)
@click.argument("target", type=TARGET, required=False)
@click.option("--root", metavar="PATH", help="Inspect a capture: a folder that contains sys and proc, or a tar.")
@click.option(
    "--capture",
    "into",
    cls=OutputOption,
    kind="capture",
    metavar="FILE.tar[.gz]",
    help="Save the system files that were read to a tar, for `--root` elsewhere.",
)
@click.option("--mask-serials", is_flag=True, help="Replace serial numbers and world-wide names in the capture.")
@click.option(
    "--machine",
    cls=OutputOption,
    kind="machine",
    metavar="FILE.toml",
    help="Save a machine file for the simulator, of TARGET's stack.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="With --machine: describe TARGET's device by reading it for some seconds, instead of by data sheets.",
)
@json_option
def command(
    target: str | None,
    root: str | None,
    into: Output | None,
    mask_serials: bool,
    machine: Output | None,
    calibrate: bool,
    json: bool,
) -> Exit:
    """Show the block stack under TARGET (a mount point, a file or a block device) as a tree down to drives and
    controllers, with the current settings. Without TARGET: everything. Nothing is changed; root sees more.
    """
    if root is not None and into is not None:
        raise click.UsageError("--capture is of this machine; it excludes --root")
    if mask_serials and into is None:
        raise click.UsageError("--mask-serials is for --capture FILE; the output here is not masked")
    if calibrate and (machine is None or root is not None or target is None):
        raise click.UsageError("--calibrate reads TARGET's device for --machine FILE; give both, without --root")

    from spindle.library.stack import inspect, saved

    stack = saved(into, target, mask_serials) if into is not None else inspect(target, root=root)
    if machine is not None:
        machine.save(stack.to_machine(str(machine.path), calibrate=calibrate).encode())
    return show(stack, json)
