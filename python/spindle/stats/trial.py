"""One run in a comparison: its numbers, and its place among the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spindle.result.record import (
    CurveRecord,
    ImportedRecord,
    KneeRecord,
    Level,
    PhasesRecord,
    QuickRecord,
    Record,
    RunRecord,
    TargetRecord,
)
from spindle.stats import metric


@dataclass(frozen=True)
class Trial:
    """One run."""

    id: str
    values: Mapping[str, float]
    """Metric -> number."""
    workload: str = ""
    target: str = ""
    campaign: str | None = None
    block: int | None = None
    """Trials of one block ran together in time, in random order."""
    cell: Mapping[str, str] = field(default_factory=dict)
    """Factor -> level."""
    order: tuple[str, int] = ("", 0)
    """Start (UTC, ISO 8601) and place: sorts trials by time."""
    level: Level = Level.OK
    """The worst verdict of the run."""
    load: Callable[[], Record] | None = None
    """The whole record, for figures beyond the numbers."""


@dataclass(frozen=True)
class Side:
    """An alternative: its label and its trials."""

    label: str
    trials: Sequence[Trial]


def trial_of(
    record: Record,
    *,
    campaign: str | None = None,
    block: int | None = None,
    cell: Mapping[str, str] | None = None,
    place: int = 0,
) -> Trial:
    """Make a trial of a record."""
    workload, target = names_of(record)
    return Trial(
        id=record.id,
        values=metric.values(record),
        workload=workload,
        target=target,
        campaign=campaign,
        block=block,
        cell=dict(cell or {}),
        order=(started_of(record), place),
        level=record.level,
        load=lambda: record,
    )


def started_of(record: Record) -> str:
    """Its start; an imported one may not have it."""
    if isinstance(record, ImportedRecord):
        return record.started or record.reported or ""
    return record.started


def names_of(record: Record) -> tuple[str, str]:
    """Workload and target."""
    match record:
        case RunRecord() | PhasesRecord(varied=[]):
            return record.workload.name, record.target.asked
        case PhasesRecord():
            return f"{record.workload.name} (varied)", record.target.asked
        case QuickRecord():
            return "quick", record.target.asked
        case KneeRecord():
            return (f"{record.runs[0].workload.name} (knee)", record.runs[0].target.asked) if record.runs else ("", "")
        case TargetRecord():
            return f"{record.workload.name} (latency target)", record.target.asked
        case CurveRecord():
            return f"{record.workload.name} (curve)", record.target.asked
        case ImportedRecord():
            return record.workload or record.source.tool, record.target or ""


def valid(side: Side) -> Side:
    """The side without trials whose figures are invalid."""
    return Side(side.label, [trial for trial in side.trials if trial.level is not Level.INVALID])
