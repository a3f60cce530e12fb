"""What the runs say, in sentences: how many, on what, which can be believed, which is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spindle.report.charts.predicted import pairs_of
from spindle.report.charts.sweeps import Sweep
from spindle.report.document.entry import Entry
from spindle.report.document.model import Words
from spindle.report.document.traits import place
from spindle.report.document.trial import Case, Trial, is_streaming
from spindle.report.heading import target_words
from spindle.report.sweep import sentence
from spindle.result import units
from spindle.result.record import KneeRecord, Level, QuickRecord, RunRecord


def summary(
    entries: Sequence[Entry], cases: Sequence[Case], sweeps: Sequence[Sweep], trials: Sequence[Trial]
) -> list[Words]:
    """Most important first."""
    return [
        *_doubts(entries),
        *_looks(entries),
        *_best(cases),
        *_knees(sweeps),
        *_model(trials),
    ]


def _doubts(entries: Sequence[Entry]) -> Iterator[Words]:
    """What must not be read as a figure comes before any figure."""
    invalid = [entry for entry in entries if entry.record.level is Level.INVALID]
    if not invalid:
        return
    checks = sorted(
        {verdict.check for entry in invalid for verdict in _verdicts(entry) if verdict.level is Level.INVALID}
    )
    which = "The record has" if len(entries) == 1 else f"{len(invalid)} of {len(entries)} records have"
    yield Words(
        f"{which} an invalid verdict ({', '.join(checks)}): such figures are marked wherever they stand and are "
        "no basis for a decision.",
        Level.INVALID,
    )


def _verdicts(entry: Entry) -> Iterator:  # type: ignore[type-arg]
    record = entry.record
    yield from record.verdicts
    if isinstance(record, KneeRecord | QuickRecord):
        for run in record.runs:
            yield from run.verdicts


def _looks(entries: Sequence[Entry]) -> Iterator[Words]:
    for entry in entries:
        if isinstance(entry.record, QuickRecord):
            name = target_words(entry.record.target)
            for finding in entry.record.assessment.findings:
                yield Words(
                    f"{name}, {finding.topic}: {finding.text}", None if finding.level is Level.OK else finding.level
                )


def _best(cases: Sequence[Case]) -> Iterator[Words]:
    believed = [case for case in cases if case.level is not Level.INVALID]
    if not cases:
        return
    if len(cases) == 1:
        yield Words(_case_words(cases[0]))
        return
    if len(believed) < 2 or not _alike(believed):
        return
    streaming = is_streaming(believed[0].trials[0].run)
    ranked = sorted(believed, key=lambda case: -_rate(case, streaming))
    best, worst = ranked[0], ranked[-1]
    ratio = _rate(best, streaming) / _rate(worst, streaming) if _rate(worst, streaming) else None
    text = (
        f"Most throughput of {len(cases)} cases: {best.label}, {_rate_words(best, streaming)}; "
        f"least: {worst.label}, {_rate_words(worst, streaming)}"
    )
    yield Words(text + (f" (a factor of {units.significant(ratio, 2)})." if ratio is not None else "."))


def _alike(cases: Sequence[Case]) -> bool:
    """Streams are compared with streams, requests with requests of the same mix."""
    kinds = {
        (is_streaming(case.trials[0].run), tuple(stream.mix for stream in case.trials[0].run.workload.streams))
        for case in cases
    }
    return len(kinds) == 1


def _rate(case: Case, streaming: bool) -> float:
    rates = [trial.run.figures.bytes_per_s if streaming else trial.run.figures.iops for trial in case.trials]
    return sum(rates) / len(rates)


def _rate_words(case: Case, streaming: bool) -> str:
    return units.rate(_rate(case, streaming)) if streaming else f"{units.count(_rate(case, streaming))} IOPS"


def _case_words(case: Case) -> str:
    run = case.trials[0].run
    latencies = [mean for trial in case.trials if (mean := trial.run.figures.mean_latency_ns()) is not None]
    text = (
        f"{run.workload.name} on {place(run.target)}: {units.count(_rate(case, False))} IOPS, "
        f"{units.rate(_rate(case, True))}"
    )
    if latencies:
        text += f", {units.duration(sum(latencies) / len(latencies))} mean latency"
    if len(case.trials) > 1:
        text += f" (mean of {len(case.trials)} runs)"
    return text + "."


def _knees(sweeps: Sequence[Sweep]) -> Iterator[Words]:
    for sweep in sweeps[:4]:
        yield Words(f"{sweep.label}: {sentence(sweep.knee)}")


def _model(trials: Sequence[Trial]) -> Iterator[Words]:
    ratios = sorted(pair.ratio for pair in pairs_of(trials) if pair.ratio is not None)
    if len(ratios) == 1:
        yield Words(f"The model says {units.percent(ratios[0])} of what was measured.")
    elif ratios:
        yield Words(
            f"Over {len(ratios)} loads the model says {units.percent(ratios[0])} to {units.percent(ratios[-1])} of "
            "what was measured."
        )


def run_count(entries: Sequence[Entry]) -> int:
    """Runs, those within sweeps and looks included."""
    return sum(1 if isinstance(entry.record, RunRecord) else len(_inner(entry)) for entry in entries)


def _inner(entry: Entry) -> list[RunRecord]:
    return entry.record.runs if isinstance(entry.record, KneeRecord | QuickRecord) else []
