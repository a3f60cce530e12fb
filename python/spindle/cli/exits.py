"""The program's exit status."""

from __future__ import annotations

import sys
from enum import IntEnum


class Exit(IntEnum):
    """Exit status."""

    FINE = 0
    FAILED = 1
    """The run failed, was stopped, or a verdict is invalid. One line on stderr says why: the error's, or the one of
    `failed`."""
    USAGE = 2
    """Wrong arguments."""
    REFUSED = 3
    """Refused, because it could have destroyed data."""


def failed(reason: str) -> Exit:
    """Print why on stderr and return the status of a verb that did its work and found something bad."""
    from spindle.cli.failure import one_line

    sys.stdout.flush()
    print(f"spindle: {one_line(reason)}", file=sys.stderr)
    return Exit.FAILED
