"""Options that give consent to overwrite a device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.options.added import added
from spindle.cli.options.targets import TARGET

if TYPE_CHECKING:
    from spindle.run.consent import Consent

OPTIONS = (
    click.option(
        "--erase",
        type=TARGET,
        metavar="DEVICE",
        help="Allow writing to this block device, the same as TARGET; several: A:B.",
    ),
    click.option(
        "--erase-signature",
        metavar="TYPE",
        help="Overwrite this signature too; give its name as shown: ext4 or gpt,ext4.",
    ),
    click.option(
        "--erase-stacked", is_flag=True, help="Allow writing to a device built of other devices (md, dm, loop)."
    ),
    click.option(
        "--erase-shared", is_flag=True, help="Allow writing to a partition while others on its disk are in use."
    ),
    click.option("--yes", is_flag=True, help="Do not ask before overwriting a device."),
)


def consent_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the consent options to a verb."""
    return added(command, OPTIONS)


def consent_of(values: dict[str, Any]) -> Consent:
    """Take the consent options out of a verb's values."""
    from spindle.run.consent import Consent

    agreed = (
        values.pop("erase"),
        values.pop("erase_signature"),
        values.pop("erase_stacked"),
        values.pop("erase_shared"),
    )
    return Consent(*agreed, None if values.pop("yes") else ask)


def confirmed(values: dict[str, Any]) -> dict[str, Any]:
    """A verb's values with `confirm` of the library in place of `--yes`."""
    return {name: value for name, value in values.items() if name != "yes"} | {
        "confirm": None if values["yes"] else ask
    }


def ask(line: str) -> bool:
    """Ask for confirmation. Without a terminal it is refused."""
    if not sys.stdin.isatty():
        from spindle.host.errors import Refusal

        raise Refusal(f"{line.rstrip('.')}: there is no terminal to confirm it; --yes confirms beforehand")
    return click.confirm(f"{line} Go on?", default=False, err=True)
