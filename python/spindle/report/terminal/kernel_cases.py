"""The comparison as a page: a line per kind of case, the cases outside the bounds, what was not modelled."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import msgspec

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.validation.kernel.cases import ELEVATORS, REQUESTS
from spindle.validation.kernel.compare import Compared, KernelReport

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


def kernel_json(report: KernelReport) -> Iterator[str]:
    """Yield JSON."""
    yield msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def kernel_page(report: KernelReport) -> Iterator[str]:
    """Yield the page."""
    for name, columns in COLUMNS.items():
        of_table = [of for of in report.compared if of.table == name]
        if of_table:
            kinds = dict.fromkeys(sorted(of.kind for of in of_table))
            rows = [_row(name, kind, [of for of in of_table if of.kind == kind]) for kind in kinds]
            yield from table(columns, [*rows, _row(name, "all", of_table)], style_of(sys.stdout))
            yield ""
    for goal in report.goals:
        reached = "reached" if goal.reached else "missed"
        yield f"{goal.what}: {goal.agreeing} of {goal.cases} (goal {goal.share:.0%}: {reached})"
    worst = sorted((of for of in report.compared if not of.agrees), key=_badness, reverse=True)
    if worst:
        yield ""
        yield "outside the bounds, the worst first:"
    yield from (f"  {of.case}: {_figures(of)}" for of in worst)
    if report.left:
        yield ""
        yield f"not modelled by the {report.runner}:"
    for reason, count in Counter(left.reason for left in report.left).most_common():
        yield f"  {count} cases: {reason}"


def _row(name: str, kind: str, cases: list[Compared]) -> list[str]:
    def share(agree: list[bool]) -> str:
        return f"{sum(agree) / len(agree):.0%}" if agree else "-"

    requests = share([of.requests_agree for of in cases])
    time = share([of.time_agrees for of in cases])
    worst = f"{max((of.time_error for of in cases), key=abs):+.1%}"
    if name == REQUESTS:
        return [kind, str(len(cases)), requests, share([of.sizes_equal for of in cases]), time, worst]
    order = share([of.equal_orders == of.orders for of in cases if of.orders])
    return [kind, str(len(cases)), order, requests, time, share([of.longest_agrees for of in cases]), worst]


def _badness(of: Compared) -> float:
    return max(of.requests_error, of.sectors_error or 0.0, abs(of.time_error))


def _figures(of: Compared) -> str:
    figures = [f"requests {of.requests_error:.1%}", f"time {of.time_error:+.1%}"]
    if of.sectors_error is not None:
        figures.insert(1, f"sectors {of.sectors_error:.1%}")
    if of.table == ELEVATORS and of.mean_latency_error is not None and of.longest_error is not None:
        figures += [f"mean {of.mean_latency_error:.1%}", f"longest {of.longest_error:.1%}"]
    return ", ".join(figures)
