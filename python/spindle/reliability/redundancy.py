"""The sets of failed drives that an array survives, counted by their size.

Two structures cover every level. *Groups*: the drives fall into equal groups, each of which survives as many failures
as its level tolerates (RAID1/5/6/50/60, and RAID10 whose copies fill whole groups). *Windows*: a block's copies are on
neighbouring drives of a ring (far and offset layouts, near layouts on an odd number of drives); data is lost when all
drives of a window have failed. `docs/explanation/reliability.md` derives the counts.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

from msgspec import Struct

from .group import Group

MOST_SETS = 200_000
"""Sets that are enumerated for one size; larger sizes count as lost."""


class Redundancy(Struct, frozen=True):
    """The structure of an array. `window` 0: groups of `width` drives that survive `tolerance` failures each; else
    copies on `window` neighbours from every `step`-th drive on."""

    drives: int
    width: int
    tolerance: int
    window: int = 0
    step: int = 1


def redundancy_of(group: Group) -> Redundancy:
    """Return the structure of an array."""
    if group.level != "raid10":
        return Redundancy(group.drives, group.width, group.tolerance)
    copies, far = group.copies, group.copies // group.near_copies
    if far == 1 and group.drives % copies == 0:
        return Redundancy(group.drives, copies, copies - 1)
    return Redundancy(group.drives, group.drives, copies - 1, copies, math.gcd(group.near_copies, group.drives))


@lru_cache(maxsize=4096)
def fatal(of: Redundancy, failed: int) -> float:
    """Probability that one more failure loses data, after `failed` failures that the array survived; every set of
    drives is equally likely."""
    now, then = surviving(of, failed), surviving(of, failed + 1)
    return min(max(1 - then / now, 0.0), 1.0) if now and then is not None else 1.0


@lru_cache(maxsize=4096)
def critical(of: Redundancy, failed: int) -> float:
    """Probability that the rebuild of one of `failed` drives reads data of which no other copy or parity is left."""
    if failed < of.tolerance:
        return 0.0
    if of.window:
        return 1.0 if of.window == 2 else _critical_window(of, failed)
    groups = of.drives // of.width
    all_sets = _group_counts(of.width, of.tolerance, groups)
    others = _group_counts(of.width, of.tolerance, groups - 1)
    rest = failed - of.tolerance
    if failed >= len(all_sets) or rest >= len(others):
        return 1.0
    full = groups * math.comb(of.width, of.tolerance) * of.tolerance * others[rest]
    return float(full / (failed * all_sets[failed]))


@lru_cache(maxsize=4096)
def surviving(of: Redundancy, failed: int) -> float | None:
    """Share of the sets of `failed` drives that the array survives; None: too many to count."""
    if failed <= of.tolerance:
        return 1.0
    if failed > of.drives:
        return 0.0
    if not of.window:
        counts = _group_counts(of.width, of.tolerance, of.drives // of.width)
        return counts[failed] / math.comb(of.drives, failed) if failed < len(counts) else 0.0
    if of.window == 2 and of.step == 1:
        return _no_neighbours(of.drives, failed) / math.comb(of.drives, failed)
    if of.step * math.comb(of.drives - 1, failed - 1) > MOST_SETS:
        return None
    return sum(not _window_lost(of, kept) for kept in _sets(of, failed)) / sum(1 for _ in _sets(of, failed))


def _group_counts(width: int, tolerance: int, groups: int) -> list[int]:
    """Number of survived sets by size: the coefficients of (sum of C(width, j) x^j, j up to the tolerance) ^ groups."""
    one = [math.comb(width, size) for size in range(tolerance + 1)]
    product = [1]
    for _ in range(groups):
        wider = [0] * (len(product) + tolerance)
        for at, count in enumerate(product):
            for size, ways in enumerate(one):
                wider[at + size] += count * ways
        product = wider
    return product


def _no_neighbours(drives: int, failed: int) -> int:
    """Sets of a ring without two neighbours: n / (n - k) C(n - k, k) (Kaplansky 1943)."""
    rest = drives - failed
    if drives == 2:
        return 0
    return drives * math.comb(rest, failed) // rest if failed <= rest else 0


def _sets(of: Redundancy, failed: int) -> itertools.chain[frozenset[int]]:
    """Sets of `failed` drives that contain one of the first `step` drives: by rotation, each set is among them as often
    as it has drives."""
    return itertools.chain.from_iterable(
        (
            frozenset((first, *rest))
            for rest in itertools.combinations([drive for drive in range(of.drives) if drive != first], failed - 1)
        )
        for first in range(of.step)
    )


def _window_lost(of: Redundancy, failed: frozenset[int]) -> bool:
    return any(
        all((start + at) % of.drives in failed for at in range(of.window)) for start in range(0, of.drives, of.step)
    )


def _critical_window(of: Redundancy, failed: int) -> float:
    """Share of a failed drive's windows of which all other drives but one have failed as well."""
    if of.step * math.comb(of.drives - 1, failed - 1) > MOST_SETS:
        return 1.0
    share, count = 0.0, 0
    for kept in _sets(of, failed):
        if _window_lost(of, kept):
            continue
        rebuilt = next(drive for drive in range(of.step) if drive in kept)
        windows = [[(start + at) % of.drives for at in range(of.window)] for start in range(0, of.drives, of.step)]
        own = [window for window in windows if rebuilt in window]
        share += sum(sum(drive in kept for drive in window) == of.window - 1 for window in own) / len(own)
        count += 1
    return share / count if count else 1.0
