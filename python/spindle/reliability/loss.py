"""The probability that an array loses data, as numbers for other rooms: by the Markov chain, in about a millisecond."""

from __future__ import annotations

from msgspec import Struct

from .chain import Chain, losses, mean_hazard
from .group import Group


class Loss(Struct, frozen=True, kw_only=True):
    """The risk of an array."""

    years: float
    """The time from a whole array on."""
    probability: float
    """Data is lost within it: all of it, or a sector."""
    by_drives: float
    """Part of `probability`: more drives failed at a time than the array survives."""
    by_sectors: float
    """Part of `probability`: a rebuild without redundancy met an unreadable sector."""
    mean_hours: float
    """Mean time to data loss, at the failure rate in the middle of that time."""


def yearly_loss(group: Group) -> float:
    """Return the probability that a whole array loses data within a year."""
    return sum(losses(group))


def loss(group: Group, years: float = 1.0) -> Loss:
    """Return the risk within `years`, with its causes and the mean time to data loss."""
    drives, sectors = losses(group, years)
    hours, _, _ = Chain(group, mean_hazard(group, 0, years), years / 2).mean_hours()
    return Loss(years=years, probability=drives + sectors, by_drives=drives, by_sectors=sectors, mean_hours=hours)
