"""How much data a measurement needs so that no cache holds it: the rule of 2 x and of 40 x all caches.

With less than twice the caches, half of the requests or more can be answered by one; with 40 times, at most one in 40
of them. Direct I/O passes by the page cache, so it needs only a multiple of what lies below: the memory of RAID
controllers and the buffers of drives. A loop device without direct I/O of its own, and ZFS, put a page cache below
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from .caches import Caches
from .devices import Device, text_of

LEAST, SAFE = 2, 40
DRIVE_BYTES = 512 << 20
"""Taken for a drive that does not tell: as much as the largest disks of today have, and more than most."""
CONTROLLER_BYTES = 8 << 30
"""Taken for a RAID controller that does not tell: as much as the largest of today have."""


@dataclass(frozen=True)
class SizeRule:
    """What the caches between a program and the medium hold. Sizes in bytes."""

    direct: bool
    """The load passes by the page cache."""
    page_cache_bytes: int
    """What the page cache could grow to; 0 where the load passes it by."""
    controller_bytes: int
    drive_bytes: int
    assumed: list[str] = field(default_factory=list)
    """Drives and controllers whose caches are not known: the largest that there are were taken for them."""

    @property
    def cache_bytes(self) -> int:
        """All of it."""
        return self.page_cache_bytes + self.hidden_bytes

    @property
    def hidden_bytes(self) -> int:
        """What the kernel's counters cannot see: below the block layer."""
        return self.controller_bytes + self.drive_bytes

    @property
    def least_bytes(self) -> int:
        """Less than this is too little."""
        return LEAST * self.cache_bytes

    @property
    def safe_bytes(self) -> int:
        """This much is safe."""
        return SAFE * self.cache_bytes

    def to_dict(self) -> dict[str, object]:
        """For the result record."""
        return {
            **asdict(self),
            "hidden_bytes": self.hidden_bytes,
            "least_bytes": self.least_bytes,
            "safe_bytes": self.safe_bytes,
        }


def rule_of(caches: Caches, devices: Iterable[Device], *, direct: bool, file_system: str | None = None) -> SizeRule:
    """For a load on these devices: the target's own and all below."""
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
