"""Computes modelled trials before their turn, several at the same time.

The stored results and their order are the same: a modelled trial depends only on machine, workload and seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

from spindle.campaign.prepare import ReadyCell
from spindle.campaign.trial import TrialResult, seeded, simulated
from spindle.cluster.choice import Choice
from spindle.cluster.sharing import opened
from spindle.cluster.simulation import Simulated, Simulation
from spindle.cluster.workers import Workers
from spindle.result.record import Record
from spindle.run.engine import EngineOptions
from spindle.run.resolve import ResolvedWorkload
from spindle.run.targets import MachineTarget
from spindle.run.watch import SilentWatch, Watch

_LOOK_S = 0.2
_REACH = 4000
"""Trials that are computed on workers before their turn, at most: chunks are made of them."""


class Lookahead(Protocol):
    """Running computations."""

    @property
    def reach(self) -> int:
        """Trials that should begin now, from the next one on."""

    def begin(self, prepared: ReadyCell, seed: int) -> None:
        """Start a trial, unless it has begun or cannot be computed here."""

    def result(self, prepared: ReadyCell, seed: int, watch: Watch, label: str) -> TrialResult | None:
        """The result; None: the trial was not started."""


class InThreads:
    """On threads of this process; without a pool, nothing is computed before its turn."""

    def __init__(self, pool: ThreadPoolExecutor | None, jobs: int, engine_options: EngineOptions) -> None:
        self._pool, self._making = pool, engine_options
        self._coming: dict[tuple[str, int], Future[Record]] = {}
        self.reach = jobs + 1 if pool is not None else 0

    def begin(self, prepared: ReadyCell, seed: int) -> None:
        """See `Lookahead`."""
        asked = prepared.cell.key, seed
        if self._pool is not None and prepared.on.is_modelled and asked not in self._coming:
            self._coming[asked] = self._pool.submit(simulated, prepared, seed, self._making, SilentWatch(), "")

    def result(self, prepared: ReadyCell, seed: int, watch: Watch, label: str) -> TrialResult | None:
        """See `Lookahead`."""
        future = self._coming.pop((prepared.cell.key, seed), None)
        if future is None:
            return None
        watch.step(label)
        while True:
            try:
                return TrialResult(future.result(_LOOK_S))
            except TimeoutError:
                continue  # signals are handled in between


class OnWorkers:
    """On workers. The record is made here, of their figures."""

    def __init__(self, workers: Workers, engine_options: EngineOptions) -> None:
        self._workers, self._making = workers, engine_options
        self._coming: dict[tuple[str, int], list[tuple[str, Future[Simulated]]]] = {}

    @property
    def reach(self) -> int:
        """See `Lookahead`. All at once when half of them are done, so that there is something to make chunks of."""
        return _REACH if len(self._coming) <= _REACH // 2 else 0

    def begin(self, prepared: ReadyCell, seed: int) -> None:
        """See `Lookahead`."""
        asked = prepared.cell.key, seed
        if isinstance(prepared.on, MachineTarget) and asked not in self._coming:
            text, loads = prepared.on.read(), loads_of(seeded(prepared, seed))
            pieces = [Simulation(text, load, self._making.interval_ns, kind="trial") for load in loads]
            self._coming[asked] = list(zip(loads, self._workers.begin(pieces), strict=True))

    def result(self, prepared: ReadyCell, seed: int, watch: Watch, label: str) -> TrialResult | None:
        """See `Lookahead`."""
        coming = self._coming.pop((prepared.cell.key, seed), None)
        if coming is None:
            return None
        known: Mapping[str, str] = {load: self._workers.wait(of, watch, label).read() for load, of in coming}
        return TrialResult(simulated(prepared, seed, self._making, watch, label, known))


def loads_of(workload: ResolvedWorkload) -> list[str]:
    """The loads that a run consists of, as JSON of the core."""
    return [load.core.to_json() for load in workload.phases or [workload]]


@contextmanager
def ahead(jobs: int, where: Choice, engine_options: EngineOptions, watch: Watch) -> Iterator[Lookahead]:
    """The computations of a campaign. Raises Usage or RunFailed where there are no workers."""
    if not where.is_here:
        with opened(where, watch) as place:
            assert isinstance(place, Workers)
            yield OnWorkers(place, engine_options)
        return
    if jobs < 2:
        yield InThreads(None, jobs, engine_options)
        return
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield InThreads(pool, jobs, engine_options)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
