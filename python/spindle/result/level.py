"""How far a figure can be believed. Apart from the record, which takes time to import: every table has colours."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How far a figure can be believed."""

    OK = "ok"
    WARN = "warn"
    INVALID = "invalid"

    @property
    def rank(self) -> int:
        """0 for ok; the worse, the higher."""
        return list(Level).index(self)
