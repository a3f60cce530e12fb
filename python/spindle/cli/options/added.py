"""Several options of a verb at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click


def added(command: click.decorators.FC, options: Sequence[Callable[[Any], Any]]) -> click.decorators.FC:
    """Add the options to a verb; its help shows them in this order."""
    for option in reversed(options):
        command = option(command)
    return command
