"""Identity of a device: numbers, names and loop devices are used again."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import kernel
from .devices import HERE, DevNumber, Machine, backing, by_number, text_of, whole


@dataclass(frozen=True)
class Identity:
    """A device at the time when somebody agreed to erase it."""

    number: DevNumber
    sequence: int | None
    """Sequence number among all disks since boot; None before Linux 5.15."""
    size_bytes: int
    place: str
    """Start of a partition on its disk; storage behind a loop device."""

    @classmethod
    def of(cls, fd: int, machine: Machine = HERE) -> Identity:
        """The identity of an open device. Raises OSError."""
        number = DevNumber.of(os.fstat(fd).st_rdev)
        device = by_number(number, machine)
        place = ""
        if device is not None:
            disk = whole(device)
            behind = backing(disk, machine)
            begins = (text_of(device.sysfs / "start"), text_of(disk.sysfs / "loop/offset"))
            place = f"{begins} {(behind.file, behind.block) if behind is not None else ''}"
        return cls(number, kernel.disk_sequence(fd), kernel.device_bytes(fd), place)
