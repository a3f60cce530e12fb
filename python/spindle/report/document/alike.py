"""Comparable cases: the same work, requested in the same way, on the same kind of target.

A stream and a random read have no common metric; a read through the page cache measures memory, one past it the
device; an open loop's throughput is the requested rate. Factors that a campaign's plan varies on purpose are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spindle.base import units
from spindle.report.document.traits import size_words
from spindle.report.document.trial import Case, is_names, is_observed, is_streaming
from spindle.result.record import RunRecord
from spindle.result.workload import Mix, Open

T = TypeVar("T")
WORK = "work"
_PLANNED = ("size", "arrival", "target")
"""Traits that are compared if a campaign's plan varies them."""


def alike(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    """Return (name, cases) of each set of comparable cases, in order of appearance. The name says how the sets differ:
    `random reads, buffered, file`; it is empty if there is only one set."""
    return alike_by(cases, lambda case: _kind(case.trials[0].run, case.trials[0].entry.cell))


def alike_runs(runs: Sequence[RunRecord]) -> list[list[int]]:
    """Return the numbers of the runs of each comparable set, without regard to campaigns' plans."""
    return [members for _, members in alike_by(range(len(runs)), lambda at: _kind(runs[at], {}))]


def alike_by(found: Iterable[T], kind_of: Callable[[T], Mapping[str, str]]) -> list[tuple[str, list[T]]]:
    """Return sets of one kind each, named as in `alike`."""
    sets: dict[tuple[tuple[str, str], ...], list[T]] = {}
    for each in found:
        sets.setdefault(tuple(kind_of(each).items()), []).append(each)
    kinds = [dict(kind) for kind in sets]
    names = [name for name in dict.fromkeys(name for kind in kinds for name in kind) if _differs(name, kinds)]
    return [
        (", ".join(text for name in names if (text := kind.get(name, ""))), members)
        for kind, members in zip(kinds, sets.values(), strict=True)
    ]


def _differs(name: str, kinds: Sequence[Mapping[str, str]]) -> bool:
    return len({kind.get(name) for kind in kinds}) > 1


def _kind(run: RunRecord, cell: Mapping[str, str]) -> dict[str, str]:
    found = {WORK: work(run), **_asked(run)}
    if not cell:
        return found
    factors = {factor.rpartition(".")[2] for factor in cell}
    planned = {*_PLANNED, *(["cache"] if factors & {"direct", "I/O"} else [])}
    return {name: value for name, value in found.items() if name not in planned}


def work(run: RunRecord) -> str:
    """`sequential reads`, `random 20 % writes`, `create, stat`, or the name of a program's own load."""
    if is_observed(run):
        return run.workload.name
    if is_names(run):
        return ", ".join(dict.fromkeys(stream.names.operation for stream in run.workload.streams if stream.names))
    parts = [
        stream.names.operation if stream.names is not None else _mixed(stream.mix) for stream in run.workload.streams
    ]
    return f"{'sequential' if is_streaming(run) else 'random'} {' + '.join(dict.fromkeys(parts))}"


def _mixed(mix: Mix) -> str:
    shares = [(mix.of_calls, "writes"), (mix.trim, "discards"), (mix.zero, "zeroing")]
    parts = [name if share == 1 else f"{100 * share:.4g} % {name}" for share, name in shares if share]
    return " ".join(parts) or "reads"


def _asked(run: RunRecord) -> dict[str, str]:
    """Return how the work was requested, and on what kind of target."""
    streams = [] if is_names(run) else run.workload.streams
    found = {"target": run.target.traits.words}
    if streams:
        found["cache"] = _each("mapped" if s.mapped else "direct" if s.direct else "buffered" for s in streams)
        found["arrival"] = _each(
            f"{units.count(s.arrival.rate_iops)} requests/s asked for" if isinstance(s.arrival, Open) else ""
            for s in streams
        )
    if streams and not is_streaming(run):
        found["size"] = _each(size_words(s.size) for s in streams)
    return found


def _each(values: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(value for value in values if value))
