"""Data size a measurement needs so that no cache can answer most of it: 2 times and 40 times all caches.

With less than twice the caches, they can answer half of the requests or more; with 40 times, at most one in 40. Direct
I/O bypasses the page cache, so only the caches below count: the memory of RAID controllers and the buffers of drives.
A loop device without direct I/O of its own, and ZFS, add a page cache below again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spindle.base.plain import Plain
from spindle.conditions.caches import Caches
from spindle.host.devices import Device, text_of

LEAST, SAFE = 2, 40
DRIVE_BYTES = 512 << 20
"""Assumed for a drive that does not report it: as much as the largest disks of today have, and more than most."""
CONTROLLER_BYTES = 8 << 30
"""Assumed for a RAID controller that does not report it: as much as the largest of today have."""


@dataclass(frozen=True)
class SizeRule(Plain):
    """The caches between a program and the medium. Sizes in bytes."""

    COMPUTED = ("hidden_bytes", "least_bytes", "safe_bytes")

    direct: bool
    """The load bypasses the page cache."""
    page_cache_bytes: int
    """Limit of the page cache; 0 where the load bypasses it."""
    controller_bytes: int
    drive_bytes: int
    assumed: list[str] = field(default_factory=list)
    """Drives and controllers with caches of unknown size; the largest size on the market is assumed."""

    @property
    def cache_bytes(self) -> int:
        """Sum of all caches."""
        return self.page_cache_bytes + self.hidden_bytes

    @property
    def hidden_bytes(self) -> int:
        """Caches below the block layer, which the kernel's counters cannot see."""
        return self.controller_bytes + self.drive_bytes

    @property
    def least_bytes(self) -> int:
        """Smaller data sets are too small."""
        return LEAST * self.cache_bytes

    @property
    def safe_bytes(self) -> int:
        """Data sets from this size on are safe."""
        return SAFE * self.cache_bytes


def rule_of(caches: Caches, devices: Iterable[Device], *, direct: bool, file_system: str | None = None) -> SizeRule:
    """The rule for a load on these devices: the target's own and all below."""
    passes_by = direct and file_system != "zfs" and not any(_caches_below(device) for device in devices)
    return SizeRule(
        direct=direct,
        page_cache_bytes=0 if passes_by else caches.ram_bytes,
        controller_bytes=sum(CONTROLLER_BYTES if held is None else held for held in caches.controllers.values()),
        drive_bytes=sum(DRIVE_BYTES if held is None else held for held in caches.drives.values()),
        assumed=[name for name, held in {**caches.controllers, **caches.drives}.items() if held is None],
    )


def _caches_below(device: Device) -> bool:
    return device.kind == "loop" and text_of(device.sysfs / "loop/dio") != "1"
