"""Pieces of work on the workers of Dask.

A thread owns the connection: it makes chunks of the pieces that wait, sends them, keeps what comes back, and gives each
result to the one who waits for it. Dask gives the chunk of a worker that died to another one.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from spindle.base import units
from spindle.base.errors import SpindleError
from spindle.cluster.chunks import Waiting
from spindle.cluster.simulation import Simulated, Simulation, build
from spindle.run.errors import RunFailed
from spindle.run.watch import Watch

Piece = TypeVar("Piece")
Result = TypeVar("Result")

POLL_S = 0.2
_THREADS_EVERY_S = 1.0
"""Interval at which the workers are counted."""
_LOST = ("lost", "pending")
"""States of a chunk that was done: its worker died before the result was taken, so it is computed again."""


class OtherBuild(SpindleError):
    """A worker would compute with another build of Spindle."""


class ChunkResult(Struct, Generic[Result]):
    """The answer of a worker."""

    results: list[Result]
    seconds: float


def carry_out(work: Callable[[Piece], Result], pieces: Sequence[Piece], wanted: str) -> ChunkResult[Result]:
    """On the worker: a chunk of pieces. Raises OtherBuild."""
    if build() != wanted:
        raise OtherBuild(f"a worker has spindle {build()}, this computer has {wanted}; install the same wheel on both")
    begun = time.perf_counter()
    results = [work(piece) for piece in pieces]
    return ChunkResult(results, time.perf_counter() - begun)


class DoneChunk(NamedTuple):
    """A chunk that came back."""

    pieces: int
    seconds: float
    """Time that the worker took."""
    at_s: float
    """When it was here, on `time.perf_counter`."""


class Keeper(Protocol[Result]):
    """Keeps results of a run that may be killed."""

    def find(self, keys: Sequence[str]) -> dict[str, Result]:
        """Results that are there, by key."""

    def add(self, results: dict[str, Result]) -> None:
        """Keep results."""

    def forget(self, keys: set[str]) -> None:
        """The run is complete."""

    def close(self) -> None:
        """The last call."""


@dataclass(eq=False)
class _Asked(Generic[Piece, Result]):
    """A piece, and those who wait for its result."""

    piece: Piece
    key: str
    futures: list[Future[Result]] = field(default_factory=list)


@dataclass(frozen=True)
class Progress:
    """Counts since the beginning."""

    done: int
    asked: int
    found: int
    """Results that an earlier run has left."""
    threads: int
    left_s: float | None
    """Time left; None: unknown."""

    def __str__(self) -> str:
        if not self.threads:
            return f"{self.done} of {self.asked} simulations, waiting for workers"
        left = f", {units.seconds(self.left_s)} left" if self.left_s is not None else ""
        kept = f", {self.found} of an earlier run" if self.found else ""
        threads = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        return f"{self.done} of {self.asked} simulations on {threads}{kept}{left}"


class Dispatcher(Generic[Piece, Result]):
    """The thread. `client`: of Dask; `work`: a function of a module that the workers have; `key_of`: equal for pieces
    with equal results; `kind_of`: equal for those that take about the same time."""

    def __init__(
        self,
        client: Any,
        work: Callable[[Piece], Result],
        key_of: Callable[[Piece], str],
        kind_of: Callable[[Piece], str],
        keeper: Callable[[], Keeper[Result]],
    ) -> None:
        self._client, self._work, self._key_of, self._open = client, work, key_of, keeper
        self._waiting: Waiting[_Asked[Piece, Result]] = Waiting(lambda asked: kind_of(asked.piece))
        self._open_keys: dict[str, _Asked[Piece, Result]] = {}
        """Pieces without a result."""
        self._sent: dict[Any, list[_Asked[Piece, Result]]] = {}
        """By future of Dask."""
        self._keys: set[str] = set()
        """Keys of the results that are kept."""
        self._events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._name = f"spindle-{os.urandom(6).hex()}"
        self._lock, self._has_ended = threading.Lock(), False
        self._threads, self._counted = 0, 0.0
        self._done = self._asked = self._found = 0
        self.progress = Progress(0, 0, 0, 0, None)
        """The state now."""
        self.chunks: list[DoneChunk] = []
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)
        self._thread.start()

    def begin(self, pieces: Sequence[Piece]) -> list[Future[Result]]:
        """Start pieces of work."""
        asked: list[_Asked[Piece, Result]] = [_Asked(piece, self._key_of(piece), [Future()]) for piece in pieces]
        with self._lock:
            if self._has_ended:
                raise RunFailed("the workers have ended")
            self._events.put(("begin", asked))
        return [one.futures[0] for one in asked]

    @property
    def threads(self) -> int:
        """Threads of all workers; 0: there is none yet."""
        return self._threads

    def end(self, is_complete: bool) -> None:
        """Stop. `is_complete`: nobody needs the kept results any more."""
        with self._lock:
            self._has_ended = True
            self._events.put(("end", is_complete))
        self._thread.join()

    # --- the thread ---

    def _run(self) -> None:
        keeper: Keeper[Result] | None = None
        try:
            keeper = self._open()
            while True:
                for kind, what in self._next_events():
                    if kind == "end":
                        self._finish(what, keeper)
                        return
                    if kind == "begin":
                        self._take(what, keeper)
                    else:
                        self._receive(what, keeper)
                self._count_threads()
                self._send()
                self.progress = self._counts()
        except BaseException as error:
            self._give_up(error)
        finally:
            if keeper is not None:
                keeper.close()

    def _finish(self, is_complete: bool, keeper: Keeper[Result]) -> None:
        self._refuse(RunFailed("stopped"))  # those who wait in other threads
        if is_complete:
            keeper.forget(self._keys)

    def _counts(self) -> Progress:
        work = self._waiting.seconds_left(self._sent.values())
        left_s = work / self._threads if work is not None and self._threads else None
        return Progress(self._done, self._asked, self._found, self._threads, left_s)

    def _next_events(self) -> list[tuple[str, Any]]:
        found = []
        try:
            found.append(self._events.get(timeout=POLL_S))
            while True:
                found.append(self._events.get_nowait())
        except queue.Empty:
            return found

    def _give_up(self, error: BaseException) -> None:
        """Everyone who waits, and will wait, gets the error."""
        self._refuse(error)
        while True:
            kind, what = self._events.get()
            if kind == "end":
                return
            if kind == "begin":
                for asked in what:
                    asked.futures[0].set_exception(error)

    def _refuse(self, error: BaseException) -> None:
        for asked in self._open_keys.values():
            for future in asked.futures:
                future.set_exception(error)
        self._open_keys.clear()

    def _take(self, asked: Sequence[_Asked[Piece, Result]], keeper: Keeper[Result]) -> None:
        there = keeper.find([one.key for one in asked])
        new = []
        for one in asked:
            self._asked += 1
            if one.key in there:
                self._done += 1
                self._found += 1
                self._keys.add(one.key)
                one.futures[0].set_result(there[one.key])
            elif one.key in self._open_keys:
                self._open_keys[one.key].futures += one.futures
            else:
                self._open_keys[one.key] = one
                new.append(one)
        self._waiting.add(new)

    def _send(self) -> None:
        while some := self._waiting.next(self._threads, len(self._sent)):
            future = self._client.submit(
                carry_out,
                self._work,
                [one.piece for one in some],
                build(),
                key=f"{self._name}-{next(self._numbers)}",
                pure=False,
            )
            self._sent[future] = some
            future.add_done_callback(lambda done: self._events.put(("done", done)))

    def _receive(self, future: Any, keeper: Keeper[Result]) -> None:
        some = self._sent.pop(future)
        if future.status in _LOST:
            future.release()
            self._waiting.add(some)
            return
        if future.status != "finished":
            raise self._reason(future)
        try:
            chunk: ChunkResult[Result] = future.result()
        except (OSError, TimeoutError) as error:  # the scheduler ends meanwhile
            raise self._gone(error) from None
        except Exception:  # the chunk is lost meanwhile, and not computed again
            if future.status == "finished":
                raise
            raise self._reason(future) from None
        future.release()
        keeper.add({one.key: result for one, result in zip(some, chunk.results, strict=True)})
        self._keys.update(one.key for one in some)
        self.chunks.append(DoneChunk(len(some), chunk.seconds, time.perf_counter()))
        self._waiting.took(self._waiting.kind_of(some[0]), chunk.seconds, len(some))
        for one, result in zip(some, chunk.results, strict=True):
            del self._open_keys[one.key]
            self._done += len(one.futures)
            for waiting in one.futures:
                waiting.set_result(result)

    def _count_threads(self) -> None:
        if self._client.status != "running":
            raise self._gone(None)
        now = time.monotonic()
        if now - self._counted < _THREADS_EVERY_S:
            return
        try:
            self._threads = sum(self._client.nthreads().values())
        except (OSError, TimeoutError) as error:
            raise self._gone(error) from None
        self._counted = now

    def _gone(self, error: Exception | None) -> RunFailed:
        why = f" ({error})" if error is not None and str(error) else ""
        return RunFailed(
            f"the scheduler at {self._client.scheduler.address} is gone{why}; start it again: "
            "the same command goes on behind the chunks that are done"
        )

    def _reason(self, future: Any) -> Exception:
        """The error of a chunk without a result."""
        if future.status != "error":
            return self._gone(None)
        error = future.exception()
        if isinstance(error, SpindleError):
            return error
        if type(error).__name__ == "KilledWorker":
            return RunFailed(
                "a chunk has ended every worker that it was given to; are they killed for their use of memory? "
                "The same command goes on behind the chunks that are done"
            )
        if isinstance(error, ModuleNotFoundError):
            return RunFailed(f"a worker lacks spindle ({error}); install the same wheel there")
        return RunFailed(f"a worker failed: {type(error).__name__}: {error}")


class Workers:
    """Simulations on workers, as `Place`."""

    is_here = False

    def __init__(self, dispatcher: Dispatcher[Simulation, Simulated]) -> None:
        self._dispatcher = dispatcher

    @property
    def threads(self) -> int:
        """See `Place`."""
        return max(1, self._dispatcher.threads)

    def __str__(self) -> str:
        return str(self._dispatcher.progress)

    def begin(self, pieces: Sequence[Simulation]) -> list[Future[Simulated]]:
        """Start simulations; each result comes when it is there."""
        return self._dispatcher.begin(pieces)

    def figures(self, pieces: Sequence[Simulation], watch: Watch, label: str) -> list[str]:
        """See `Place`."""
        return [self.wait(future, watch, label).read() for future in self.begin(pieces)]

    def wait(self, future: Future[Simulated], watch: Watch, label: str) -> Simulated:
        """The result of a simulation that has begun. Signals are handled in between."""
        while True:
            try:
                return future.result(POLL_S)
            except TimeoutError:
                if threading.current_thread() is threading.main_thread():
                    watch.step(f"{label}: {self}")
