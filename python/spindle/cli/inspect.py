"""`spindle inspect`: the block stack, of this machine or of a captured one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.targets import TARGET
from spindle.cli.writing import OutputOption, Writing

if TYPE_CHECKING:
    from spindle.host.inspect import Inventory
    from spindle.host.outputs import Output


@click.command("inspect", cls=Writing)
@click.argument("target", type=TARGET, required=False)
@click.option("--root", metavar="PATH", help="Inspect a capture: a folder with sys and proc in it, or a tar.")
@click.option(
    "--capture",
    "into",
    cls=OutputOption,
    kind="capture",
    metavar="FILE.tar[.gz]",
    help="Save what was read to a tar, for `--root` elsewhere.",
)
@click.option("--mask-serials", is_flag=True, help="Replace serial numbers and world-wide names in the capture.")
@click.option(
    "--machine",
    cls=OutputOption,
    kind="machine",
    metavar="FILE.toml",
    help="Save a machine file for the simulator, of the one stack that TARGET names.",
)
@json_option
def command(
    target: str | None, root: str | None, into: Output | None, mask_serials: bool, machine: Output | None, json: bool
) -> Exit:
    """Show the block stack under TARGET (a mount point, a file or a block device) as a tree down to drives and
    controllers, with the settings in force. Without TARGET: everything. Nothing is changed; as root more is learnt.
    """
    if root is not None and into is not None:
        raise click.UsageError("--capture takes this machine; it does not go with --root")
    if mask_serials and into is None:
        raise click.UsageError("--mask-serials is for --capture FILE; what is shown here is not masked")
    from spindle.host.inspect import inspect_stack, open_capture, running

    if into is not None:
        inventory = _capture(target, into, mask_serials)
    else:
        inventory = inspect_stack(target, running() if root is None else open_capture(root))
    if machine is not None:
        _save_machine(inventory, machine)
    return _show(inventory, json)


def _capture(target: str | None, into: Output, mask_serials: bool) -> Inventory:
    from spindle import _core
    from spindle.host.inspect import capture, inspect_stack

    taken = capture(target, mask_serials, _core.__version__)
    into.save(taken.tar(compressed=into.path.name.endswith((".gz", ".tgz"))))
    # What is shown is what the capture will show, masked or not.
    return inspect_stack(target, taken.held) if mask_serials else taken.inventory


def _save_machine(inventory: Inventory, file: Output) -> None:
    from spindle import _core
    from spindle.host.inspect.machine import machine_file

    text = machine_file(inventory, _core.drive_names())
    _core.Machine.parse(text, str(file.path))  # what the simulator would refuse is not saved
    file.save(text.encode())


def _show(inventory: Inventory, json: bool) -> Exit:
    import sys

    from spindle.host.inspect.model import encode
    from spindle.report.inspect import inventory_page
    from spindle.report.style import style_of

    if json:
        sys.stdout.flush()
        sys.stdout.buffer.write(encode(inventory))
        sys.stdout.buffer.flush()
    else:
        for line in inventory_page(inventory, style_of(sys.stdout)):
            print(line)
    return Exit.FINE
