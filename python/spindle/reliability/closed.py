"""The closed forms of textbooks, for arrays without spares whose rebuild begins at once and takes an exponential time.

Chen, Lee, Gibson, Katz, Patterson, "RAID: High-Performance, Reliable Secondary Storage", ACM Computing Surveys 26(2),
1994; the exact forms are those of the birth-death chain, as in Rao, Hafner, Golding, "Reliability for Networked Storage
Nodes", IEEE DSN 2006.
"""

from __future__ import annotations

import math

from .group import Group


def mean_hours(group: Group) -> float:
    """Return the mean time to data loss in hours. RAID10 with two near copies counts as pairs; raises `ValueError` for
    levels without a form here."""
    rate, repair = group.failure_rate, 1 / group.rebuild_hours
    hit = -math.expm1(-group.unreadable())
    match group.level:
        case "raid0":
            return 1 / (group.drives * rate)
        case "raid1" if group.drives == 2:
            return _single(2, rate, repair, hit)
        case "raid10" if group.copies == 2 and group.near_copies == 2 and group.drives % 2 == 0:
            return _single(2, rate, repair, hit) / (group.drives / 2)
        case "raid4" | "raid5":
            return _single(group.drives, rate, repair, hit)
        case "raid50":
            return _single(group.width, rate, repair, hit) / group.groups
        case "raid6":
            return _double(group.drives, rate, repair, hit)
        case "raid60":
            return _double(group.width, rate, repair, hit) / group.groups
    raise ValueError(f"no closed form for {group.level} {group.layout}")


def _single(drives: int, rate: float, repair: float, hit: float) -> float:
    """One failure is survived: ((2n - 1) l + m) / (n l ((n - 1) l + m h)), for h = 0 about m / (n (n - 1) l^2)."""
    return ((2 * drives - 1) * rate + repair) / (drives * rate * ((drives - 1) * rate + repair * hit))


def _double(drives: int, rate: float, repair: float, hit: float) -> float:
    """Two failures are survived; for h = 0 about m^2 / (n (n - 1) (n - 2) l^3)."""
    first, second, third = drives * rate, (drives - 1) * rate, (drives - 2) * rate
    degraded = third + repair + second + repair * (third + repair) / first
    return 1 / first + degraded / (second * (third + repair * hit))
