"""Ending signals unwind the program, so that test files are removed and devices released."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOMENT_S = 0.01


class Stopped(KeyboardInterrupt):
    """A signal asked the program to end. The exit status is 128 + signum by convention."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@contextmanager
def unwinding() -> Iterator[None]:
    """Raise `Stopped` in the main thread at SIGINT, SIGTERM and SIGHUP. Ignored signals stay ignored (nohup).

    Python ignores what is raised while it collects garbage (weak references' callbacks, `__del__`): a signal that came
    then comes again a moment later.
    """

    in_hook = False

    def stop(signum: int, _frame: FrameType | None) -> None:
        # What the hook raises is ignored too; the signal that comes again stands for this one.
        if not in_hook:
            raise Stopped(signum)

    hook = sys.unraisablehook
    main = threading.get_ident()

    def send_later(signum: int) -> None:
        time.sleep(_MOMENT_S)
        while in_hook:  # on a busy machine a thread may take longer than a moment to begin
            time.sleep(_MOMENT_S)
        signal.pthread_kill(main, signum)

    def come_again(ignored: sys.UnraisableHookArgs) -> None:
        nonlocal in_hook
        if not isinstance(ignored.exc_value, Stopped):
            hook(ignored)
            return
        in_hook = True
        try:
            threading.Thread(target=send_later, args=(ignored.exc_value.signum,), daemon=True).start()
        finally:
            in_hook = False

    with ExitStack() as undo:
        undo.callback(setattr, sys, "unraisablehook", hook)
        sys.unraisablehook = come_again
        for number, handler in _handlers().items():
            undo.callback(signal.signal, number, handler)
            signal.signal(number, stop)
        yield


@contextmanager
def held_back() -> Iterator[None]:
    """Delay these signals: a second Ctrl-C must not interrupt the clean-up.

    They are blocked, so that programs started meanwhile are spared too. That covers only this thread: signals that the
    kernel delivers to another thread (of the I/O engine) are recorded, and sent again at the end.
    """
    noted: list[int] = []

    def send_again() -> None:
        for signum in dict.fromkeys(noted):
            signal.raise_signal(signum)

    with ExitStack() as undo:
        # A signal that came before it is blocked is raised by the very call that blocks it.
        undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        undo.callback(send_again)
        if threading.current_thread() is threading.main_thread():  # Python runs handlers only there
            for number, handler in _handlers().items():
                undo.callback(signal.signal, number, handler)
                signal.signal(number, lambda signum, _frame: noted.append(signum))
        yield


def _handlers() -> dict[signal.Signals, Any]:
    """Handlers of these signals; without those that are ignored."""
    handlers = {number: signal.getsignal(number) for number in ENDING}
    return {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Note these signals and nothing else; the value is true once one came. For code that looks from time to time and
    must not be interrupted; in another thread than the main one nothing is noted.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: bool(came)
        return
    before = _handlers()
    with ExitStack() as undo:
        for number, handler in before.items():
            undo.callback(signal.signal, number, handler)
            signal.signal(number, lambda signum, _frame: came.append(signum))
        undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_UNBLOCK, before))
        yield lambda: bool(came)


def unwinding_here() -> AbstractContextManager[None]:
    """`unwinding`, where signals can be handled at all."""
    return unwinding() if threading.current_thread() is threading.main_thread() else nullcontext()
