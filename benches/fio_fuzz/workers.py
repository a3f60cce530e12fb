"""Several benches at the same time, each driven by a process of its own; results come in order."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import TypeVar

from .leftovers import be_killed_with_parent

Place = TypeVar("Place")
Result = TypeVar("Result")


@contextlib.contextmanager
def in_order(
    places: Sequence[Place], work: Callable[[Place, int], Result], first: int
) -> Iterator[Iterator[tuple[int, Result]]]:
    """Number by number from the first on, without an end; on leaving, what is under way is given up."""
    context = multiprocessing.get_context("fork")
    processes = []
    ends: list[Connection] = []
    for place in places:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(place, work, there), daemon=True)
        process.start()
        there.close()
        processes.append(process)
        ends.append(here)
    try:
        yield _results(ends, first)
    finally:
        # Python drops what a signal's handler raises right after a fork: one signal may not be enough.
        while alive := [process for process in processes if process.is_alive()]:
            for process in alive:
                process.terminate()
            alive[0].join(timeout=0.5)


def _results(ends: list[Connection], first: int) -> Iterator[tuple[int, Result]]:
    following = first
    for end in ends:
        end.send(following)
        following += 1
    found: dict[int, Result] = {}
    number = first
    while True:
        while number not in found:
            for end in wait(ends):
                done, result = end.recv()  # type: ignore[union-attr]
                found[done] = result
                end.send(following)  # type: ignore[union-attr]
                following += 1
        yield number, found.pop(number)
        number += 1


def _serve(place: Place, work: Callable[[Place, int], Result], end: Connection) -> None:
    be_killed_with_parent()
    with contextlib.suppress(EOFError):
        while True:
            number: int = end.recv()
            end.send((number, work(place, number)))
