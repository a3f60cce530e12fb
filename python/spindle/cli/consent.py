"""The options by which a person agrees to lose what is on a device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.targets import TARGET

if TYPE_CHECKING:
    from spindle.run.consent import Consent

OPTIONS = (
    click.option(
        "--erase",
        type=TARGET,
        metavar="DEVICE",
        help="Write to this block device, which TARGET names as well; to several: A:B.",
    ),
    click.option(
        "--erase-signature", metavar="TYPE", help="Overwrite this signature too; say what was shown: ext4 or gpt,ext4."
    ),
    click.option(
        "--erase-stacked", is_flag=True, help="Write to a device that is built of other devices (md, dm, loop)."
    ),
    click.option("--erase-shared", is_flag=True, help="Write to a partition while others of its disk are in use."),
    click.option("--yes", is_flag=True, help="Do not ask before a device is overwritten."),
)


def consent_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def consent_of(values: dict[str, Any]) -> Consent:
    """Takes them out of a verb's values."""
    from spindle.run.consent import Consent

    agreed = (
        values.pop("erase"),
        values.pop("erase_signature"),
        values.pop("erase_stacked"),
        values.pop("erase_shared"),
    )
    return Consent(*agreed, None if values.pop("yes") else ask)


def ask(line: str) -> bool:
    """Whether a person agrees; nobody there to answer is a refusal."""
    if not sys.stdin.isatty():
        from spindle.host.errors import Refused

        raise Refused(f"{line.rstrip('.')}: nobody is there to confirm it; --yes confirms beforehand")
    return click.confirm(f"{line} Go on?", default=False, err=True)
