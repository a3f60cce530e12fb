"""Drives of the catalogue as a buyer compares them: capacity, rates, failure rates, power and place."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from spindle import _core
from spindle.base.decoding import decode_json


class Uncertain(Struct, frozen=True):
    """A number with the range in which it is uncertain; without one the ends equal the number."""

    value: float
    least: float
    most: float


class Offer(Struct, frozen=True, kw_only=True):
    """The numbers of a sheet that no model of performance needs (`crates/drive/src/offer.rs`). None: the sheet is
    silent."""

    afr: Uncertain | None
    """Share of the drives that fail in a year of service."""
    unreadable_rate: Uncertain | None
    """Unrecoverable errors per bit read."""
    idle_watts: Uncertain | None
    active_watts: Uncertain | None
    bay: str | None
    """`3.5 inch`, `2.5 inch`, `M.2` or `card`."""
    interface: str | None
    """`SATA`, `SAS` or `NVMe`."""
    warranty_years: float | None
    endurance: int | None
    """Bytes that may be written."""
    stated_read_iops: float | None
    """The maker's random 4 KiB reads a second, with `stated_read_depth` outstanding."""
    stated_read_depth: int | None
    stated_write_rate: float | None
    """The maker's sequential writes, bytes a second."""

    @property
    def writes_per_day(self) -> float | None:
        """Bytes that may be written each day of the warranty. None: the sheet is silent."""
        if self.endurance is None or self.warranty_years is None:
            return None
        return self.endurance / (self.warranty_years * 365.25)


class Facts(Struct, frozen=True, kw_only=True):
    """A drive of the catalogue (`crates/drive/src/show.rs`)."""

    name: str
    title: str
    kind: str
    """`disk` or `flash`."""
    capacity: int
    """Bytes."""
    rpm: float | None
    bytes_per_second: float
    """Sequential reads at its start."""
    inner_bytes_per_second: float
    """Sequential reads at its end."""
    offer: Offer

    @property
    def mean_bytes_per_second(self) -> float:
        """Rate at which the whole drive is read: each of its zones takes the same time, so the mean of both ends."""
        outer, inner = self.bytes_per_second, self.inner_bytes_per_second
        return (outer + inner) / 2


@lru_cache(maxsize=256)
def facts(name: str) -> Facts:
    """Return the facts of a drive of the catalogue. Raises `ConfigError`, with the nearest name."""
    return decode_json(_core.drive_facts(name), Facts)
