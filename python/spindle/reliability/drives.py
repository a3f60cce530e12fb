"""Drives of an array by number and model or size, with the rates that their reliability depends on."""

from __future__ import annotations

import re

from msgspec import Struct

from spindle import _core
from spindle.base.errors import ConfigError
from spindle.base.offers import Uncertain, facts

_GIVEN = re.compile(r"(?P<count>\d+)\s*[x*]\s*(?P<kind>\S+)")
_SIZE = re.compile(r"[\d.]+\s*[kKMGTP]i?B?")

FIELD_AFR = Uncertain(0.0157, 0.0035, 0.03)
"""All disks of Backblaze's Drive Stats for 2024: 1.57 %; from the data sheets of nearline drives to drives that fail
twice as often."""
FIELD_UNREADABLE = Uncertain(1e-15, 1e-16, 1e-14)
"""Data sheets of nearline drives; of SAS drives, and of desktop drives."""
ASSUMED_RATE = 150e6
"""Bytes a second of a rebuild, where the model is not known."""


class DriveSet(Struct, frozen=True, kw_only=True):
    """Equal drives."""

    count: int
    capacity_bytes: int
    model: str | None
    """A drive of the catalogue; None: only the size is known."""
    afr: Uncertain
    afr_source: str
    service_afr: float
    """Failures a year to plan with: as seen in service, not as promised. A sheet's range ends there."""
    unreadable_rate: Uncertain
    unreadable_source: str
    is_flash: bool = False


def parse_drives(text: str) -> DriveSet:
    """Return the drives of a text such as `8x18TB` or `8xST18000NM000J`. Raises `ConfigError`."""
    found = _GIVEN.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"`drives=`: {text!r} is not NUMBERxSIZE or NUMBERxMODEL, such as 8x18TB or 8xST18000NM000J")
    count, kind = int(found["count"]), found["kind"]
    if not 1 <= count <= 1000:
        raise ConfigError(f"`drives=`: {count} drives; allowed are 1 to 1000")
    if _SIZE.fullmatch(kind):
        return of_size(count, _core.parse_size(kind))
    return of_model(count, kind)


def of_size(count: int, capacity_bytes: int) -> DriveSet:
    """Drives of which only the size is known: their rates are assumed. Raises `ConfigError`."""
    if capacity_bytes < 1 << 30:
        raise ConfigError(f"`drives=`: a drive of {capacity_bytes} bytes is too small; at least 1 GiB")
    return DriveSet(
        count=count,
        capacity_bytes=capacity_bytes,
        model=None,
        afr=FIELD_AFR,
        afr_source="assumed: mean of all disks of Backblaze's Drive Stats for 2024",
        service_afr=FIELD_AFR.value,
        unreadable_rate=FIELD_UNREADABLE,
        unreadable_source="assumed: bound of data sheets of nearline drives",
    )


def of_model(count: int, model: str) -> DriveSet:
    """Drives of the catalogue, with the rates of their sheet. Raises `ConfigError`, with the nearest name."""
    drive = facts(model)
    afr, unreadable = drive.offer.afr, drive.offer.unreadable_rate
    return DriveSet(
        count=count,
        capacity_bytes=drive.capacity,
        model=model,
        afr=afr or FIELD_AFR,
        afr_source="sheet" if afr else "assumed: its sheet is silent; mean of Backblaze's Drive Stats for 2024",
        service_afr=afr.most if afr else FIELD_AFR.value,
        unreadable_rate=unreadable or FIELD_UNREADABLE,
        unreadable_source="sheet" if unreadable else "assumed: its sheet is silent; bound of nearline drives",
        is_flash=drive.kind == "flash",
    )
