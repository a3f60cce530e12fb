"""How much time is left of several loads that follow each other, told with each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spindle.result import units
from spindle.run.watch import Moment, Watch


class Whole:
    """A watch of several loads: puts an estimate of the time left of all in front of what it hears, where a narrow
    terminal does not cut it off."""

    def __init__(self, watch: Watch, loads: Sequence[tuple[str, float]]) -> None:
        """`loads`: name and seconds of each, in order; those that may be left out are counted until they are."""
        self._watch = watch
        self._loads = list(loads)
        self._now = 0.0

    def begins(self, name: str) -> None:
        """The next load of this name begins; those before it are over or left out. One that was not planned counts
        as part of the one before."""
        at = next((at for at, (planned, _) in enumerate(self._loads) if planned == name), None)
        if at is not None:
            self._now = self._loads[at][1]
            del self._loads[: at + 1]

    def say(self, text: str) -> None:
        """A line of its own: as it is."""
        self._watch.say(text)

    def step(self, text: str) -> None:
        """Between loads."""
        self._watch.step(self._with_left(text, self._now))

    def portion(self, text: str, done: int, total: int) -> None:
        """Likewise."""
        self._watch.portion(self._with_left(text, self._now), done, total)

    def moment(self, moment: Moment) -> None:
        """Within a load."""
        here = self._now if moment.left_s is None else moment.left_s
        if moment.phase == "done":
            here = 0.0
        self._watch.moment(replace(moment, label=self._with_left(moment.label, here)))

    def end(self) -> None:
        """Nothing goes on any more."""
        self._watch.end()

    def _with_left(self, text: str, here: float) -> str:
        left = here + sum(seconds for _, seconds in self._loads)
        return f"about {units.seconds(round(left))} left in all; {text}" if left >= 1 else text
