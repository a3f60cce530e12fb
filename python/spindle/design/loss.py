"""The yearly probability that an array loses data: drives that fail during rebuilds, and unreadable sectors.

Closed form of a Markov chain with constant rates, for repairs that are much shorter than lives (Patterson, Gibson and
Katz 1988), with unreadable sectors in the last rebuild.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HOURS_PER_YEAR = 8766.0
REPLACE_HOURS = 24.0
"""Time until a drive is replaced where there is no spare."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """An array of like drives."""

    level: str
    layout: str
    groups: int
    drives: int
    spares: int
    afr: float
    ure_per_bit: float
    capacity_bytes: float
    """Used on each drive."""
    rebuild_hours: float


def yearly_loss(group: Group) -> float:
    """Probability of a loss of data in a year."""
    per_hour = -math.log1p(-group.afr) / HOURS_PER_YEAR
    repair = group.rebuild_hours + (0.0 if group.spares else REPLACE_HOURS)
    unreadable = -math.expm1(-8 * group.capacity_bytes * group.ure_per_bit)
    if group.level in ("one drive", "raid0"):
        return -math.expm1(-group.drives * per_hour * HOURS_PER_YEAR)
    if group.level in ("raid1", "raid10"):
        copies = group.drives if group.level == "raid1" else int(group.layout[1:] or 2)
        sets = group.drives / copies
        # f2 and o2: the copies of a drive are on two neighbours, either of which may hold the second failure.
        partners = (copies - 1) * (2 if group.layout[:1] in "fo" and group.layout else 1)
        rate = _chain([copies * sets] + [partners] * (copies - 1), per_hour, repair, unreadable)
    else:
        parity = 2 if group.level in ("raid6", "raid60") else 1
        size = group.drives // group.groups
        survivors = size - parity
        steps = [float(size - at) for at in range(parity + 1)]
        rate = group.groups * _chain(steps, per_hour, repair, -math.expm1(survivors * math.log1p(-unreadable)))
    return -math.expm1(-rate * HOURS_PER_YEAR)


def _chain(drives: list[float], per_hour: float, repair_hours: float, unreadable: float) -> float:
    """Losses in an hour: a first failure, in each repair one more, and last an unreadable sector or a drive."""
    rate = drives[0] * per_hour
    for count in drives[1:-1]:
        rate *= min(1.0, count * per_hour * repair_hours)
    last = min(1.0, drives[-1] * per_hour * repair_hours)
    return rate * (1 - (1 - last) * (1 - unreadable))
