"""Signals that end the program unwind it instead, so that test files are removed and devices let go."""

from __future__ import annotations

import signal
import threading
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
    """Within it, those signals wait: a second Ctrl-C must not cut the clean-up short.

    Blocked, so that programs started meanwhile are spared too. That holds for this thread alone: what the kernel gives
    to another thread (of the I/O engine) is noted, and sent again at the end.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    noted: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # handlers run in no other
        handlers = {number: signal.getsignal(number) for number in ENDING}
        before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda signum, _frame: noted.append(signum))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for signum in dict.fromkeys(noted):
            signal.raise_signal(signum)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
