"""Clients whose requests were not served in time."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.result.figures import Stream, Worker
from spindle.result.workload import Open, WorkloadStream

LEAST_SHARE = 0.95
"""A client that gets less than this share of its rate falls behind more and more."""


@dataclass(frozen=True)
class Client:
    """One worker of an open loop: it requests one piece every period."""

    stream: str
    worker: Worker
    asked_iops: float
    measured_s: float

    @property
    def share(self) -> float:
        """Its rate as a share of the rate that it asked for."""
        return self.worker.iops / self.asked_iops

    @property
    def period_ns(self) -> float:
        """Time from one piece to the next."""
        return 1e9 / self.asked_iops

    @property
    def starved(self) -> bool:
        """True if it got less than 95 % of its rate (without the piece in flight at the end), or if one piece in a
        hundred came later than the next was due: a player with a buffer of one piece stalls then.
        """
        least = LEAST_SHARE * self.asked_iops * self.measured_s - 1
        return self.worker.requests < least or self.worker.p99_ns > self.period_ns


def clients(asked: WorkloadStream, got: Stream) -> list[Client]:
    """The workers of a stream with a rate; empty if they have no figures of their own."""
    if not isinstance(asked.arrival, Open):
        return []
    each = asked.arrival.rate_iops / asked.workers
    return [Client(got.name, worker, each, got.measured_ns / 1e9) for worker in got.workers]
