"""The arrays that some drives can make, each with its figures, and the one that suits a purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.base.errors import ConfigError
from spindle.prediction import theory
from spindle.prediction.rebuild import rebuild_hours
from spindle.reliability.drives import ASSUMED_RATE, DriveSet
from spindle.reliability.group import Group
from spindle.reliability.loss import yearly_loss
from spindle.result.layout import LayoutReport, layout_report_from_json

from .purpose import Purpose

MOST_IN_A_GROUP = {"raid5": 8, "raid6": 16}
"""Drives of a group beyond which the next group begins: usual practice."""
MOST_SPARES = 2


class Conditions(Struct, frozen=True, kw_only=True):
    """The conditions that the alternatives share."""

    survive: int = 1
    """Drives of which any may fail at a time."""
    spares: int | None = None
    """Hot spares; None: 0 and 1 are compared."""
    most_loss: float = 0.02
    """Largest yearly probability of a loss, of a sector or of everything, of an alternative that is chosen. A dozen
    mirrored drives of 12 TB stay below 2 %, six of them as RAID5 do not."""
    replace_hours: float = 24.0
    """Mean time until a failed drive has been replaced by hand."""
    batch_correlation: float = 1.0


class Alternative(Struct, frozen=True, kw_only=True):
    """An array. Performance is a multiple of one drive, as theory has it."""

    level: str
    layout: str
    """RAID10: as mdadm names it; else empty."""
    groups: int
    spares: int
    chunk: int
    """Bytes; 0 for RAID1."""
    usable_bytes: int
    random_reads: float
    random_writes: float
    stream_reads: float
    stream_writes: float
    survives: int
    rebuild_hours: float
    yearly_loss: float
    """With the failures seen in service."""
    least_loss: float
    """With the favourable ends of the failure and error rates."""
    most_loss: float
    """With the unfavourable ends."""
    score: float
    """Product of the figures, each to the power of its weight."""
    layout_report: LayoutReport

    @property
    def name(self) -> str:
        """For people: `RAID10 n2`."""
        parts = [self.level.upper(), self.layout]
        if self.groups > 1:
            parts.append(f"{self.groups} groups")
        return " ".join(part for part in parts if part)


def alternatives(drives: DriveSet, purpose: Purpose, conditions: Conditions) -> list[Alternative]:
    """Return the arrays that survive enough failures, the best for the purpose first: those within the bound of the
    loss, then the others. Raises `ConfigError` if the drives are too few for any."""
    hours = _rebuild_times(drives)
    found = [
        _alternative(drives, purpose, conditions, level, layout, groups, spares, hours)
        for spares in ([0, 1] if conditions.spares is None else [conditions.spares])
        for level, layout, groups in _kinds(drives.count - spares, purpose, conditions.survive)
    ]
    if not found:
        needed = {1: "2 drives", 2: "3 drives, or 4 for RAID6"}.get(
            conditions.survive, f"{conditions.survive + 1} drives"
        )
        raise ConfigError(
            f"`drives=`: {drives.count} drives cannot survive `survive=` {conditions.survive} of them"
            f" with `spares=` {conditions.spares or 0}; at least {needed} besides the spares"
        )
    return sorted(found, key=lambda each: (each.yearly_loss > conditions.most_loss, -each.score))


def _kinds(count: int, purpose: Purpose, survive: int) -> Iterator[tuple[str, str, int]]:
    """Yield (level, layout, groups) of the arrays of `count` drives that survive any `survive` failures."""
    if survive + 1 <= count <= 4:
        yield "raid1", "", 1
    copies = survive + 1
    if count > copies:
        yield "raid10", f"n{copies}", 1
        if purpose.far and copies == 2:
            yield "raid10", "f2", 1
    for level, parities, wide in (("raid5", 1, "raid50"), ("raid6", 2, "raid60")):
        if parities < survive:
            continue
        if parities + 2 <= count <= MOST_IN_A_GROUP[level]:
            yield level, "", 1
        for groups in range(2, count // (parities + 2) + 1):
            if count % groups == 0 and count // groups <= MOST_IN_A_GROUP[level]:
                yield wide, "", groups
                break


def _rebuild_times(drives: DriveSet) -> Callable[[str, str, int], float]:
    """Return the function that gives hours by (level, layout, drives of a group), simulated once each."""
    known: dict[tuple[str, str, int], float] = {}

    def hours(level: str, layout: str, width: int) -> float:
        if drives.model is None:
            return drives.capacity_bytes / ASSUMED_RATE / 3600
        key = (level, layout, width)
        if key not in known:
            known[key] = rebuild_hours(drives.model, level, width, layout=layout or None)
        return known[key]

    return hours


def _alternative(
    drives: DriveSet,
    purpose: Purpose,
    conditions: Conditions,
    level: str,
    layout: str,
    groups: int,
    spares: int,
    rebuild: Callable[[str, str, int], float],
) -> Alternative:
    count = drives.count - spares
    explained = _explained(level, layout, count, groups, purpose.chunk, drives.capacity_bytes)
    one = {"raid50": "raid5", "raid60": "raid6"}.get(level, level)
    stream, random = _multiples(one, layout, count, groups)
    hours = rebuild(one, layout, count // groups)
    group = Group(
        level=level,
        layout=layout or "n2",
        drives=count,
        groups=groups,
        spares=spares,
        afr=drives.service_afr,
        ure_per_bit=drives.unreadable_rate.value,
        capacity_bytes=float(explained.component or drives.capacity_bytes),
        rebuild_hours=hours,
        replace_hours=conditions.replace_hours,
        batch_correlation=conditions.batch_correlation,
    )
    score = (
        theory.mixed(random, purpose.write_fraction) ** purpose.random
        * stream[0] ** purpose.stream_reads
        * stream[1] ** purpose.stream_writes
        * (explained.capacity / drives.capacity_bytes) ** purpose.capacity
    )
    return Alternative(
        level=level,
        layout=layout,
        groups=groups,
        spares=spares,
        chunk=explained.config.chunk,
        usable_bytes=explained.capacity,
        random_reads=random[0],
        random_writes=random[1],
        stream_reads=stream[0],
        stream_writes=stream[1],
        survives=explained.tolerance.guaranteed,
        rebuild_hours=hours,
        yearly_loss=yearly_loss(group),
        least_loss=yearly_loss(with_rates(group, drives.afr.least, drives.unreadable_rate.least)),
        most_loss=yearly_loss(with_rates(group, drives.afr.most, drives.unreadable_rate.most)),
        score=score,
        layout_report=explained,
    )


def with_rates(group: Group, afr: float, unreadable: float) -> Group:
    """Return the same array with other rates."""
    return msgspec.structs.replace(group, afr=afr, ure_per_bit=unreadable)


def _explained(level: str, layout: str, count: int, groups: int, chunk: int, capacity: int) -> LayoutReport:
    text = _core.array_layout(
        level,
        [capacity] * count,
        layout=layout or None,
        chunk=None if level == "raid1" else chunk,
        groups=groups if groups > 1 else None,
    )
    return layout_report_from_json(text)


def _multiples(level: str, layout: str, count: int, groups: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (reads, writes) of a stream and of random requests: those of a group, times the groups."""
    stream = theory.streaming(level, layout, count // groups)
    random = theory.random(level, layout, count // groups)
    assert stream is not None
    assert random is not None
    return (groups * stream[0], groups * stream[1]), (groups * random[0], groups * random[1])
