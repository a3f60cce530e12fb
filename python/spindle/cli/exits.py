"""What the program's exit status says."""

from __future__ import annotations

import sys
from enum import IntEnum


class Exit(IntEnum):
    """Exit status."""

    FINE = 0
    FAILED = 1
    """The run failed, was stopped, or a verdict is invalid. One line on stderr says why: an error's own, or that of
    `failed`."""
    USAGE = 2
    """What was asked for is wrong."""
    REFUSED = 3
    """It could have destroyed data."""


def failed(reason: str) -> Exit:
    """The status of a verb that did its work and found something bad, with its line on stderr."""
    from spindle.cli.failure import one_line

    sys.stdout.flush()
    print(f"spindle: {one_line(reason)}", file=sys.stderr)
    return Exit.FAILED
