"""A record and how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spindle.result.record import Record


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record of a selection."""

    record: Record
    source: str
    """What names it: a file, or its identity in the store."""
    tags: tuple[str, ...] = ()
    campaign: str | None = None
    cell: Mapping[str, str] = field(default_factory=dict)
    """Campaign factors and their values."""
    block: int | None = None
    """Which round of the campaign: trials of one block were taken close together."""
