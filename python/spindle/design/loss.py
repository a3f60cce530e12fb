"""The yearly probability that an array loses data: by the chain of `reliability`, and roughly for the nets."""

from __future__ import annotations

import math
from functools import lru_cache

from spindle.design.facts import Facts
from spindle.design.schemes import Scheme
from spindle.reliability import loss
from spindle.reliability.group import HOURS_PER_YEAR, Group

LEAST_HOURS, MOST_HOURS = 0.01, 1e5
"""Ends of the rebuild times that `reliability` takes."""


def group_of(scheme: Scheme, drives: int, spares: int, facts: Facts, used_bytes: float, hours: float) -> Group:
    """An array as `reliability` sees it. `used_bytes` of each drive; `hours`: of a rebuild."""
    return Group(
        level=scheme.level or "raid0",
        layout=scheme.layout or "n2",
        groups=scheme.groups,
        drives=drives,
        spares=spares,
        afr=facts.afr,
        ure_per_bit=facts.ure_per_bit,
        capacity_bytes=used_bytes,
        rebuild_hours=min(max(hours, LEAST_HOURS), MOST_HOURS),
    )


@lru_cache(maxsize=4096)
def yearly_loss(group: Group) -> float:
    """Probability of a loss of data in a year."""
    return loss.yearly_loss(group)


def rough_loss(group: Group) -> float:
    """The same by a product: a first failure, in each repair one more, and last an unreadable sector or a drive. For
    repairs much shorter than lives (Patterson, Gibson and Katz 1988); in microseconds."""
    per_hour = -math.log1p(-group.afr) / HOURS_PER_YEAR
    if group.level == "raid0":
        return -math.expm1(-group.drives * per_hour * HOURS_PER_YEAR)
    repair = group.rebuild_hours + (0.0 if group.spares else group.replace_hours)
    unreadable = -math.expm1(8 * group.capacity_bytes * math.log1p(-group.ure_per_bit))
    if group.level in ("raid1", "raid10"):
        partners = (group.copies - 1) * (1 if group.near_copies == group.copies else 2)
        counts = [float(group.drives), *[float(partners)] * (group.copies - 1)]
        return _product(counts, per_hour, repair, unreadable)
    parity = 2 if group.level in ("raid6", "raid60") else 1
    counts = [float(group.width - at) for at in range(parity + 1)]
    of_all = -math.expm1((group.width - parity) * math.log1p(-unreadable))
    return group.groups * _product(counts, per_hour, repair, of_all)


def _product(drives: list[float], per_hour: float, repair_hours: float, unreadable: float) -> float:
    rate = drives[0] * per_hour
    for count in drives[1:-1]:
        rate *= min(1.0, count * per_hour * repair_hours)
    last = min(1.0, drives[-1] * per_hour * repair_hours)
    return -math.expm1(-rate * (1 - (1 - last) * (1 - unreadable)) * HOURS_PER_YEAR)
