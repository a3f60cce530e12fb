"""Failures, unreadable sectors and watts of a drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Figures of a drive that its speed does not depend on."""

    afr: float
    """Share of such drives that fails in a year."""
    ure_per_bit: float
    """Unreadable sectors per bit that is read."""
    watts: float
    """Power under random reads."""
    is_assumed: bool
    """True if the drive's class, not its sheet, gives them."""


_CLASSES = (
    # rpm from, facts
    (14_000, Facts(0.0055, 1e-16, 12.0, True)),
    (9_000, Facts(0.007, 1e-15, 9.0, True)),
    (6_500, Facts(0.014, 1e-15, 7.5, True)),
    (1, Facts(0.014, 1e-14, 5.5, True)),
)
_FLASH = Facts(0.007, 1e-17, 5.0, True)


def facts_of(name: str, line: Mapping[str, Any]) -> Facts:
    """The facts of a drive by its class: revolutions per minute, or flash."""
    rpm = line["rpm"]
    if rpm is None:
        return _FLASH
    return next(facts for least, facts in _CLASSES if rpm >= least)
