"""One report after the other, each at its time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..signals import ENDING, held_back
from .report import Report, between
from .sample import Sampler
from .selection import Selection


def watch(
    selection: Selection, interval_s: float, count: int | None = None, *, cgroups: bool = True
) -> Iterator[Report]:
    """Reports, the first of the time since the first sample (not since boot), until `count` of them were made or a
    signal asks for the end.

    The next sample is due at a multiple of the interval after the first: a late one makes its interval longer and the
    next shorter, and rates are taken over the time that really passed. What is due by then is left out.
    """
    sampler = Sampler(selection, cgroups=cgroups)
    with held_back():  # a signal ends the wait, and never cuts a row in two
        before = sampler.take()
        start, step, made = time.monotonic(), 0, 0
        while count is None or made < count:
            step = max(step + 1, int((time.monotonic() - start) / interval_s) + 1)
            if _stopped_before(start + step * interval_s):
                return
            after = sampler.take()
            yield between(before, after)
            before, made = after, made + 1


@contextmanager
def signals_kept() -> Iterator[None]:
    """Within it, signals that end the program wait until `watch` asks for them; those that came on top of the one that
    ended it (Ctrl-C pressed twice) are forgotten at the end, after what had to be said was said."""
    with held_back():
        try:
            yield
        finally:
            while signal.sigtimedwait(_awaited(), 0) is not None:
                pass


def _awaited() -> list[signal.Signals]:
    """What was ignored stays ignored (nohup)."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _stopped_before(due: float) -> bool:
    """Wait; whether a signal came first."""
    return signal.sigtimedwait(_awaited(), max(0.0, due - time.monotonic())) is not None
