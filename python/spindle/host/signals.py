"""Ending signals unwind the program, so that test files are removed and devices released."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asked the program to end. The exit status is 128 + signum by convention."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@contextmanager
def unwinding() -> Iterator[None]:
    """Raise `Stopped` in the main thread at SIGINT, SIGTERM and SIGHUP. Ignored signals stay ignored (nohup)."""

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
    """Delay these signals: a second Ctrl-C must not interrupt the clean-up.

    They are blocked, so that programs started meanwhile are spared too. That covers only this thread: signals that the
    kernel delivers to another thread (of the I/O engine) are recorded, and sent again at the end.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    noted: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # Python runs handlers only there
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


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Note these signals and nothing else; the value is true once one came. For code that looks from time to time and
    must not be interrupted; in another thread than the main one nothing is noted.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: bool(came)
        return
    numbers = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda signum, _frame: came.append(signum)) for number in numbers}
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    try:
        yield lambda: bool(came)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)


def unwinding_here() -> AbstractContextManager[None]:
    """`unwinding`, where signals can be handled at all."""
    return unwinding() if threading.current_thread() is threading.main_thread() else nullcontext()
