"""Computes modelled trials before their turn, several at the same time.

The stored results and their order are the same: a modelled trial depends only on machine, workload and seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from spindle.campaign.prepare import ReadyCell
from spindle.campaign.trial import TrialResult, simulated
from spindle.result.record import Record
from spindle.run.engine import EngineOptions
from spindle.run.watch import SilentWatch, Watch

_LOOK_S = 0.2


class Lookahead:
    """Running computations."""

    def __init__(self, pool: ThreadPoolExecutor | None, engine_options: EngineOptions) -> None:
        self._pool, self._making = pool, engine_options
        self._coming: dict[tuple[str, int], Future[Record]] = {}

    def begin(self, prepared: ReadyCell, seed: int) -> None:
        """Start a trial, unless it has begun or is not modelled."""
        asked = prepared.cell.key, seed
        if self._pool is not None and prepared.on.is_modelled and asked not in self._coming:
            self._coming[asked] = self._pool.submit(simulated, prepared, seed, self._making, SilentWatch(), "")

    def result(self, prepared: ReadyCell, seed: int, watch: Watch, label: str) -> TrialResult | None:
        """The result; None: the trial was not started."""
        future = self._coming.pop((prepared.cell.key, seed), None)
        if future is None:
            return None
        watch.step(label)
        while True:
            try:
                return TrialResult(future.result(_LOOK_S))
            except TimeoutError:
                continue  # signals are handled in between


@contextmanager
def ahead(jobs: int, engine_options: EngineOptions) -> Iterator[Lookahead]:
    """With one job, nothing is computed before its turn."""
    if jobs < 2:
        yield Lookahead(None, engine_options)
        return
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield Lookahead(pool, engine_options)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
