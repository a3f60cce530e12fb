"""Campaigns for people: the preview of a plan, the results, and the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spindle.base import units
from spindle.campaign.execution import LOST
from spindle.campaign.outcome import CellOutcome, Outcome
from spindle.campaign.plan import Plan
from spindle.campaign.preview import Preview
from spindle.report.terminal.store import CampaignLine
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.stats.names import Metric

SHOWN_TRIALS = 24
"""Trials shown of the order of a plan."""


def of_preview(found: Preview, style: Style) -> list[str]:
    """Return the page about a planned campaign."""
    plan, ready = found.ready.plan, found.ready
    lines = style.headline(f"{plan.name}: {plan.about}" if plan.about else plan.name)
    cells = len(found.ready.prepared)
    trials = str(ready.least) if ready.least == ready.most else f"{ready.least} to {ready.most}"
    until = f", until {_within(plan)}" if plan.trials.within is not None else ""
    lines += style.wrap(
        f"{_count(cells, 'cell')}, {trials} trials{until}; order: {plan.trials.order}; seed {plan.seed}"
    )
    lines += style.wrap(_time(found), "time: ")
    lines += ["", *_factors(plan, style), ""]
    shown = list(found.first[:SHOWN_TRIALS])
    heads = [Column("trial"), Column("block"), *(Column(factor.name, words=True) for factor in plan.all_factors)]
    rows = [[str(number), str(one.block), *one.cell.levels.values()] for number, one in enumerate(shown, 1)]
    lines += table(heads, rows, style)
    if len(found.first) > len(shown):
        lines.append(f"... and {len(found.first) - len(shown)} more")
    lines += ["", "changes to this machine:"]
    lines += [line for change in found.changes or ["none"] for line in style.wrap(change, "  ")]
    return lines


def _within(plan: Plan) -> str:
    name = plan.trials.metric or "the main figure"
    sure = f"{100 * plan.trials.confidence:g} %"
    return f"{name} is known to {units.percent(plan.trials.within or 0)} ({sure} interval)"


def _time(found: Preview) -> str:
    if found.seconds is not None:
        least, most = found.seconds
        return f"about {units.seconds(least)}" + (f", at most {units.seconds(most)}" if most > least else "")
    if found.machine_seconds is not None:
        return f"{units.seconds(found.machine_seconds)} of the modelled machines' time, which are computed faster"
    return "not known beforehand: a trial ends by bytes, requests or steadiness"


def _factors(plan: Plan, style: Style) -> list[str]:
    return [
        line for factor in plan.all_factors for line in style.wrap(", ".join(factor.labels), f"{factor.name}: ", "  ")
    ] or ["no factors: the same run repeated"]


def of_outcome(found: Outcome, style: Style) -> list[str]:
    """Return the page with its results."""
    campaign = found.campaign
    lines = style.headline(f"{campaign.name}: {found.about}" if found.about else campaign.name)
    parts = [f"{_count(found.done, 'trial')} done"]
    if found.planned:
        parts.append(f"{found.planned} to come")
    if found.given_up:
        parts.append(f"{found.given_up} given up")
    again = sum(one.attempts for one in found.cells) - found.done - found.given_up
    if again > 0 and not found.planned:
        parts.append(f"{again} made again")
    lines += style.wrap(f"{campaign.state}: {', '.join(parts)}; begun {campaign.created[:16]}Z")
    for host, lost in campaign.detail.get(LOST, {}).items():
        lines += style.wrap(f"{lost['reason']}; its other trials are left", f"{host}: lost: ", "  ")
    if found.metric is not None:
        lines += ["", *style.wrap(f"{found.means} of the trials:"), *_cells(found, found.metric, style)]
    reasons = list(dict.fromkeys(reason for cell in found.cells for reason in cell.reasons))
    if reasons:
        lines += ["", "attempts that do not count:"]
        lines += [line for reason in reasons[:5] for line in style.wrap(reason, "  ")]
        lines += [f"  ... and {len(reasons) - 5} more"] if len(reasons) > 5 else []
    return lines


def _cells(found: Outcome, metric: Metric, style: Style) -> list[str]:
    head, scale = scale_of(metric)
    columns = [*(Column(factor, words=True) for factor in found.factors), Column("trials"), Column(head)]
    spread = any(cell.low is not None for cell in found.cells)
    if spread:
        columns.append(Column(f"{100 * found.confidence:g} % interval"))
    relative = any(cell.multiple is not None for cell in found.cells)
    if relative:
        columns.append(Column(f"x {' '.join(found.relative_to.values())}"))
    rows = []
    for cell in found.cells:
        row = [*cell.levels, _trials(cell), units.significant(cell.mean / scale) if cell.mean is not None else ""]
        if spread:
            row.append(_interval(cell, scale))
        if relative:
            row.append(f"{cell.multiple:.2f}" if cell.multiple is not None else "")
        rows.append(row)
    return table(columns, rows, style)


def _trials(cell: CellOutcome) -> str:
    return str(cell.done) + (f" of {cell.done + cell.planned + cell.given_up}" if cell.planned or cell.given_up else "")


def _interval(cell: CellOutcome, scale: float) -> str:
    if cell.low is None or cell.high is None:
        return ""
    return f"{units.significant(cell.low / scale)} to {units.significant(cell.high / scale)}"


def scale_of(metric: Metric) -> tuple[str, float]:
    """Return the heading of the column, and the divisor of its values."""
    match metric.unit:
        case "B/s":
            return f"{metric.name} (MB/s)", 1e6
        case "ns":
            return f"{metric.name} (ms)".replace("_ns", ""), 1e6
        case "":
            return metric.name, 1.0
        case unit:
            return f"{metric.name} ({unit})", 1.0


def of_list(campaigns: Sequence[CampaignLine], style: Style) -> list[str]:
    """Return the table of campaigns with their progress."""
    if not campaigns:
        return ["no campaigns yet; `spindle campaign run PRESET` starts one (`spindle campaign presets` lists them)"]
    columns = [Column("name", words=True), Column("begun", words=True), Column("state", words=True), Column("trials")]
    rows = [
        [one.name, one.created[:16].replace("T", " "), one.state, f"{one.states.get('done', 0)} of {one.trials}"]
        for one in campaigns
    ]
    return table(columns, rows, style)


def of_presets(presets: Mapping[str, str], style: Style) -> list[str]:
    """Return the table of names with one line about each."""
    width = max(len(name) for name in presets)
    return [line for name, about in presets.items() for line in style.wrap(about, f"{name.ljust(width)}  ")]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
