"""The table of all cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spindle.base.numbers import plain
from spindle.report import histogram
from spindle.report.document.model import Sheet
from spindle.report.document.trial import Case, is_observed, ops
from spindle.report.terminal.table import Column
from spindle.result.figures_properties import DATA, NAMES
from spindle.stats.estimate import mean_of_trials

MOST_ROWS = 48
"""Longest table that is not folded."""


def sheets(cases: Sequence[Case]) -> list[Sheet]:
    """Return the tables of our own loads, on data and on names, and of other programs' loads."""
    found = [
        sheet(cases, DATA, "Figures of each case", "IOPS"),
        sheet(cases, NAMES, "Operations on names", "operations/s"),
    ]
    return [*(each for each in [*found, device_sheet(cases)] if each is not None)]


def sheet(cases: Sequence[Case], wanted: Sequence[str], title: str, rate: str) -> Sheet | None:
    """Return a row for each operation of each case; rates are geometric means over its trials, percentiles are of all
    their requests together. None: these operations were not measured."""
    rows: list[list[str]] = []
    several = any(len(case.trials) > 1 for case in cases)
    for case in cases:
        rows += _rows(case, [name for name in wanted if name in _operations(case)], several)
    if not rows:
        return None
    columns = [Column("case", words=True), Column("op", words=True)]
    if several:
        columns.append(Column("runs"))
    heads = (rate, "MB/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms")
    columns += [*(Column(head) for head in heads), Column("verdict", words=True)]
    if wanted == NAMES:
        columns, rows = _without_empty(columns, rows, "MB/s")
    means = " (rates: geometric means of the runs)" if several else ""
    return Sheet(title + means, columns, rows, folded=len(rows) > MOST_ROWS)


def _operations(case: Case) -> set[str]:
    if is_observed(case.trials[0].run):
        return set()
    return {name for trial in case.trials for name, _ in ops(trial.run)}


def _rows(case: Case, operations: Sequence[str], several: bool) -> Iterator[list[str]]:
    for at, direction in enumerate(operations):
        found = [[op for name, op in ops(trial.run) if name == direction] for trial in case.trials]
        every = [op for trial in found for op in trial]
        requests = sum(op.requests for op in every)
        mean = sum(op.requests * op.latency.mean_ns for op in every) / requests if requests else 0.0
        tails = histogram.percentiles([op.latency.histogram for op in every], [50.0, 99.0, 99.9])
        yield [
            case.label if at == 0 else "",
            direction,
            *([str(len(case.trials))] if several else []),
            plain(mean_of_trials([sum(op.iops for op in trial) for trial in found])),
            plain(mean_of_trials([sum(op.bytes_per_s for op in trial) / 1e6 for trial in found])),
            plain(mean / 1e6),
            *([plain(ns / 1e6) for ns in tails] if tails else ["", "", ""]),
            plain(max(op.latency.max_ns for op in every) / 1e6),
            case.level,
        ]


def _without_empty(columns: list[Column], rows: list[list[str]], head: str) -> tuple[list[Column], list[list[str]]]:
    """Drop the column if all its values are 0."""
    at = [column.head for column in columns].index(head)
    if any(row[at] != "0" for row in rows):
        return columns, rows
    return [*columns[:at], *columns[at + 1 :]], [[*row[:at], *row[at + 1 :]] for row in rows]


DEVICE_COLUMNS = ("r/s", "rMB/s", "r_await", "w/s", "wMB/s", "w_await", "aqu-sz", "%util")


def device_sheet(cases: Sequence[Case]) -> Sheet | None:
    """Return the devices' activity under programs' own loads, mean over the trials; None: there are no such loads."""
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
        "Activity of the device under the program's load, mean of the runs (columns of iostat -mx)",
        [*columns, Column("verdict", words=True)],
        rows,
    )
