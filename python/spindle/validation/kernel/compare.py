"""Repeated cases compared with the measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from spindle.validation.kernel.cases import ELEVATORS, REQUESTS, Case, read_cases
from spindle.validation.kernel.runner import CaseFigures, MemberFigures, NotModelled, Runner

REQUESTS_WITHIN = 0.02
TIME_WITHIN = 0.05
ELEVATOR_WITHIN = {"bfq": 0.10}
"""Elapsed time and mean latency; other schedulers: `ELEVATOR_TIME_WITHIN`."""
ELEVATOR_TIME_WITHIN = 0.03
LONGEST_WITHIN = 0.20
TIME_GOAL = 0.95
ORDER_GOAL = 0.80
ORDERED = ("none", "mq-deadline", "kyber")
"""Schedulers whose order is the same in each boot."""


class Compared(Struct, frozen=True, kw_only=True):
    """One case. Errors are shares of the measured figure, without sign unless said."""

    case: str
    kind: str
    table: str
    requests_error: float
    """The largest of reads and writes of each member."""
    sectors_error: float | None
    sizes_equal: bool
    time_error: float
    """With sign: above 0, the repeated case took longer."""
    mean_latency_error: float | None
    longest_error: float | None
    orders: int | None
    """Members whose order of requests can be compared."""
    equal_orders: int | None
    measured: CaseFigures
    repeated: CaseFigures

    @property
    def requests_agree(self) -> bool:
        """Requests and sectors of every member are within 2 %."""
        return max(self.requests_error, self.sectors_error or 0.0) <= REQUESTS_WITHIN

    @property
    def time_agrees(self) -> bool:
        """Elapsed time, and below elevators mean latency, are within their bound."""
        if self.table == REQUESTS:
            return abs(self.time_error) <= TIME_WITHIN
        within = ELEVATOR_WITHIN.get(self.kind.split()[0], ELEVATOR_TIME_WITHIN)
        return max(abs(self.time_error), self.mean_latency_error or 0.0) <= within

    @property
    def longest_agrees(self) -> bool:
        """The longest latency of each load is within 20 %."""
        return (self.longest_error or 0.0) <= LONGEST_WITHIN

    @property
    def agrees(self) -> bool:
        """Nothing to list."""
        whole = self.requests_agree and self.time_agrees
        return whole and (self.table == REQUESTS or self.longest_agrees)


class Left(Struct, frozen=True):
    """A case that the runner does not model."""

    case: str
    kind: str
    table: str
    reason: str


class Goal(Struct, frozen=True):
    """A share of cases that must agree."""

    what: str
    share: float
    cases: int
    agreeing: int

    @property
    def reached(self) -> bool:
        """The share is reached; no cases reach every goal."""
        return self.agreeing >= self.share * self.cases


class KernelReport(Struct, frozen=True):
    """All cases of a folder, repeated by one runner."""

    runner: str
    compared: list[Compared]
    left: list[Left]
    goals: list[Goal]


def report(folder: Path, runner: Runner) -> KernelReport:
    """Repeat every case of a folder. Raises CasesError if it cannot be read."""
    cases = read_cases(folder)
    with ThreadPoolExecutor(runner.jobs) as pool:
        outcomes = list(pool.map(lambda case: repeated(case, runner), cases))
    compared = [outcome for outcome in outcomes if isinstance(outcome, Compared)]
    left = [outcome for outcome in outcomes if isinstance(outcome, Left)]
    return KernelReport(runner.name, compared, left, list(goals(compared)))


def repeated(case: Case, runner: Runner) -> Compared | Left:
    """Repeat one case and compare it."""
    try:
        figures = runner.figures(case)
    except NotModelled as reason:
        return Left(case.name, case.kind, case.table, str(reason))
    return compare(case, figures)


def compare(case: Case, figures: CaseFigures) -> Compared:
    """Compare a repeated case with its row."""
    measured = case.measured
    pairs = list(zip(measured.members, figures.members, strict=True))
    loads = list(zip(measured.loads, figures.loads, strict=True))
    ordered = [pair for pair in pairs if pair[0].order_sha1 and pair[1].order_sha1]
    return Compared(
        case=case.name,
        kind=case.kind,
        table=case.table,
        requests_error=max(max(_error(r.reads, m.reads), _error(r.writes, m.writes)) for m, r in pairs),
        sectors_error=max((_sectors_error(m, r) for m, r in pairs), default=None) if case.table == REQUESTS else None,
        sizes_equal=all((m.read_sizes, m.write_sizes) == (r.read_sizes, r.write_sizes) for m, r in pairs),
        time_error=figures.elapsed_ns / measured.elapsed_ns - 1,
        mean_latency_error=max((_error(r.mean_latency_ns, m.mean_latency_ns) for m, r in loads), default=None),
        longest_error=max((_error(r.max_latency_ns, m.max_latency_ns) for m, r in loads), default=None),
        orders=len(ordered) if ordered else None,
        equal_orders=sum(m.order_sha1 == r.order_sha1 for m, r in ordered) if ordered else None,
        measured=measured,
        repeated=figures,
    )


def _error(repeated: int, measured: int) -> float:
    return abs(repeated - measured) / max(measured, 1)


def _sectors_error(measured: MemberFigures, repeated: MemberFigures) -> float:
    reads = _error(repeated.read_sectors or 0, measured.read_sectors or 0)
    return max(reads, _error(repeated.write_sectors or 0, measured.write_sectors or 0))


def goals(compared: Iterable[Compared]) -> list[Goal]:
    """Return the goals with the number of cases that reach them."""
    direct = [of for of in compared if of.table == REQUESTS]
    below = [of for of in compared if of.table == ELEVATORS]
    single = [of for of in below if of.kind in ORDERED and of.orders]

    def goal(what: str, share: float, agree: list[bool]) -> Goal:
        return Goal(what, share, len(agree), sum(agree))

    return [
        goal("requests and sectors of each member within 2 %", TIME_GOAL, [of.requests_agree for of in direct]),
        goal("time within 5 %", TIME_GOAL, [of.time_agrees for of in direct]),
        goal("single drive: same order of requests", ORDER_GOAL, [of.equal_orders == of.orders for of in single]),
        goal("elevators: elapsed and mean within 3 % (bfq 10 %)", TIME_GOAL, [of.time_agrees for of in below]),
        goal("elevators: longest within 20 %", TIME_GOAL, [of.longest_agrees for of in below]),
    ]
