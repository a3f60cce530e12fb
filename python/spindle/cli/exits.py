"""What the program's exit status says."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit status."""

    FINE = 0
    FAILED = 1
    """The run failed, was stopped, or a verdict is invalid."""
    USAGE = 2
    """What was asked for is wrong."""
    REFUSED = 3
    """It could have destroyed data."""
