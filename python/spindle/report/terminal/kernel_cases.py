"""The comparison as a page: a line per kind of case, the cases outside the bounds, what was not modelled."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.kernel.cases import ELEVATORS, REQUESTS
from spindle.validation.kernel.compare import EXACT_TIME_WITHIN, CaseComparison, KernelReport

COLUMNS = {
    REQUESTS: [
        Column("load", words=True),
        *map(Column, ("n", "requests 2 %", "sizes equal", "time 5 %", "worst")),
    ],
    ELEVATORS: [
        Column("elevator", words=True),
        *map(Column, ("n", "same order", "requests 2 %", "time, mean", "longest 20 %", "worst")),
    ],
}
EXACT_COLUMNS = {
    REQUESTS: [
        Column("load", words=True),
        *map(Column, ("n", "same trace", "same requests", "time 0.1 %", "worst")),
    ],
    ELEVATORS: [
        Column("elevator", words=True),
        *map(Column, ("n", "same trace", "same order", "same requests", "time 0.1 %", "worst")),
    ],
}


def kernel_page(report: KernelReport) -> Iterator[str]:
    """Yield the page."""
    row = _exact_row if report.is_exact else _row
    for name, columns in (EXACT_COLUMNS if report.is_exact else COLUMNS).items():
        of_table = [of for of in report.compared if of.table == name]
        if of_table:
            kinds = dict.fromkeys(sorted(of.kind for of in of_table))
            rows = [row(name, kind, [of for of in of_table if of.kind == kind]) for kind in kinds]
            yield from table(columns, [*rows, row(name, "all", of_table)], style_of(sys.stdout))
            yield ""
    for goal in filter(lambda goal: goal.cases, report.goals):
        reached = "reached" if goal.reached else "missed"
        yield f"{goal.what}: {goal.agreeing} of {goal.cases} (goal {goal.share:.0%}: {reached})"
    listed = [of for of in report.compared if not (of.is_same if report.is_exact else of.agrees)]
    if listed:
        yield ""
        yield "not the same trace, the worst first:" if report.is_exact else "outside the bounds, the worst first:"
    figures = _exact_figures if report.is_exact else _figures
    yield from (f"  {of.case}: {figures(of)}" for of in sorted(listed, key=_badness, reverse=True))
    if report.skipped:
        yield ""
        yield f"not modelled by the {report.runner}:"
    for reason, count in Counter(skipped.reason for skipped in report.skipped).most_common():
        yield f"  {count} cases: {reason}"


def _row(name: str, kind: str, cases: list[CaseComparison]) -> list[str]:
    requests = _share([of.requests_agree for of in cases])
    time = _share([of.time_agrees for of in cases])
    worst = f"{_worst_time(cases):+.1%}"
    if name == REQUESTS:
        return [kind, str(len(cases)), requests, _share([of.sizes_equal for of in cases]), time, worst]
    order = _share([of.equal_orders == of.orders for of in cases if of.orders])
    return [kind, str(len(cases)), order, requests, time, _share([of.longest_agrees for of in cases]), worst]


def _exact_row(name: str, kind: str, cases: list[CaseComparison]) -> list[str]:
    trace = _share([of.is_same for of in cases])
    requests = _share([of.sizes_equal for of in cases])
    time = _share([abs(of.time_error) <= EXACT_TIME_WITHIN for of in cases])
    order = [_share([of.equal_orders == of.orders for of in cases])] if name == ELEVATORS else []
    return [kind, str(len(cases)), trace, *order, requests, time, f"{_worst_time(cases):+.3%}"]


def _share(agree: list[bool]) -> str:
    return f"{sum(agree) / len(agree):.0%}" if agree else "-"


def _worst_time(cases: list[CaseComparison]) -> float:
    return max((of.time_error for of in cases), key=abs)


def _badness(of: CaseComparison) -> float:
    return max(of.requests_error, of.sectors_error or 0.0, abs(of.time_error))


def _exact_figures(of: CaseComparison) -> str:
    figures = [f"{of.equal_traces} of {of.traces} drives the same"]
    if of.orders is not None:
        figures.append(f"order of {of.equal_orders} of {of.orders}")
    if not of.sizes_equal:
        figures.append(f"requests {of.requests_error:.1%}, sizes differ")
    return ", ".join([*figures, f"time {of.time_error:+.4%}"])


def _figures(of: CaseComparison) -> str:
    figures = [f"requests {of.requests_error:.1%}", f"time {of.time_error:+.1%}"]
    if of.sectors_error is not None:
        figures.insert(1, f"sectors {of.sectors_error:.1%}")
    if of.table == ELEVATORS and of.mean_latency_error is not None and of.longest_error is not None:
        figures += [f"mean {of.mean_latency_error:.1%}", f"longest {of.longest_error:.1%}"]
    return ", ".join(figures)
