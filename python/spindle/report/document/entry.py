"""A record and its selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spindle.base.commands import given, shell
from spindle.result.record import Record


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record of a selection."""

    record: Record
    source: str
    """Its file, or its ID in the store."""
    tags: tuple[str, ...] = ()
    campaign: str | None = None
    cell: Mapping[str, str] = field(default_factory=dict)
    """Campaign factors and their values."""
    block: int | None = None
    """Block of the campaign: its trials ran close together in time."""
    selection: int = 0
    """Number of its selection: cases have the order of the selections."""
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The campaign's factors and their levels as the plan lists them, the baseline first."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A campaign's plan, as stored."""

    name: str
    text: str
    assignments: tuple[str, ...] = ()
    """Changes that `set=` gave: `trials.count=5`."""

    @property
    def file(self) -> str:
        """Name of a file for it."""
        return f"{self.name}.toml"

    @property
    def command(self) -> str:
        """Command that runs it again."""
        return shell("spindle", "campaign", "run", self.file, *given(set=self.assignments))
