"""Output of `spindle store`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base.numbers import plain
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import MODELLED_START
from spindle.store import Artefact, Info, RecordingSummary, RecordSummary, SelectedRecord, Store, StoreCheck

MOST_PROBLEMS = 50
"""Most problems listed of a damaged store: the rest is counted. JSON has all."""


@dataclass(frozen=True, kw_only=True)
class TagLine:
    """A tag, and its number of results."""

    tag: str
    results: int


@dataclass(frozen=True, kw_only=True)
class CampaignLine:
    """A campaign and its progress."""

    id: str
    name: str
    created: str
    state: str
    trials: int
    states: dict[str, int]
    """State of a trial -> number of trials."""


def tag_lines(tags: dict[str, int]) -> list[TagLine]:
    """Return the tags by name."""
    return [TagLine(tag=name, results=count) for name, count in tags.items()]


def campaign_lines(store: Store) -> list[CampaignLine]:
    """Return the campaigns, oldest first."""
    found = []
    for campaign in store.campaigns.all():
        states = Counter(trial.state for trial in store.campaigns.trials(campaign.name))
        found.append(
            CampaignLine(
                id=campaign.id,
                name=campaign.name,
                created=campaign.created,
                state=campaign.state,
                trials=states.total(),
                states=dict(sorted(states.items())),
            )
        )
    return found


def lines_of(found: Sequence[Any]) -> list[str]:
    """Return a row each, not cut to the terminal's width, so that rows can be searched and copied."""
    if not found:
        return ["nothing"]
    heads, rows = _HEADS[type(found[0])], [_row(each) for each in found]
    return table([Column(head.lstrip("<"), words=head.startswith("<")) for head in heads], rows, Style())


_HEADS: dict[type, list[str]] = {
    RecordSummary: ["<run", "<started", "<workload", "<target", "IOPS", "MB/s", "<verdict", "<tags and trial"],
    TagLine: ["<tag", "results"],
    CampaignLine: ["<campaign", "<created", "<state", "trials", "<of them"],
    RecordingSummary: ["<recording", "<started", "interval s", "devices", "samples", "<of", "<about"],
}


def _row(each: Any) -> list[str]:
    match each:
        case RecordSummary():
            return [
                each.id,
                "modelled" if each.started == MODELLED_START else each.started.replace("T", " ").removesuffix("Z"),
                each.workload,
                each.target,
                plain(each.iops) if each.iops else "-",
                plain(each.bytes_per_s / 1e6) if each.bytes_per_s else "-",
                each.level,
                " ".join([*each.tags, *_trial(each)]),
            ]
        case TagLine():
            return [each.tag, str(each.results)]
        case CampaignLine():
            states = ", ".join(f"{count} {state}" for state, count in each.states.items())
            return [each.name, each.created[:16].replace("T", " "), each.state, str(each.trials), states]
        case RecordingSummary():
            return [
                each.id,
                each.started.replace("T", " ").removesuffix("Z"),
                plain(each.interval_s),
                str(each.devices),
                str(each.samples),
                f"{each.campaign}#{each.trial}" if each.campaign is not None else each.host,
                each.about,
            ]
        case _:
            raise AssertionError(each)


def _trial(each: RecordSummary | SelectedRecord) -> list[str]:
    if each.campaign is None:
        return []
    return [f"{each.campaign}#{each.trial}", *(f"{factor}={level}" for factor, level in each.cell.items())]


def standing(each: SelectedRecord, artefacts: Sequence[Artefact]) -> list[str]:
    """Return the store's data about a result besides its record."""
    lines = [f"stored as {each.run_id}"]
    lines += [f"tags: {', '.join(each.tags)}"] if each.tags else []
    lines += [f"trial: {' '.join(_trial(each))}"] if each.campaign is not None else []
    for file in artefacts:
        where = file.path or "in the store"
        lines.append(f"file: {file.name} ({file.size_bytes} bytes, {where})")
    return ["", *lines]


def checked(found: StoreCheck, place: str) -> list[str]:
    """Return what was checked, and each problem."""
    looked = f"{found.records} results, {found.campaigns} campaigns, {found.artefacts} files"
    if not found.problems:
        return [f"{place}: whole ({looked})"]
    lines = [f"{place}: {len(found.problems)} problems ({looked})"]
    lines += [f"  {problem}" for problem in found.problems[:MOST_PROBLEMS]]
    more = len(found.problems) - MOST_PROBLEMS
    return [*lines, f"  and {more} more; `json=True` has all"] if more > 0 else lines


def info(found: Info) -> list[str]:
    """Return the lines."""
    rows = [
        ("place", found.place),
        ("database", found.database + (f", journal {found.journal}" if found.journal else "")),
        ("schema", found.schema),
        ("size", f"{found.size_bytes / 1e6:.1f} MB"),
        *((name, str(count)) for name, count in found.counts.items()),
        ("tags", str(found.tags)),
    ]
    if found.file_system is not None:
        rows.insert(2, ("file system", found.file_system))
    width = max(len(name) for name, _ in rows)
    return [f"{name.ljust(width)}  {text}" for name, text in rows]
