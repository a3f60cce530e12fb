"""Summary in sentences: number of runs, targets, validity, the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spindle.base.numbers import share_of
from spindle.report.charts.predicted import pairs_of
from spindle.report.charts.sweeps import Sweep
from spindle.report.document import findings, traits
from spindle.report.document.entry import Entry
from spindle.report.document.findings import Group
from spindle.report.document.model import Paragraph
from spindle.report.document.trial import Case, Trial
from spindle.report.terminal.curve import sentence as curve_sentence
from spindle.report.terminal.sweep import sentence
from spindle.report.terminal.target import sentences
from spindle.result.record import (
    CurveRecord,
    Level,
    PhasesRecord,
    QuickRecord,
    RunRecord,
    SearchRecord,
    TargetRecord,
    Verdict,
)

MOST_KNEES = 4


def summary(
    entries: Sequence[Entry],
    cases: Sequence[Case],
    groups: Sequence[Group],
    sweeps: Sequence[Sweep],
    trials: Sequence[Trial],
) -> list[Paragraph]:
    """Return sentences, most important first."""
    return [
        *_doubts(entries),
        *_entangled(cases, trials),
        *_looks(entries),
        *_compared(cases, groups),
        *_knees(sweeps),
        *_searches(entries),
        *_model(trials),
    ]


def _doubts(entries: Sequence[Entry]) -> Iterator[Paragraph]:
    """Report invalid results before any figure."""
    invalid = [entry for entry in entries if entry.record.level is Level.INVALID]
    if not invalid:
        return
    checks = sorted(
        {verdict.check for entry in invalid for verdict in _verdicts(entry) if verdict.level is Level.INVALID}
    )
    which = "The record has" if len(entries) == 1 else f"{len(invalid)} of {len(entries)} records have"
    yield Paragraph(
        f"{which} an invalid verdict ({', '.join(checks)}): such figures are marked everywhere; do not "
        "base a decision on them.",
        Level.INVALID,
    )


def _verdicts(entry: Entry) -> Iterator:  # type: ignore[type-arg]
    record = entry.record
    yield from record.verdicts
    if isinstance(record, SearchRecord | QuickRecord | PhasesRecord):
        for run in record.runs:
            yield from run.verdicts


def _looks(entries: Sequence[Entry]) -> Iterator[Paragraph]:
    for entry in entries:
        if isinstance(entry.record, QuickRecord):
            name = entry.record.target.words
            for finding in entry.record.assessment.findings:
                yield Paragraph(
                    f"{name}, {finding.topic}: {finding.text}", None if finding.level is Level.OK else finding.level
                )


def _entangled(cases: Sequence[Case], trials: Sequence[Trial]) -> Iterator[Paragraph]:
    """Warn if several traits changed at once. In a campaign the plan names what its levels mean."""
    if len(cases) < 2 or any(trial.entry.cell for trial in trials):
        return
    chosen = list(dict.fromkeys(name for case in cases for name in case.traits))
    others = traits.entangled([trial.traits for trial in trials], chosen)
    if others:
        yield Paragraph(
            f"Several things changed at once: with {', '.join(chosen)} also {', '.join(others)}. Their separate "
            "effects cannot be distinguished in these runs.",
            Level.WARN,
        )


def _compared(cases: Sequence[Case], groups: Sequence[Group]) -> Iterator[Paragraph]:
    if len(cases) == 1:
        yield findings.single(cases[0])
    yield from findings.words(groups)
    yield from findings.unlike(cases)


def _knees(sweeps: Sequence[Sweep]) -> Iterator[Paragraph]:
    for sweep in sweeps[:MOST_KNEES]:
        yield Paragraph(f"{sweep.label}: {_lower(sentence(sweep.knee))}")
    if len(sweeps) > MOST_KNEES:
        yield Paragraph(f"{len(sweeps) - MOST_KNEES} more sweeps are under Concurrency.")


def _searches(entries: Sequence[Entry]) -> Iterator[Paragraph]:
    for entry in entries:
        match entry.record:
            case TargetRecord(verdicts=[Verdict(check="need") as answer]) as record:
                yield Paragraph(
                    f"{record.target.asked} for {answer.evidence}.", answer.level if answer.advice else None
                )
            case TargetRecord(search=search, runs=[first, *_]):
                yield Paragraph(f"{first.workload.name} on {first.target.place}: {_lower(' '.join(sentences(search)))}")
            case CurveRecord(curve=curve, runs=[first, *_]):
                yield Paragraph(f"{first.workload.name} on {first.target.place}: {_lower(curve_sentence(curve))}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _model(trials: Sequence[Trial]) -> Iterator[Paragraph]:
    ratios = sorted(pair.ratio for pair in pairs_of(trials) if pair.ratio is not None)
    if len(ratios) == 1:
        yield Paragraph(f"The model says {share_of(ratios[0])} what was measured.")
    elif ratios:
        yield Paragraph(
            f"Over {len(ratios)} loads the model says from {share_of(ratios[0])} to {share_of(ratios[-1])} what was "
            "measured."
        )


def run_count(entries: Sequence[Entry]) -> int:
    """Return the number of runs, including those within sweeps and quick looks."""
    return sum(1 if isinstance(entry.record, RunRecord) else len(_inner(entry)) for entry in entries)


def _inner(entry: Entry) -> list[RunRecord]:
    return entry.record.runs if isinstance(entry.record, SearchRecord | QuickRecord | PhasesRecord) else []
