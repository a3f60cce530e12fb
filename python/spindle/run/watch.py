"""Events of a run. `report` shows them to people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Moment:
    """The progress of a load."""

    label: str
    """The load: `randomio`, `random read at 8 outstanding` ..."""
    phase: str
    """`calibrate`, `ramp`, `measure`, `sync`, `done`."""
    done_fraction: float | None
    """Completed share of the load; None: its length is unknown."""
    left_s: float | None
    """Estimate of the time left, s."""
    iops: float
    """The current rate."""
    bytes_per_s: float
    errors: int


class Watch(Protocol):
    """Receives events; may show them."""

    def say(self, text: str) -> None:
        """A line that a person should see."""

    def step(self, text: str) -> None:
        """The current step, before there are figures (creating a file, waiting for a sync)."""

    def portion(self, text: str, done: int, total: int) -> None:
        """The current step, with its completed bytes."""

    def moment(self, moment: Moment) -> None:
        """Progress of a load."""

    def end(self) -> None:
        """The last event."""


class SilentWatch:
    """Ignores all events."""

    def say(self, text: str) -> None:
        """Ignore it."""

    def step(self, text: str) -> None:
        """Ignore it."""

    def portion(self, text: str, done: int, total: int) -> None:
        """Ignore it."""

    def moment(self, moment: Moment) -> None:
        """Ignore it."""

    def end(self) -> None:
        """Ignore it."""
