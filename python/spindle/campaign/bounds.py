"""Ends a trial of a search that breaks a bound: its figures up to then say by how much, and that is enough."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spindle.campaign.plan import Limit
from spindle.host.signals import Stopped
from spindle.run.engine import EngineOptions
from spindle.run.resolve import ResolvedWorkload
from spindle.run.status import Report, StatusReports
from spindle.stats.metric import values
from spindle.stats.names import metric

LOOK_S = 1.0
PATIENCE_S = 2.5
"""A trial whose figures so far break a bound for so long is ended: within 5 s, with the looks before and after."""


class BoundBroken(Stopped):
    """Ends the load as a person would."""


@dataclass
class BoundWatch:
    """Looks at the figures of a trial while it runs."""

    limits: Sequence[Limit]
    reason: str = ""
    """The bound that was broken, and by what; empty: none."""
    _since: float | None = None
    _clock: float = field(default_factory=time.monotonic)

    def look(self, found: Mapping[str, float]) -> bool:
        """Look at the figures so far. True: end the trial."""
        broken = [one for one in self.limits if is_broken(one, found.get(one.metric))]
        now = time.monotonic()
        if not broken:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now - self._since < PATIENCE_S:
            return False
        one = broken[0]
        self.reason = f"broke {one.text}: {in_unit(one.metric, found[one.metric])} after {now - self._clock:.0f} s"
        return True

    def watching(self, options: EngineOptions, workload: ResolvedWorkload) -> EngineOptions:
        """Options of the engine with reports to this watch; those of before where there is nothing to watch."""
        if not self.limits or workload.spec.phases:
            return options
        status = StatusReports(self._report, LOOK_S)
        status.begin(workload.spec)
        self._clock = time.monotonic()
        return replace(options, status=status)

    def _report(self, report: Report) -> None:
        if self.look(values(report.runs[-1])):
            raise BoundBroken(signal.SIGINT)


def is_broken(limit: Limit, value: float | None) -> bool:
    """True if a value is on the wrong side."""
    if value is None:
        return False
    return value > limit.limit if limit.upper else value < limit.limit


def in_unit(name: str, value: float) -> str:
    """`45 ms`, `310 1/s`."""
    unit = metric(name).unit
    if unit == "ns":
        return f"{value / 1e6:.3g} ms"
    return f"{value / 1e6:.4g} MB/s" if unit == "B/s" else f"{value:.4g} {unit}"
