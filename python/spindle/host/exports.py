"""Devices and files that the kernel serves to other machines: NVMe over fabrics, iSCSI and Fibre Channel targets, USB
mass storage.

The kernel opens them itself, without a claim and without a process. They are configured in configfs
(Documentation/ABI/testing/configfs-*, drivers/nvme/target/configfs.c), which names the served device or file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .devices import DevNumber, Machine, text_of
from .overlays import FileId

_PLACES = {
    "nvmet/subsystems/*/namespaces/*/device_path": "an NVMe-oF target",
    "target/core/*/*/udev_path": "a SCSI target (LIO)",
    "usb_gadget/*/functions/mass_storage.*/lun.*/file": "a USB mass storage gadget",
}
"""Path below configfs -> the server."""


@dataclass(frozen=True)
class Export:
    """A served device or file."""

    server: str
    device: DevNumber | None
    file: FileId | None


def exports(machine: Machine) -> list[Export]:
    """All current exports."""
    return list(_exports(machine))


def _exports(machine: Machine) -> Iterator[Export]:
    for pattern, server in _PLACES.items():
        for entry in (machine.sys / "kernel/config").glob(pattern):
            path = (text_of(entry) or "").strip()
            # An NVMe namespace or a SCSI device is open only while it is enabled; other gadgets have no such file.
            if not path.startswith("/") or (text_of(entry.parent / "enable") or "1").strip() == "0":
                continue
            try:
                found = os.stat(path)
            except OSError:
                continue
            if stat.S_ISBLK(found.st_mode):
                yield Export(f"{server}, {_name(entry)}", DevNumber.of(found.st_rdev), None)
            elif stat.S_ISREG(found.st_mode):
                yield Export(f"{server}, {_name(entry)}", None, (DevNumber.of(found.st_dev), found.st_ino))


def _name(entry: Path) -> str:
    """The subsystem or back end: two folders above, except at the root."""
    parents = entry.parts
    return next((name for name in reversed(parents[:-1]) if not name.isdigit() and name != "namespaces"), "")
