"""The table of all cases."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.report import histogram
from spindle.report.document.model import Sheet
from spindle.report.document.trial import Case, is_observed, ops
from spindle.report.number import plain
from spindle.report.table import Column
from spindle.result.figures import DATA, NAMES

MOST_ROWS = 48
"""A longer table is shown to who asks for it."""


def sheet(cases: Sequence[Case]) -> Sheet:
    """A row for each operation of each case; means over its trials, percentiles of all their requests together."""
    rows = []
    several = any(len(case.trials) > 1 for case in cases)
    for case in cases:
        if is_observed(case.trials[0].run):
            continue
        for at, direction in enumerate(_directions(case)):
            found = [op for trial in case.trials for name, op in ops(trial.run) if name == direction]
            trials = len(case.trials)
            requests = sum(op.requests for op in found)
            mean = sum(op.requests * op.latency.mean_ns for op in found) / requests if requests else 0.0
            tails = histogram.percentiles([op.latency.histogram for op in found], [50.0, 99.0, 99.9])
            shown = [plain(ns / 1e6) for ns in tails] if tails else ["", "", ""]
            row = [case.label if at == 0 else "", direction]
            if several:
                row.append(str(trials))
            row += [
                plain(sum(op.iops for op in found) / trials),
                plain(sum(op.bytes_per_s for op in found) / trials / 1e6),
                plain(mean / 1e6),
                *shown,
                plain(max(op.latency.max_ns for op in found) / 1e6),
                case.level,
            ]
            rows.append(row)
    columns = [Column("case", words=True), Column("op", words=True)]
    if several:
        columns.append(Column("runs"))
    heads = ("IOPS", "MB/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms")
    columns += [*(Column(head) for head in heads), Column("verdict", words=True)]
    return Sheet("Figures of each case", columns, rows, folded=len(rows) > MOST_ROWS)


def sheets(cases: Sequence[Case]) -> list[Sheet]:
    """Of loads of our own, and of those of other programs."""
    found = [sheet(cases)] if any(not is_observed(case.trials[0].run) for case in cases) else []
    observed = device_sheet(cases)
    return [*found, observed] if observed is not None else found


DEVICE_COLUMNS = ("r/s", "rMB/s", "r_await", "w/s", "wMB/s", "w_await", "aqu-sz", "%util")


def device_sheet(cases: Sequence[Case]) -> Sheet | None:
    """What the devices did under programs' own loads, mean over the trials; None: there are no such loads."""
    observed = [case for case in cases if is_observed(case.trials[0].run)]
    if not observed:
        return None
    rows = []
    for case in observed:
        found = [counters.iostat for trial in case.trials if (counters := trial.run.counters) is not None]
        cells = [
            plain(sum(each.get(name, 0.0) for each in found) / len(found)) if found else "" for name in DEVICE_COLUMNS
        ]
        rows.append([case.label, str(len(case.trials)), *cells, case.level])
    columns = [Column("case", words=True), Column("runs"), *(Column(name) for name in DEVICE_COLUMNS)]
    return Sheet(
        "What the device did under the program's load, mean of the runs (columns of iostat -mx)",
        [*columns, Column("verdict", words=True)],
        rows,
    )


def _directions(case: Case) -> list[str]:
    found = {name for trial in case.trials for name, _ in ops(trial.run)}
    return [name for name in (*DATA, *NAMES) if name in found]
