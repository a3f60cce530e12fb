"""Intervals, one after the other, each at its time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from spindle.host.signals import ENDING, held_back

from .interval import Interval, between
from .sample import Sampler
from .selection import Selection


def watch(
    selection: Selection, interval_s: float, count: int | None = None, *, cgroups: bool = True
) -> Iterator[Interval]:
    """Yield intervals until there are `count` of them or a signal arrives. The first begins with the first sample, not
    at boot.

    Samples are due at multiples of the interval after the first. A late sample makes its interval longer and the next
    shorter; rates use the true length. Samples that are overdue by then are skipped.
    """
    sampler = Sampler(selection, cgroups=cgroups)
    with held_back():  # a signal ends the wait and never interrupts the output of a row
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
    """Hold back ending signals until `watch` asks for them. Further ones after the first (Ctrl-C pressed twice) are
    dropped at the end, after the summary was printed."""
    with held_back():
        try:
            yield
        finally:
            while signal.sigtimedwait(_awaited(), 0) is not None:
                pass


def _awaited() -> list[signal.Signals]:
    """Signals to wait for; ignored ones stay ignored (nohup)."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _stopped_before(due: float) -> bool:
    """Wait. Return True if a signal came first."""
    return signal.sigtimedwait(_awaited(), max(0.0, due - time.monotonic())) is not None
