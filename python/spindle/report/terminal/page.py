"""A record as a page of text."""

from __future__ import annotations

from collections.abc import Callable

from spindle.report.terminal import (
    curve,
    heading,
    imported,
    metadata,
    paraseq,
    per_second,
    phases,
    randomio,
    seeker,
    streams,
    sweep,
    target,
    throughput,
    verdicts,
    verification,
    wal,
)
from spindle.report.terminal.shapes import bonnie, iozone
from spindle.report.terminal.style import Style
from spindle.result.record import (
    CurveRecord,
    ImportedRecord,
    KneeRecord,
    Level,
    PhasesRecord,
    QuickRecord,
    Record,
    RunRecord,
    SearchRecord,
    TargetRecord,
    Verdict,
)

SHAPES: dict[str, Callable[[RunRecord, Style], list[str]]] = {
    "streams": streams.page,
    "randomio": randomio.page,
    "seeker": seeker.page,
    "throughput": throughput.page,
    "per-second": per_second.page,
    "bonnie": lambda record, _style: bonnie.page([record]),
    "iozone": lambda record, _style: iozone.page([record]),
    "paraseq": paraseq.page,
    "metadata": metadata.page,
    "wal": wal.page,
}
"""The table of each workload's field."""


def page(record: Record, style: Style) -> list[str]:
    """Return the page of any record."""
    match record:
        case RunRecord():
            return run_page(record, style)
        case KneeRecord():
            return search_page(record, sweep.page(record.sweep, style), style)
        case TargetRecord():
            return search_page(record, target.page(record.search, style), style)
        case CurveRecord():
            return search_page(record, curve.page(record.curve, style), style)
        case QuickRecord():
            return quick_page(record, style)
        case PhasesRecord():
            return phases_page(record, style)
        case ImportedRecord():
            return imported.page(record, style)


def run_page(record: RunRecord, style: Style) -> list[str]:
    """Return the page of a run: invalid verdicts come first, so that no figure is read without them."""
    invalid = verdicts.lines(record.verdicts, style, [Level.INVALID])
    warnings = verdicts.warnings(record.verdicts, style)
    return [
        *heading.page(record, style),
        *invalid,
        "",
        *SHAPES.get(record.workload.table, streams.page)(record, style),
        "",
        *verification.page(record, style),
        *verification.right([record], style),
        *warnings,
        *verdicts.passed(record.verdicts, style),
        *verdicts.unchecked(record.preflight, style),
    ]


def search_page(record: SearchRecord, found: list[str], style: Style) -> list[str]:
    """Return the page of a search: many runs of one workload, and the result."""
    everything = [*record.verdicts, *merged([verdict for run in record.runs for verdict in run.verdicts])]
    head = heading.page(record.runs[0], style)[:1] if record.runs else []
    return [
        *head,
        *verdicts.lines(everything, style, [Level.INVALID]),
        "",
        *found,
        "",
        *verdicts.warnings(everything, style),
    ]


def phases_page(record: PhasesRecord, style: Style) -> list[str]:
    """Return the page of phases: their table, and their problems."""
    everything = phases.verdicts_of(record)
    return [
        *phases.head(record, style),
        *verdicts.lines(everything, style, [Level.INVALID]),
        "",
        *phases.page(record, style),
        "",
        *verification.right(record.runs, style),
        *verdicts.warnings(everything, style),
        *(verdicts.unchecked(record.runs[0].preflight, style) if record.runs else []),
    ]


def quick_page(record: QuickRecord, style: Style) -> list[str]:
    """Return the page of a quick look: the assessment, most important first."""
    lines = style.headline(f"Quick look at {record.target.words}")
    lines += verdicts.lines(record.verdicts, style, [Level.INVALID])
    found = record.assessment.findings
    width = max((len(finding.topic) for finding in found), default=0)
    lines.append("")
    for finding in found:
        mark = "" if finding.level is Level.OK else f"{finding.level}: "
        wrapped = style.wrap(mark + finding.text, first=f"  {finding.topic:<{width}}  ")
        lines += verdicts.coloured(style, finding.level, wrapped) if mark else wrapped
    lines.append("")
    lines += verdicts.warnings(record.verdicts, style)
    lines += verdicts.unchecked(record.preflight, style)
    lines += style.wrap(
        f"A first look, {len(record.runs)} runs of a few seconds each; `spindle run` with `seconds=60` is more precise "
        f"({record.id})."
    )
    return lines


def merged(found: list[Verdict]) -> list[Verdict]:
    """Return each check once, its worst verdict, and a finding rather than an unknown. Verdicts that every step of a
    sweep has by design are left to its runs."""
    by_design = {"saturated", "too-short"}
    worst: dict[str, Verdict] = {}
    for verdict in found:
        if verdict.check in by_design and verdict.level is not Level.INVALID:
            continue
        seen = worst.get(verdict.check)
        if seen is None or _gravity(verdict) > _gravity(seen):
            worst[verdict.check] = verdict
    return list(worst.values())


def _gravity(verdict: Verdict) -> tuple[int, bool]:
    return verdict.level.rank, not verdict.is_unknown
