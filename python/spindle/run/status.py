"""Status reports during a run: its figures so far, at an interval (`status_interval=`, as fio's) and on a signal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from spindle.result.figures import Cpu, EndedByTime, Figures, Stream
from spindle.result.record import RunRecord
from spindle.result.workload import Workload

NOT_BEGUN = ""
"""`started` of a run that waits for others: it has no start time yet."""


@dataclass(frozen=True)
class Report:
    """The state of a run."""

    workload: Workload
    """The workload, with its phases if it has any."""
    runs: list[RunRecord]
    """The finished phases, then the current one; or the run if it has no phases."""
    waiting: list[RunRecord]
    """Phases that have not begun: all their figures are 0."""


@dataclass
class StatusReports:
    """Makes reports of the loads of one workload, in order, and passes them to `write`."""

    write: Callable[[Report], None]
    interval_s: float | None = None
    """None: only `ask` triggers reports."""
    _workload: Workload | None = None
    _done: list[RunRecord] = field(default_factory=list)
    _due: float | None = None
    """Time of the next report; None: no load has begun."""
    _asked: bool = False

    def begin(self, workload: Workload) -> None:
        """From now on, report loads of this workload."""
        self._workload, self._done = workload, []

    @property
    def is_on(self) -> bool:
        """True if loads are reported; preparing loads are not."""
        return self._workload is not None

    def ask(self) -> None:
        """Request a report at once. A signal handler may call this."""
        self._asked = True

    def left_s(self) -> float:
        """Time until the next report; the first call begins the first interval."""
        if self._asked:
            return 0.0
        if self.interval_s is None:
            return math.inf
        now = time.monotonic()
        if self._due is None:
            self._due = now + self.interval_s
        return max(0.0, self._due - now)

    def report(self, current: RunRecord) -> None:
        """Report the current load, and begin the next interval."""
        workload = self._workload
        assert workload is not None
        self._asked = False
        if self._due is not None and self.interval_s is not None:
            missed = math.floor((time.monotonic() - self._due) / self.interval_s)
            self._due += max(0, missed + 1) * self.interval_s
        runs = [*self._done, current]
        following = [phase.load for phase in workload.phases][len(runs) :]
        self.write(Report(workload, runs, [_not_begun(current, load) for load in following]))

    def ended(self, run: RunRecord) -> None:
        """Note that a load has ended."""
        self._done.append(run)


def _not_begun(current: RunRecord, load: Workload) -> RunRecord:
    figures = Figures(
        measured_ns=0,
        elapsed_ns=0,
        ended_by=EndedByTime(),
        streams=[
            Stream(
                name=stream.name,
                measured_ns=0,
                total_bytes=0,
                total_read_bytes=0,
                total_write_bytes=0,
                read=None,
                write=None,
                trim=None,
                zero=None,
                fsync=None,
                mean_outstanding=0.0,
                max_lag_ns=0,
                errors=[],
            )
            for stream in load.streams
        ],
        series=[],
        interval_ns=current.figures.interval_ns,
        cpu=Cpu(user_ns=0, system_ns=0, voluntary_switches=0, involuntary_switches=0),
        generator=current.figures.generator,
    )
    return replace(current, started=NOT_BEGUN, workload=load, seed=load.seed, figures=figures, devices=[])
