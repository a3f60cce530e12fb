"""Failures, unreadable sectors, power and endurance of a drive, as its sheet has them."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.base import offers
from spindle.reliability.drives import of_model

CLASS_WATTS = ((14_000, 12.0), (9_000, 9.0), (6_500, 7.5), (1, 5.5))
"""Revolutions per minute from which, and watts of disks whose sheet is silent: assumed, as usual for the class."""
FLASH_WATTS = 5.0


@dataclass(frozen=True)
class Facts:
    """Figures of a drive that its speed does not depend on."""

    afr: float
    """Share of such drives that fails in a year: as seen in service, not as promised."""
    ure_per_bit: float
    """Unreadable sectors per bit that is read."""
    watts: float
    """Power under random reads."""
    writes_per_day: float | None
    """Bytes that may be written each day of the warranty; None: disks, and sheets that are silent."""
    assumed: tuple[str, ...]
    """Figures that the sheet does not have."""


def facts_of(name: str) -> Facts:
    """The facts of a drive of the catalogue. Raises `ConfigError`."""
    drive, rates = offers.facts(name), of_model(1, name)
    offer = drive.offer
    silent = {"failure rate": offer.afr, "unreadable sectors": offer.unreadable_rate, "watts": offer.active_watts}
    usual = next(watts for rpm, watts in CLASS_WATTS if drive.rpm >= rpm) if drive.rpm is not None else FLASH_WATTS
    return Facts(
        afr=rates.service_afr,
        ure_per_bit=rates.unreadable_rate.value,
        watts=offer.active_watts.value if offer.active_watts is not None else usual,
        writes_per_day=offer.writes_per_day,
        assumed=tuple(key for key, value in silent.items() if value is None),
    )
