"""Modelled trials computed before it is their turn, several at the same time. What is stored, and in which order, is
the same: the result of a modelled trial depends on nothing but machine, workload and seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from spindle.campaign.prepare import Prepared
from spindle.campaign.trial import Done, simulated
from spindle.result.record import Record
from spindle.run.making import Making
from spindle.run.watch import Silent, Watch

_LOOK_S = 0.2


class Ahead:
    """Trials under way."""

    def __init__(self, pool: ThreadPoolExecutor | None, making: Making) -> None:
        self._pool, self._making = pool, making
        self._coming: dict[tuple[str, int], Future[Record]] = {}

    def begin(self, prepared: Prepared, seed: int) -> None:
        """Unless it has begun, or is not modelled."""
        asked = prepared.cell.key, seed
        if self._pool is not None and prepared.on.is_modelled and asked not in self._coming:
            self._coming[asked] = self._pool.submit(simulated, prepared, seed, self._making, Silent(), "")

    def result(self, prepared: Prepared, seed: int, watch: Watch, label: str) -> Done | None:
        """None: it was not begun."""
        future = self._coming.pop((prepared.cell.key, seed), None)
        if future is None:
            return None
        watch.step(label)
        while True:
            try:
                return Done(future.result(_LOOK_S))
            except TimeoutError:
                continue  # a signal is heard in between


@contextmanager
def ahead(jobs: int, making: Making) -> Iterator[Ahead]:
    """With one job nothing is computed before its turn."""
    if jobs < 2:
        yield Ahead(None, making)
        return
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield Ahead(pool, making)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
