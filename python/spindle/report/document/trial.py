"""Runs in a report: each is a trial of a case; cases have the shortest distinct names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spindle.report.document import traits
from spindle.report.document.entry import Entry
from spindle.result.figures import Op
from spindle.result.record import CurveRecord, KneeRecord, Level, PhasesRecord, QuickRecord, RunRecord, TargetRecord
from spindle.result.workload import Sequential


@dataclass(frozen=True)
class Trial:
    """One run."""

    run: RunRecord
    entry: Entry
    traits: traits.Traits

    @property
    def level(self) -> Level:
        """The worst verdict of the run."""
        return self.run.level


@dataclass(frozen=True)
class Case:
    """Runs that differ only by chance and the seed."""

    label: str
    traits: traits.Traits
    """Traits in the label."""
    trials: Sequence[Trial]

    @property
    def level(self) -> Level:
        """The worst verdict of its trials."""
        return max((trial.level for trial in self.trials), key=lambda level: level.rank)

    @property
    def modelled(self) -> bool:
        """True if it ran on a modelled machine."""
        return self.trials[0].run.target.traits.is_modelled

    def latencies(self, direction: str) -> list[str]:
        """Return the stored histograms of one operation, of all its trials and streams."""
        return [op.latency.histogram for trial in self.trials for name, op in ops(trial.run) if name == direction]


def ops(run: RunRecord) -> Iterator[tuple[str, Op]]:
    """Yield the data operations of all streams."""
    for stream in run.figures.streams:
        yield from stream.ops()


def runs_of(entry: Entry) -> list[RunRecord]:
    """Return the runs of a record."""
    match entry.record:
        case RunRecord() as run:
            return [run]
        case (
            KneeRecord(runs=runs)
            | TargetRecord(runs=runs)
            | CurveRecord(runs=runs)
            | QuickRecord(runs=runs)
            | PhasesRecord(runs=runs)
        ):
            return list(runs)
        case _:
            return []


def trials_of(entries: Sequence[Entry]) -> list[Trial]:
    """Return single runs and phases. Runs within sweeps and quick looks are shown as sweeps and looks."""
    return [
        Trial(run, entry, traits.traits_of(run, entry))
        for entry in entries
        if isinstance(entry.record, RunRecord | PhasesRecord)
        for run in runs_of(entry)
    ]


def cases_of(trials: Sequence[Trial]) -> list[Case]:
    """Group trials by the traits that distinguish them, in the order of the selections; within a selection in the order
    of the plan's levels or of the values."""
    names = traits.distinguishing([trial.traits for trial in trials])
    groups: dict[tuple[str | None, ...], list[Trial]] = {}
    for trial in trials:
        groups.setdefault(tuple(trial.traits.get(name) for name in names), []).append(trial)

    def rank(group: tuple[tuple[str | None, ...], list[Trial]]) -> tuple[int, list[tuple[int, float, str]]]:
        values, found = group
        levels = found[0].entry.levels
        ranks = [traits.order(value, levels.get(name, ())) for name, value in zip(names, values, strict=True)]
        return min(trial.entry.selection for trial in found), ranks

    ordered = sorted(groups.items(), key=rank)
    return [
        Case(
            label=label_of({name: value for name, value in zip(names, values, strict=True) if value is not None})
            or f"{found[0].run.workload.name} on {found[0].run.target.place}",
            traits={name: value for name, value in zip(names, values, strict=True) if value is not None},
            trials=found,
        )
        for values, found in ordered
    ]


_SPEAKING = ("workload", "target", "array", "tag", "level", "layout", "direction")
"""Traits whose values are clear without a name."""


def label_of(found: traits.Traits) -> str:
    """`raid10 f2 (chunk 64 KiB, depth 4)`: no comma outside brackets, so that labels can be listed."""
    known = [(name, value) for name, value in found.items() if value not in ("", "-")]
    first = " ".join(value for name, value in known if name in _SPEAKING)
    rest = [f"{name} {value}" for name, value in known if name not in _SPEAKING]
    if not first and rest:
        first, rest = rest[0], rest[1:]
    return f"{first} ({', '.join(rest)})" if rest else first


def is_streaming(run: RunRecord) -> bool:
    """True if it is about bytes per second rather than requests."""
    streams = run.workload.streams
    return bool(streams) and all(s.names is None and isinstance(s.pattern, Sequential) for s in streams)


def is_names(run: RunRecord) -> bool:
    """True if it has only metadata operations and no data."""
    streams = run.workload.streams
    return bool(streams) and all(stream.names is not None for stream in streams)


def is_observed(run: RunRecord) -> bool:
    """True if the load was another program: only the devices' counters show it."""
    return not run.workload.streams


def iops_of(run: RunRecord) -> float:
    """Return requests per second: of the load, or of an observed load at the device."""
    if not is_observed(run):
        return run.figures.iops
    counters = run.counters
    if counters is None or counters.seconds <= 0:
        return 0.0
    return ((counters.requests_of("read") or 0.0) + (counters.requests_of("write") or 0.0)) / counters.seconds


def bytes_per_s_of(run: RunRecord) -> float:
    """Return bytes per second: of the load, or of an observed load at the device."""
    if not is_observed(run):
        return run.figures.bytes_per_s
    counters = run.counters
    if counters is None or counters.seconds <= 0:
        return 0.0
    return ((counters.bytes_of("read") or 0.0) + (counters.bytes_of("write") or 0.0)) / counters.seconds


def unit_of(case: Case) -> str:
    """Return the unit of its requests: `IOPS`, or `operations/s` on names."""
    return "operations/s" if is_names(case.trials[0].run) else "IOPS"
