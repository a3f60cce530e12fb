"""Time left of several successive loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spindle.base import units
from spindle.run.watch import Moment, Watch


class TotalTimeWatch:
    """A watch of several loads: puts an estimate of the total time left in front of each line, where a narrow
    terminal does not cut it off.
    """

    def __init__(self, watch: Watch, loads: Sequence[tuple[str, float]]) -> None:
        """`loads`: name and seconds of each, in order; optional ones count until they are skipped."""
        self._watch = watch
        self._loads = list(loads)
        self._now = 0.0

    def begins(self, name: str) -> None:
        """Begin the next load of this name; earlier ones are finished or skipped. An unplanned one counts as part of
        the one before.
        """
        at = next((at for at, (planned, _) in enumerate(self._loads) if planned == name), None)
        if at is not None:
            self._now = self._loads[at][1]
            del self._loads[: at + 1]

    def say(self, text: str) -> None:
        """A line of its own, unchanged."""
        self._watch.say(text)

    def step(self, text: str) -> None:
        """A step between loads."""
        self._watch.step(self._with_left(text, self._now))

    def portion(self, text: str, done: int, total: int) -> None:
        """The same with completed bytes."""
        self._watch.portion(self._with_left(text, self._now), done, total)

    def moment(self, moment: Moment) -> None:
        """Progress within a load."""
        here = self._now if moment.left_s is None else moment.left_s
        if moment.phase == "done":
            here = 0.0
        self._watch.moment(replace(moment, label=self._with_left(moment.label, here)))

    def end(self) -> None:
        """The last event."""
        self._watch.end()

    def _with_left(self, text: str, here: float) -> str:
        left = here + sum(seconds for _, seconds in self._loads)
        return f"about {units.seconds(round(left))} left in all; {text}" if left >= 1 else text
