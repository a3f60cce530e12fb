"""The risk of an array: the probability of a loss, its causes, and the numbers that it depends on."""

from __future__ import annotations

import math

from msgspec import Struct

from spindle.base import units
from spindle.base.offers import Uncertain
from spindle.reliability.group import HOURS_PER_YEAR, Group
from spindle.reliability.loss import Loss
from spindle.reliability.montecarlo import Estimate
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table


class Input(Struct, frozen=True):
    """A number that the risk depends on."""

    name: str
    number: Uncertain
    unit: str
    """`share`, `rate`, `hours`, `days`, `years` or `number`."""
    source: str


def page(
    group: Group, risk: Loss, ends: tuple[float, float], inputs: list[Input], estimated: Estimate | None, style: Style
) -> list[str]:
    """Return the page. `ends`: the probability with the favourable and the unfavourable inputs."""
    text = [*style.headline(heading(group)), ""]
    within = "a year" if risk.years == 1 else f"{risk.years:g} years"
    spread = f"; {chance(ends[0])} to {chance(ends[1])} over the ranges below" if ends[0] < ends[1] else ""
    text += style.wrap(
        f"{chance(risk.probability)} within {within} ({one_in(risk.probability)}){spread}", first="Loss of data:     "
    )
    text += style.wrap(mean_time(risk.mean_hours), first="Mean time to it:  ")
    if estimated is not None:
        text += style.wrap(
            f"{chance(estimated.probability)}, 95 % interval {chance(estimated.low)} to {chance(estimated.high)} "
            f"({units.count(estimated.lives)} lives, importance sampling)",
            first="Monte Carlo:      ",
        )
    text += ["", *_causes(group, risk, style), "", *_table_of(inputs, style)]
    return text


def heading(group: Group) -> str:
    """Return the array in a line."""
    layout = f" {group.layout}" if group.level == "raid10" else ""
    groups = f" in {group.groups} groups" if group.groups > 1 else ""
    spares = f" + {group.spares} spare{'s' if group.spares > 1 else ''}" if group.spares else ""
    each = units.si_size(round(group.capacity_bytes))
    return f"{group.level.upper()}{layout} over {group.drives} drives of {each}{groups}{spares}"


def _causes(group: Group, risk: Loss, style: Style) -> list[str]:
    tolerance = group.tolerance
    drives = f"{tolerance + 1} drives failed at a time" if tolerance else "a drive failed"
    if group.drives > group.width or group.level == "raid10":
        drives += ", those that share data"
    rows = [[drives, chance(risk.by_drives), share(risk.by_drives, risk.probability)]]
    if tolerance:
        failed = f"{tolerance} failed drive{'s' if tolerance > 1 else ''}"
        rows.append(
            [
                f"an unreadable sector in the rebuild, with {failed}",
                chance(risk.by_sectors),
                share(risk.by_sectors, risk.probability),
            ]
        )
    columns = [Column("cause", words=True), Column("probability"), Column("share")]
    return table(columns, rows, style)


def _table_of(inputs: list[Input], style: Style) -> list[str]:
    columns = [Column("number", words=True), Column("value"), Column("range"), Column("source", words=True)]
    rows = [
        [
            each.name,
            _number(each.number.value, each.unit),
            ""
            if each.number.least == each.number.most
            else f"{_number(each.number.least, each.unit)} to {_number(each.number.most, each.unit)}",
            each.source,
        ]
        for each in inputs
    ]
    return table(columns, rows, style)


def _number(value: float, unit: str) -> str:
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "rate":
        return f"{value:.0e}".replace("e-0", "e-") if value else "0"
    if unit == "hours":
        return f"{value:.3g} h"
    return f"{value:g}" if unit == "number" else f"{value:g} {unit}"


def chance(probability: float) -> str:
    """Return a probability: in per cent from 0.1 % on, below with an exponent."""
    if probability >= 0.001:
        return f"{100 * probability:.3g} %"
    return f"{probability:.1e}".replace("e-0", "e-") if probability else "0"


def one_in(probability: float) -> str:
    """Return a probability as one in N arrays."""
    if probability <= 0:
        return "never, in this model"
    if probability > 0.5:
        return "more often than not"
    return f"1 in {units.count(float(f'{1 / probability:.2g}'))}" if probability > 1e-15 else "below 1 in 1e15"


def mean_time(hours: float) -> str:
    """Return the mean time to a loss."""
    years = hours / HOURS_PER_YEAR
    if not math.isfinite(years):
        return "never, in this model"
    return f"{units.count(float(f'{years:.3g}'))} years" if years < 1e9 else f"{years:.2g} years".replace("e+", "e")


def share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
