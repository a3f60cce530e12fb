"""Ending signals: none is lost, and none stays blocked."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Iterable

import pytest

from spindle.host.signals import ENDING, Stopped, held_back, unwinding


class Thing:
    pass


@pytest.mark.parametrize("start_s", [0, 0.1])
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_amid_the_collection_of_garbage_is_not_lost(
    number: signal.Signals, start_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ignores what a weak reference's callback raises. The thread that sends the signal again may begin late."""
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        real(thread)
        time.sleep(start_s)

    monkeypatch.setattr(threading.Thread, "start", start)
    things = [Thing()]
    reference = weakref.ref(things[0], lambda _: signal.raise_signal(number))

    @unwinding()
    def work() -> None:
        things.clear()
        time.sleep(60)

    with pytest.raises(Stopped) as found:
        work()
    assert reference() is None
    assert found.value.signum == number


def test_another_error_amid_the_collection_of_garbage_is_reported_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda ignored: said.append(ignored.exc_value))
    thing = Thing()
    with unwinding():
        reference = weakref.ref(thing, lambda _: 1 // 0)
        del thing
    assert reference() is None
    assert [type(one) for one in said] == [ZeroDivisionError]


def test_a_signal_that_comes_as_they_are_held_back_leaves_none_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that blocks them raises it (signalmodule.c: signal_pthread_sigmask_impl)."""
    real = signal.pthread_sigmask

    def interrupted(how: int, numbers: Iterable[int]) -> set[int | signal.Signals]:
        before = set(real(how, numbers))
        if how == signal.SIG_BLOCK and set(numbers):
            raise Stopped(signal.SIGINT)
        return before

    blocked, handlers = real(signal.SIG_BLOCK, ()), [signal.getsignal(number) for number in ENDING]
    monkeypatch.setattr(signal, "pthread_sigmask", interrupted)
    with pytest.raises(Stopped), held_back():
        pass
    assert real(signal.SIG_BLOCK, ()) == blocked
    assert [signal.getsignal(number) for number in ENDING] == handlers


def test_a_signal_to_another_thread_is_held_back_too() -> None:
    """The kernel may give it to any thread that does not block it."""
    done: list[str] = []

    def other() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.kill(os.getpid(), signal.SIGTERM)

    @unwinding()
    def work() -> None:
        with held_back():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            done.append("clean-up")
        done.append("not reached")

    with pytest.raises(Stopped):
        work()
    assert done == ["clean-up"]
