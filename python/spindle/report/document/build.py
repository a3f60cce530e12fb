"""From records to a document: each chart and table that has data."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.report.charts import chunks, effects, heatmap, percentiles, predicted, seconds, spread, sweeps
from spindle.report.charts import curves as latency_curves
from spindle.report.document import conditions, figures, foreign, search
from spindle.report.document.entry import Entry, Plan
from spindle.report.document.findings import groups_of
from spindle.report.document.model import Block, Document, Section
from spindle.report.document.summary import run_count, summary
from spindle.report.document.trial import Case, cases_of, runs_of, trials_of
from spindle.result.record import Level
from spindle.tune.decision import Tuning


def build(
    entries: Sequence[Entry],
    title: str | None = None,
    plans: Sequence[Plan] = (),
    searches: Sequence[Tuning] = (),
) -> Document:
    """Build the report. The same entries give the same document: it does not depend on the clock or this machine."""
    trials = trials_of(entries)
    cases = cases_of(trials)
    curves = sweeps.sweeps_of(entries, cases)
    searched = {one.campaign.name for one in searches}  # whose best observed settings are no finding
    groups = groups_of(cases_of([one for one in trials if one.entry.campaign not in searched]))
    targets = latency_curves.charts(latency_curves.curves_of(entries), latency_curves.searches_of(entries))
    names = conditions.names_of(entries, cases)
    sections: list[tuple[str, str, Sequence[Block]]] = [
        ("summary", "Summary", summary(entries, cases, groups, curves, trials)),
        ("figures", "Figures", [*figures.sheets(cases), *spread.charts(cases)]),
        ("imported", "Figures of other tools", foreign.blocks(entries)),
        ("factors", "Factors", effects.charts(groups)),
        ("arrays", "Arrays", chunks.charts(trials)),
        ("concurrency", "Concurrency", sweeps.charts(curves)),
        ("targets", "Latency over throughput", targets),
        ("latency", "Latency", percentiles.charts(cases)),
        ("time", "Over time", [*seconds.charts(cases), *heatmap.charts(cases)]),
        ("model", "Measured and modelled", predicted.charts(trials)),
        ("verdicts", "Verdicts", conditions.verdicts(entries, names)),
        (
            "settings",
            "Settings and environment",
            [*conditions.environment(entries), *conditions.settings(entries, names)],
        ),
        ("repeat", "How to repeat it", conditions.commands(entries, names, plans)),
    ]
    parts = [Section(key, heading, blocks) for key, heading, blocks in sections if blocks]
    parts[0:0] = search.sections(searches, entries)
    return Document(
        title=title or _title(entries, cases),
        about=_about(entries),
        level=max((entry.record.level for entry in entries), key=lambda level: level.rank, default=Level.OK),
        sections=parts,
    )


def _title(entries: Sequence[Entry], cases: Sequence[Case]) -> str:
    campaigns = sorted({entry.campaign for entry in entries if entry.campaign})
    if len(campaigns) == 1:
        return campaigns[0]
    runs = [run for entry in entries for run in runs_of(entry)]
    workloads = sorted({run.workload.name for run in runs})
    targets = sorted({run.target.place for run in runs})
    loads = workloads[0] if len(workloads) == 1 else f"{len(workloads)} workloads"
    places = targets[0] if len(targets) == 1 else f"{len(targets)} targets"
    return f"{loads} on {places}" if runs else f"{len(entries)} records"


def _about(entries: Sequence[Entry]) -> str:
    count = run_count(entries)
    parts = [f"{count} run{'s' if count != 1 else ''}"]
    days = sorted(run.started[:10] for entry in entries for run in runs_of(entry) if not run.target.traits.is_modelled)
    if days:
        parts.append(days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}")
    versions = sorted({entry.record.tool.version for entry in entries})
    parts.append(f"Spindle {', '.join(versions)}")
    return " \N{MIDDLE DOT} ".join(parts)
