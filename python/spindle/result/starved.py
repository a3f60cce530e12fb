"""Clients that did not get in time what they asked for."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.result.figures import Stream, Worker
from spindle.result.workload import Open, WorkloadStream

LEAST_SHARE = 0.95
"""A client that gets less than this share of its rate falls behind without end."""


@dataclass(frozen=True)
class Client:
    """One worker of an open loop: who asks for a piece every so often."""

    stream: str
    worker: Worker
    asked_iops: float
    measured_s: float

    @property
    def share(self) -> float:
        """What it got of what it asked for."""
        return self.worker.iops / self.asked_iops

    @property
    def period_ns(self) -> float:
        """From one piece to the next."""
        return 1e9 / self.asked_iops

    @property
    def starved(self) -> bool:
        """It got less than 95 % of its rate (the piece under way at the end left out), or one piece in a hundred came
        later than the next was due: who plays what comes, with one piece in hand, has a gap then."""
        least = LEAST_SHARE * self.asked_iops * self.measured_s - 1
        return self.worker.requests < least or self.worker.p99_ns > self.period_ns


def clients(asked: WorkloadStream, got: Stream) -> list[Client]:
    """The workers of a stream with a rate; none where they have no figures of their own."""
    if not isinstance(asked.arrival, Open):
        return []
    each = asked.arrival.rate_iops / asked.workers
    return [Client(got.name, worker, each, got.measured_ns / 1e9) for worker in got.workers]
