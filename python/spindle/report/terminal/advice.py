"""Advice on an array: the choice and its reasons, the alternatives in a table, the setup script."""

from __future__ import annotations

from spindle.advice.alternatives import Alternative, Conditions
from spindle.advice.purpose import Purpose
from spindle.advice.script import Step
from spindle.base import units
from spindle.reliability.drives import ASSUMED_RATE, DriveSet
from spindle.report.terminal.reliability import chance
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table


def page(
    drives: DriveSet,
    purpose: Purpose,
    conditions: Conditions,
    alternatives: list[Alternative],
    steps: list[Step],
    style: Style,
) -> list[str]:
    """Return the page."""
    best = alternatives[0]
    each = drives.model or units.si_size(drives.capacity_bytes)
    text = [*style.headline(f"{drives.count} drives {each} for {purpose.name}: {purpose.about}"), ""]
    text += style.wrap(_choice(best), first="Advice: ")
    text += style.wrap(f"{purpose.chunk_reason}." if best.chunk else "a mirror has none.", first="Chunk:  ")
    if best.yearly_loss > conditions.most_loss:
        text += style.wrap(
            f"no alternative keeps the yearly loss within {chance(conditions.most_loss)}; this is the best of those "
            "that do not. Give more of the drives to redundancy (survive 2), or replace failed drives sooner.",
            first="Warning: ",
        )
    text += ["", *_table(alternatives, conditions, style), "", *_legend(drives, conditions, style), ""]
    text += style.wrap("Setup. Read each line first: it erases the drives. Nothing has been executed.")
    for step in steps:
        text += ["", f"# {step.reason}", step.command]
    return text


def _choice(best: Alternative) -> str:
    chunk = f", chunk {best.chunk >> 10} KiB" if best.chunk else ""
    spares = f", {best.spares} hot spare{'s' if best.spares > 1 else ''}" if best.spares else ", no hot spare"
    drives = "drive" if best.survives == 1 else f"{best.survives} drives"
    return (
        f"{best.name}{chunk}{spares}: {units.si_size(best.usable_bytes)}, any {drives} may fail, "
        f"data lost within a year with probability {chance(best.yearly_loss)}."
    )


def _table(alternatives: list[Alternative], conditions: Conditions, style: Style) -> list[str]:
    columns = [
        Column("array", words=True),
        Column("spares"),
        Column("usable"),
        Column("random read"),
        Column("random write"),
        Column("stream read"),
        Column("stream write"),
        Column("rebuild h"),
        Column("loss a year"),
        Column("from"),
        Column("to"),
        Column("", words=True),
    ]
    rows = [
        [
            each.name,
            str(each.spares),
            units.si_size(each.usable_bytes),
            _multiple(each.random_reads),
            _multiple(each.random_writes),
            _multiple(each.stream_reads),
            _multiple(each.stream_writes),
            f"{each.rebuild_hours:.3g}",
            chance(each.yearly_loss),
            chance(each.least_loss),
            chance(each.most_loss),
            "above the bound" if each.yearly_loss > conditions.most_loss else "",
        ]
        for each in alternatives
    ]
    return table(columns, rows, style)


def _multiple(value: float) -> str:
    return f"{value:.3g}"


def _legend(drives: DriveSet, conditions: Conditions, style: Style) -> list[str]:
    rebuild = (
        "simulated on an idle array"
        if drives.model
        else f"the size at an assumed {ASSUMED_RATE / 1e6:.0f} MB/s, on an idle array"
    )
    performance = (
        "Performance is in multiples of one drive, as theory has it (docs/questions/theory.md compares it with the "
        f"simulator). Rebuild: {rebuild}. A failed drive is replaced after {conditions.replace_hours:g} h."
    )
    return [*style.wrap(performance), *style.wrap(_rates(drives))]


def _rates(drives: DriveSet) -> str:
    """Return the failure and error rates behind the losses."""
    afr, errors = drives.afr, drives.unreadable_rate
    failures = (
        f"Loss a year: with {100 * drives.service_afr:.3g} % failures a year, as seen in service "
        f"({100 * afr.least:.3g} to {100 * afr.most:.3g} %; {drives.afr_source})."
    )
    unreadable = (
        f"Unreadable: 1 bit in {1 / errors.value:.0e} ({1 / errors.most:.0e} to {1 / errors.least:.0e}; "
        f"{drives.unreadable_source})."
    )
    return f"{failures} {unreadable.replace('e+', 'e')} `from` and `to`: the loss at both ends."
