"""Repeated cases compared with the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from spindle.base.errors import NotModelled
from spindle.validation.kernel.cases import ELEVATORS, REQUESTS, Case, CasesError, read_cases
from spindle.validation.kernel.runner import CaseFigures, MemberFigures, Runner

REQUESTS_WITHIN = 0.02
TIME_WITHIN = 0.05
ELEVATOR_WITHIN = {"bfq": 0.10}
"""Elapsed time and mean latency; other schedulers: `ELEVATOR_TIME_WITHIN`."""
ELEVATOR_TIME_WITHIN = 0.03
LONGEST_WITHIN = 0.20
TIME_GOAL = 0.95
ORDER_GOAL = 0.80
EXACT_TIME_WITHIN = 0.001
LISTED_SIZES = 12
"""Sizes of requests that a table names."""
ORDERED = ("none", "mq-deadline", "kyber")
"""Schedulers whose order is the same in each boot."""


class CaseComparison(Struct, frozen=True, kw_only=True):
    """One case. Errors are shares of the measured figure, without sign unless said."""

    case: str
    kind: str
    table: str
    requests_error: float
    """The largest of reads and writes of each member."""
    sectors_error: float | None
    sizes_equal: bool
    """Each member had as many requests of each size."""
    time_error: float
    """With sign: above 0, the repeated case took longer."""
    mean_latency_error: float | None
    longest_error: float | None
    orders: int | None
    """Members whose order of requests can be compared."""
    equal_orders: int | None
    traces: int | None
    """Members whose requests can be compared with their times; none of the simulator's."""
    equal_traces: int | None
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
    def is_same(self) -> bool:
        """Every request of every member came at the same nanosecond."""
        return self.traces is not None and self.equal_traces == self.traces

    @property
    def is_repeated(self) -> bool:
        """The same requests in the same time, within 0.1 %; below an elevator in the same order."""
        same_order = self.orders is None or self.orders == self.equal_orders
        return self.is_same or (self.sizes_equal and same_order and abs(self.time_error) <= EXACT_TIME_WITHIN)

    @property
    def agrees(self) -> bool:
        """Nothing to list."""
        whole = self.requests_agree and self.time_agrees
        return whole and (self.table == REQUESTS or self.longest_agrees)


class SkippedCase(Struct, frozen=True):
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
    is_exact: bool
    compared: list[CaseComparison]
    skipped: list[SkippedCase]
    goals: list[Goal]


def report(folder: Path, runner: Runner, only: Sequence[str] = ()) -> KernelReport:
    """Repeat the cases of a folder, those alone whose name fits one of the patterns if there are any. Raises
    CasesError.
    """
    cases = read_cases(folder)
    if only:
        cases = [case for case in cases if any(fnmatchcase(case.name, pattern) for pattern in only)]
        if not cases:
            raise CasesError(
                f"{folder}: no case is named {' or '.join(only)}; the first column of its tables names them"
            )
    with ThreadPoolExecutor(runner.jobs) as pool:
        outcomes = list(pool.map(lambda case: repeated(case, runner), cases))
    compared = [outcome for outcome in outcomes if isinstance(outcome, CaseComparison)]
    skipped = [outcome for outcome in outcomes if isinstance(outcome, SkippedCase)]
    reached = exact_goals(compared) if runner.is_exact else goals(compared)
    return KernelReport(runner.name, runner.is_exact, compared, skipped, list(reached))


def repeated(case: Case, runner: Runner) -> CaseComparison | SkippedCase:
    """Repeat one case and compare it."""
    try:
        figures = runner.figures(case)
    except NotModelled as reason:
        return SkippedCase(case.name, case.kind, case.table, str(reason))
    return compare(case, figures)


def compare(case: Case, figures: CaseFigures) -> CaseComparison:
    """Compare a repeated case with its row."""
    measured = case.measured
    pairs = list(zip(measured.members, figures.members, strict=True))
    loads = list(zip(measured.loads, figures.loads, strict=True))
    ordered = [pair for pair in pairs if pair[0].order_sha1 and pair[1].order_sha1]
    timed = [pair for pair in pairs if pair[0].trace_sha1 and pair[1].trace_sha1]
    return CaseComparison(
        case=case.name,
        kind=case.kind,
        table=case.table,
        requests_error=max(max(_error(r.reads, m.reads), _error(r.writes, m.writes)) for m, r in pairs),
        sectors_error=max((_sectors_error(m, r) for m, r in pairs), default=None) if case.table == REQUESTS else None,
        sizes_equal=all(_same_sizes(m, r) for m, r in pairs),
        time_error=figures.elapsed_ns / measured.elapsed_ns - 1,
        mean_latency_error=max((_error(r.mean_latency_ns, m.mean_latency_ns) for m, r in loads), default=None),
        longest_error=max((_error(r.max_latency_ns, m.max_latency_ns) for m, r in loads), default=None),
        orders=len(ordered) if ordered else None,
        equal_orders=sum(m.order_sha1 == r.order_sha1 for m, r in ordered) if ordered else None,
        traces=len(timed) if timed else None,
        equal_traces=sum(m.trace_sha1 == r.trace_sha1 for m, r in timed) if timed else None,
        measured=measured,
        repeated=figures,
    )


def _same_sizes(measured: MemberFigures, repeated: MemberFigures) -> bool:
    def same(listed: dict[int, int], found: dict[int, int]) -> bool:
        whole = len(listed) < LISTED_SIZES or len(listed) == len(found)
        return found == listed if whole else listed.items() <= found.items()

    counts = (measured.reads, measured.writes) == (repeated.reads, repeated.writes)
    sizes = same(measured.read_sizes, repeated.read_sizes) and same(measured.write_sizes, repeated.write_sizes)
    return counts and sizes


def _error(repeated: int, measured: int) -> float:
    return abs(repeated - measured) / max(measured, 1)


def _sectors_error(measured: MemberFigures, repeated: MemberFigures) -> float:
    reads = _error(repeated.read_sectors or 0, measured.read_sectors or 0)
    return max(reads, _error(repeated.write_sectors or 0, measured.write_sectors or 0))


def exact_goals(compared: Sequence[CaseComparison]) -> list[Goal]:
    """Return the goals of a runner that repeats the kernel, with the number of cases that reach them."""
    requests = [of for of in compared if of.table == REQUESTS]
    below = [of for of in compared if of.table == ELEVATORS]
    ordered = [of for of in below if of.kind.split()[0] in ORDERED]
    others = [of for of in below if of.kind.split()[0] not in ORDERED]
    return [
        _goal("same trace, or same requests and sizes and time within 0.1 %", 1, [of.is_repeated for of in requests]),
        _goal("none, mq-deadline, kyber: same order", 1, [of.orders == of.equal_orders for of in ordered]),
        _goal("bfq: elapsed and mean within 10 %, longest within 20 %", TIME_GOAL, [of.agrees for of in others]),
    ]


def goals(compared: Sequence[CaseComparison]) -> list[Goal]:
    """Return the goals of a model, with the number of cases that reach them."""
    direct = [of for of in compared if of.table == REQUESTS]
    below = [of for of in compared if of.table == ELEVATORS]
    single = [of for of in below if of.kind in ORDERED and of.orders]
    return [
        _goal("requests and sectors of each member within 2 %", TIME_GOAL, [of.requests_agree for of in direct]),
        _goal("time within 5 %", TIME_GOAL, [of.time_agrees for of in direct]),
        _goal("single drive: same order of requests", ORDER_GOAL, [of.equal_orders == of.orders for of in single]),
        _goal("elevators: elapsed and mean within 3 % (bfq 10 %)", TIME_GOAL, [of.time_agrees for of in below]),
        _goal("elevators: longest within 20 %", TIME_GOAL, [of.longest_agrees for of in below]),
    ]


def _goal(what: str, share: float, agree: list[bool]) -> Goal:
    return Goal(what, share, len(agree), sum(agree))
