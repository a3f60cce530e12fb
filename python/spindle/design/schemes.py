"""RAID levels with their layouts: capacity, tolerance, and the requests of the drives for those of the load.

The formulas are those of `docs/explanation/arrays.md`; the simulator has the maps themselves.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scheme:
    """A level with its layout and groups."""

    name: str
    """`raid10 f2`, `raid60 x2`."""
    level: str | None
    """As in a machine file; None: one drive without an array."""
    least: int
    """Fewest drives."""
    tolerance: int
    """Any drives that may fail."""
    layout: str | None = None
    copies: int = 1
    parity: int = 0
    """Drives of each group that parity takes."""
    groups: int = 1
    most: int = 10_000

    def allows(self, drives: int) -> bool:
        """True if it can be made of so many drives."""
        return self.least <= drives <= self.most and drives % self.groups == 0

    def data_drives(self, drives: int) -> float:
        """Drives' worth of data."""
        if self.level == "raid1":
            return 1.0
        return drives / self.copies - self.parity * self.groups

    @property
    def has_chunk(self) -> bool:
        """True if its chunk can be chosen."""
        return self.level not in (None, "raid1")


def _mirrors(layout: str, copies: int, least: int) -> Scheme:
    return Scheme(f"raid10 {layout}", "raid10", least, copies - 1, layout, copies)


def _grouped(level: str, parity: int, groups: int) -> Scheme:
    of_group = parity + 2
    return Scheme(f"{level} x{groups}", level, of_group * groups, parity, None, 1, parity, groups)


SCHEMES: tuple[Scheme, ...] = (
    Scheme("one drive", None, 1, 0, most=1),
    Scheme("raid0", "raid0", 2, 0),
    Scheme("raid1", "raid1", 2, 1, copies=2, most=2),
    Scheme("raid1 x3", "raid1", 3, 2, copies=3, most=3),
    _mirrors("n2", 2, 4),
    _mirrors("f2", 2, 3),
    _mirrors("o2", 2, 3),
    _mirrors("n3", 3, 6),
    Scheme("raid5", "raid5", 3, 1, parity=1),
    Scheme("raid6", "raid6", 4, 2, parity=2),
    _grouped("raid50", 1, 2),
    _grouped("raid50", 1, 3),
    _grouped("raid60", 2, 2),
    _grouped("raid60", 2, 3),
)
