"""Signals that end the program unwind it instead, so that test files are removed and devices let go."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asked the program to end. Its exit status by convention is 128 + signum."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@contextmanager
def unwinding() -> Iterator[None]:
    """Within it, SIGINT, SIGTERM and SIGHUP raise `Stopped` in the main thread. What was ignored (nohup) stays so."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        raise Stopped(signum)

    before = {}
    for number in ENDING:
        handler = signal.getsignal(number)
        if handler is not signal.SIG_IGN:
            before[number] = handler
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Within it, those signals wait: a second Ctrl-C must not cut the clean-up short."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
