"""What a run tells while it goes on. The room that shows it to a person is `report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Moment:
    """Where a load is."""

    label: str
    """Which load: `randomio`, `random read at 8 outstanding` ..."""
    phase: str
    """`calibrate`, `ramp`, `measure`, `sync`, `done`."""
    done_fraction: float | None
    """Share of the load that is over; None: its length is not known."""
    left_s: float | None
    """Estimate of the time left, s."""
    iops: float
    """Over the last moments."""
    bytes_per_s: float
    errors: int


class Watch(Protocol):
    """Hears what happens; may show it."""

    def say(self, text: str) -> None:
        """A line a person should see."""

    def step(self, text: str) -> None:
        """What is being done now, before there are figures (creating a file, waiting for a sync)."""

    def portion(self, text: str, done: int, total: int) -> None:
        """The same, with how many bytes of it are done."""

    def moment(self, moment: Moment) -> None:
        """A load goes on."""

    def end(self) -> None:
        """Nothing goes on any more."""


class Silent:
    """Hears and shows nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def step(self, text: str) -> None:
        """Nothing."""

    def portion(self, text: str, done: int, total: int) -> None:
        """Nothing."""

    def moment(self, moment: Moment) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""
