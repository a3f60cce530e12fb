"""The story of a search for the best settings: the decision, its reasons, the trials, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spindle.base.commands import given, shell
from spindle.report.charts import search as charts
from spindle.report.document.entry import Entry
from spindle.report.document.model import Block, Chart, Paragraph, Section, Sheet
from spindle.report.document.trial import runs_of
from spindle.report.terminal.tune import bound_words, change_table, compared, counted, left_over, words_of
from spindle.result.record import Level
from spindle.tune.decision import Tuning


def sections(searches: Sequence[Tuning], entries: Sequence[Entry]) -> Iterator[Section]:
    """Yield three sections for each search."""
    for at, found in enumerate(searches):
        suffix, name = (f"-{at + 1}", f" of {found.campaign.name}") if len(searches) > 1 else ("", "")
        for key, title, blocks in (
            ("decision", "Decision", [*_decision(found, entries)]),
            ("influences", "Which settings matter", [*_influences(found)]),
            ("search", "The search", _there([charts.trials(found)])),
        ):
            if blocks:
                yield Section(f"{key}{suffix}", f"{title}{name}", [_own(block, suffix) for block in blocks])


def _own(block: Block, suffix: str) -> Block:
    return replace(block, key=f"{block.key}{suffix}") if isinstance(block, Chart) else block


def _there(found: Sequence[Chart | None]) -> list[Block]:
    return [chart for chart in found if chart is not None]


def _decision(found: Tuning, entries: Sequence[Entry]) -> Iterator[Block]:
    reason = f" {found.reason[:1].upper()}{found.reason[1:]}." if found.reason else ""
    yield Paragraph(f"{found.sentence[:1].upper()}{found.sentence[1:]}.{reason}")
    yield Paragraph(f"{counted(found) if found.objectives else compared(found)}.")
    if found.changes:
        yield Sheet("Recommended settings", *change_table(found))
    elif found.winner is not None and found.state == "keep":
        yield Paragraph(f"Not recommended: {words_of(found.moved(found.winner)) or 'no change'}.")
    for bound in found.bounds:
        yield Paragraph(f"{bound_words(bound)}.", None if bound.holds else Level.WARN)
    for levels in found.dropped:
        yield Paragraph(f"Dropped, its trials have two modes: {words_of(found.moved(levels))}.", Level.WARN)
    yield from _there([charts.beside(found), charts.front(found)])
    yield from _way_back(found, entries)


def _way_back(found: Tuning, entries: Sequence[Entry]) -> Iterator[Paragraph]:
    """The same on every machine, so that a report does not depend on the one that makes it."""
    if not found.changes:
        return
    name = found.campaign.name
    own = [run for one in entries if one.campaign == name for run in runs_of(one)]
    if any(run.target.traits.is_modelled for run in own):
        yield Paragraph("A modelled machine has nothing to set: write these settings into its file.")
    else:
        command = shell("spindle", "tune", *given(resume=name, apply=True))
        yield Paragraph(
            f"The search put everything back. `{command}` sets the best settings, and `spindle restore` undoes that."
        )


def _influences(found: Tuning) -> Iterator[Block]:
    if not found.influences:
        return
    yield from _there([charts.gains(found), charts.curves(found)])
    for words in left_over(found):
        yield Paragraph(f"{words[:1].upper()}{words[1:]}.")
