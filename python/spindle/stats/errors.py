"""What cannot be compared."""

from __future__ import annotations


class Incomparable(ValueError):
    """There is nothing to compare, or not so: one line."""
