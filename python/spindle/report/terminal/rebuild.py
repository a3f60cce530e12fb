"""Rebuild of an array: its shortest duration, and the probability of an unreadable sector.

The error rates are the bounds of data sheets, taken as independent for each bit: 1 in 1e14 bits for desktop SATA
drives, 1 in 1e15 for those made for servers. Real drives mostly do better, and their errors come in clusters.
"""

from __future__ import annotations

from msgspec import Struct

from spindle.doctor.arithmetic import unreadable_probability
from spindle.doctor.rules.ure import DESKTOP, NEARLINE

MD_LIMIT = 200_000 << 10
"""Bytes a second: `dev.raid.speed_limit_max` as Linux sets it, 200 000 KiB/s (md(4)); md does not go faster."""


class Unreadable(Struct, frozen=True):
    """The chance of at least one unreadable sector."""

    errors_per_bit: float
    probability: float


class Rebuild(Struct, frozen=True):
    """The rebuild of one drive from the others."""

    bytes_per_s: int
    """Assumed: the drive's rate, or md's limit."""
    seconds: float
    """Duration on an idle array; other load makes it longer."""
    failed: int
    """Number of failed drives at which an unreadable sector loses data."""
    read_bytes: int
    """Bytes that must then be read without an error."""
    unreadable: list[Unreadable]


def rebuild_of(
    level: str, component: int, drives: int, groups: int, guaranteed: int, bytes_per_s: int | None
) -> Rebuild | None:
    """`component`: bytes used on each of `drives` in `groups`; `guaranteed`: drives of which any may fail. None: the
    level has nothing to rebuild from, or the drives are used to different ends."""
    if guaranteed < 1 or component < 1:
        return None
    rate = bytes_per_s or MD_LIMIT
    width = drives // groups
    sources = 1 if level in ("raid1", "raid10") else width - guaranteed
    bits = 8.0 * sources * component
    return Rebuild(
        bytes_per_s=rate,
        seconds=component / rate,
        failed=guaranteed,
        read_bytes=sources * component,
        unreadable=[Unreadable(each, unreadable_probability(bits, each)) for each in (NEARLINE, DESKTOP)],
    )
