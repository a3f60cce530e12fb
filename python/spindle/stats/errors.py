"""Errors of comparisons."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class Incomparable(SpindleError, ValueError):
    """The inputs cannot be compared."""

    exit_code = 2
