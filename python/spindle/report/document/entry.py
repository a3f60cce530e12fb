"""A record and how it was found."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
    selection: int = 0
    """Which of the selections named it: cases come in the order in which they were named."""
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The campaign's factors and their levels as the plan lists them, the baseline first."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A campaign's plan, as the store has it."""

    name: str
    text: str
    assignments: tuple[str, ...] = ()
    """What `--set` changed of it: `trials.count=5`."""

    @property
    def file(self) -> str:
        """A file for it."""
        return f"{self.name}.toml"

    @property
    def command(self) -> str:
        """Carries it out again."""
        changed = [word for each in self.assignments for word in ("--set", each)]
        return shlex.join(["spindle", "campaign", "run", self.file, *changed])
