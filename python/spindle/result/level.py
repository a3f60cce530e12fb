"""How reliable a figure is. Apart from the record, which is slow to import: every table needs the colours."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How reliable a figure is."""

    OK = "ok"
    WARN = "warn"
    INVALID = "invalid"

    @property
    def rank(self) -> int:
        """0 for ok; higher is worse."""
        return list(Level).index(self)
