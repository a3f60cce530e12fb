"""An array whose drives fail and are rebuilt: its drives, its level, and the times and rates of the model.

Every rate is per hour inside, every size in bytes. The defaults that are assumptions name their source.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct

from spindle.base.errors import ConfigError

HOURS_PER_YEAR = 8766.0
LEVELS = ("raid0", "raid1", "raid4", "raid5", "raid6", "raid10", "raid50", "raid60")
GROUPED = {"raid50": "raid5", "raid60": "raid6"}
_LAYOUT = re.compile(r"(?:n(?P<near>\d+))?(?:[fo](?P<far>\d+))?")


class Wear(Struct, frozen=True, kw_only=True):
    """Failures that become more frequent with age: a Weibull distribution of life times.

    `afr` of the group is then the mean over `life_years`. All drives count as equally old, replacements too: few are
    replaced before the array is given up.
    """

    shape: float = 1.0
    """Weibull shape; 1: the rate does not depend on age, above 1: wear-out."""
    age_years: float = 0.0
    """Age of the drives at the start."""
    life_years: float = 5.0
    """Usual warranty, over which the mean rate is that of the data sheet."""

    def hazard_hours(self, years: float) -> float:
        """Equivalent hours at the mean rate, from new until an age of `years`."""
        return float(self.life_years * HOURS_PER_YEAR * (years / self.life_years) ** self.shape)


class Group(Struct, frozen=True, kw_only=True):
    """An array of equal drives. Raises `ConfigError` (one line) where the numbers make no array."""

    level: str
    """One of `LEVELS`."""
    drives: int
    """Drives that carry the array, without spares."""
    afr: float
    """Share of the drives that fail in a year of service."""
    capacity_bytes: float
    """Used on each drive."""
    rebuild_hours: float
    """Time to rebuild one drive, once a replacement is there."""
    layout: str = "n2"
    """RAID10: as mdadm names it (`n2`, `f2`, `o2`, `n3`). Other levels ignore it."""
    groups: int = 1
    """RAID50 and RAID60: number of RAID5 or RAID6 groups."""
    spares: int = 0
    """Hot spares: with one, a rebuild starts at once."""
    replace_hours: float = 24.0
    """Mean time until a failed drive, or a spare that was used, has been replaced by hand."""
    ure_per_bit: float = 1e-15
    """Unrecoverable errors per bit read: the bound of the data sheet."""
    latent_per_year: float = 0.0
    """Sectors per drive and year that become unreadable unnoticed; scrubs find and rewrite them."""
    scrub_days: float | None = 30.0
    """Interval of scrubs (md's `check`); None: never."""
    batch_correlation: float = 1.0
    """Factor by which the failure rate of the remaining drives rises with each drive that is failed at the time; 1:
    independent. Chen et al. 1994 use 10."""
    wear: Wear = Wear()
    rebuild_stages: int = 10
    """Stages of the rebuild time, an Erlang distribution; 1: exponential, as in textbooks; many: a fixed time."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_level()

    def _check_numbers(self) -> None:
        bounds: tuple[tuple[str, float, float, float], ...] = (
            ("afr", self.afr, 0.0, 0.999),
            ("capacity_bytes", self.capacity_bytes, 0.0, 1e18),
            ("rebuild_hours", self.rebuild_hours, 1e-3, 1e5),
            ("replace_hours", self.replace_hours, 0.0, 1e5),
            ("ure_per_bit", self.ure_per_bit, 0.0, 1e-6),
            ("latent_per_year", self.latent_per_year, 0.0, 1e6),
            ("scrub_days", self.scrub_days or 1.0, 1e-3, 1e5),
            ("batch_correlation", self.batch_correlation, 1.0, 1e4),
            ("wear_shape", self.wear.shape, 0.3, 20.0),
            ("age_years", self.wear.age_years, 0.0, 100.0),
            ("life_years", self.wear.life_years, 0.1, 100.0),
            ("drives", self.drives, 1, 1000),
            ("spares", self.spares, 0, 50),
            ("groups", self.groups, 1, 500),
            ("rebuild_stages", self.rebuild_stages, 1, 200),
        )
        for name, value, least, most in bounds:
            if not (math.isfinite(value) and least <= value <= most):
                raise ConfigError(f"`{name}=` is {value:g}; allowed are {least:g} to {most:g}")

    def _check_level(self) -> None:
        if self.level not in LEVELS:
            raise ConfigError(f"`level=` is {self.level!r}; allowed are {', '.join(LEVELS)}")
        if self.level not in GROUPED and self.groups != 1:
            raise ConfigError(f"`groups=` is {self.groups}, but {self.level} has no groups; use raid50 or raid60")
        if self.drives % self.groups:
            raise ConfigError(f"`groups=` is {self.groups}: {self.drives} drives do not make equal groups")
        least = {"raid0": 1, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 2, "raid50": 3, "raid60": 4}
        if self.width < least[self.level]:
            raise ConfigError(f"{self.level} needs at least {least[self.level]} drives in a group, not {self.width}")
        if self.level == "raid10" and not 2 <= self.copies <= self.drives:
            raise ConfigError(f"`layout=` is {self.layout!r}: {self.copies} copies do not fit on {self.drives} drives")

    @property
    def width(self) -> int:
        """Drives of one group."""
        return self.drives // self.groups

    @property
    def near_copies(self) -> int:
        """Copies side by side in a RAID10 layout."""
        return self._copies()[0]

    @property
    def copies(self) -> int:
        """Copies of each block: 1 for levels without mirrors."""
        if self.level == "raid1":
            return self.drives
        if self.level != "raid10":
            return 1
        near, far = self._copies()
        return near * far

    def _copies(self) -> tuple[int, int]:
        found = _LAYOUT.fullmatch(self.layout)
        if found is None or not self.layout:
            raise ConfigError(f"`layout=` is {self.layout!r}; RAID10 has n2 (near), f2 (far), o2 (offset)")
        return int(found["near"] or 1), int(found["far"] or 1)

    @property
    def tolerance(self) -> int:
        """Drives of which any may fail at a time."""
        if self.copies > 1:
            return self.copies - 1
        return {"raid0": 0, "raid4": 1, "raid5": 1, "raid50": 1, "raid6": 2, "raid60": 2}[self.level]

    @property
    def usable_bytes(self) -> float:
        """Capacity of the array."""
        parities = 0 if self.copies > 1 else self.tolerance
        return (self.drives / self.copies - parities * self.groups) * self.capacity_bytes

    @property
    def failure_rate(self) -> float:
        """Failures of one drive per hour, in the mean over its life: 1 - exp(-rate * year) = afr."""
        return -math.log1p(-self.afr) / HOURS_PER_YEAR

    @property
    def sources(self) -> int:
        """Drives that a rebuild without redundancy must read in full."""
        return 1 if self.copies > 1 else self.width - self.tolerance

    def unreadable(self, year: float = 0.5) -> float:
        """Expected unreadable sectors that a rebuild without redundancy meets, `year` years after the start.

        Errors of reading are independent for each bit. A latent error stays until the next scrub, half an interval in
        the mean; without scrubs since the drive was new.
        """
        bits = 8.0 * self.sources * self.capacity_bytes
        age = self.wear.age_years + year if self.scrub_days is None else self.scrub_days / 365.25 / 2
        return -bits * math.log1p(-self.ure_per_bit) + self.sources * self.latent_per_year * age
