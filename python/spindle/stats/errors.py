"""What cannot be compared."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class Incomparable(SpindleError, ValueError):
    """There is nothing to compare, or not so."""

    exit_code = 2
