"""The class of a device, and the published figures of the class (catalogue/classes.toml)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from spindle import _core
from spindle.host.devices import HERE, Device, Machine, int_of, text_of, whole

VIRTUAL_MODELS = re.compile(
    r"QEMU|VBOX|VMware|Virtual|Msft|Xen|Google PersistentDisk|nvme_card-pd|Elastic Block Store|EC2 NVMe", re.IGNORECASE
)
"""Names that hypervisors and clouds give to their virtual disks."""


@dataclass(frozen=True)
class Point:
    """A published figure of one drive."""

    value: float
    drive: str
    source: str
    computed: bool


@dataclass(frozen=True)
class DeviceClass:
    """The published figures of one class of device."""

    key: str
    name: str
    no_figures: str | None
    """Reason for missing figures."""
    figures: dict[str, tuple[Point, ...]]


@cache
def catalogue() -> dict[str, DeviceClass]:
    """Every class, by its key."""
    return {
        key: DeviceClass(
            key=key,
            name=entry["name"],
            no_figures=entry.get("no_figures"),
            figures={
                name: tuple(
                    Point(float(point["value"]), point["drive"], point["source"], point.get("computed", False))
                    for point in points
                )
                for name, points in entry.items()
                if isinstance(points, list)
            },
        )
        for key, entry in tomllib.loads(_core.device_classes()).items()
    }


def class_of(device: Device | None, machine: Machine = HERE) -> str | None:
    """Key of the class in the catalogue; None: unknown."""
    if device is None:
        return None
    disk = whole(device)
    match disk.kind:
        case "loop" | "zram":
            return disk.kind
        case "md" | "dm" | "bcache":
            return "array"
        case "nbd" | "rbd" | "drbd":
            return "network"
        case "disk":
            return _drive(disk, machine)
        case _:
            return None


def is_rotating(device: Device, machine: Machine = HERE) -> bool:
    """True for a rotating disk. A virtual disk may report so without knowing."""
    disk = whole(device)
    return disk.kind == "disk" and disk.rotational is True and class_of(device, machine) not in ("virtual", "network")


def _drive(disk: Device, machine: Machine) -> str | None:
    where = str(disk.sysfs.resolve())
    if re.match(r"(vd|xvd)[a-z]", disk.name) or "/virtio" in where or VIRTUAL_MODELS.search(disk.model or ""):
        return "virtual"  # its `rotational` flag says nothing
    if "/session" in where or "/rport-" in where or "nvme-fabrics" in where:
        return "network"
    if disk.name.startswith("nvme"):
        return _nvme(disk)
    if disk.rotational:
        return _rotating(disk, machine)
    return "ssd-sata" if "/ata" in where else None


def _nvme(disk: Device) -> str | None:
    """By the current link: a PCIe 4.0 drive in a 3.0 slot has the rates of 3.0."""
    for place in (disk.sysfs / "device/device", disk.sysfs / "device"):
        speed = text_of(place / "current_link_speed")  # '16.0 GT/s PCIe'
        if speed and (found := re.match(r"([0-9.]+) GT/s", speed)):
            return {"8.0": "nvme-pcie3", "16.0": "nvme-pcie4", "32.0": "nvme-pcie5"}.get(found[1])
    return None


def _rotating(disk: Device, machine: Machine) -> str | None:
    """udev asked the drive for its speed (ATA IDENTIFY word 217)."""
    database = machine.sys.parent / "run/udev/data" / f"b{disk.dev}"
    found = re.search(r"^E:ID_ATA_ROTATION_RATE_RPM=(\d+)$", text_of(database) or "", re.MULTILINE)
    if found is None:
        return None
    rpm = int(found[1])
    classes = {5400: "hdd-5400", 7200: "hdd-7200", 10000: "hdd-10000", 15000: "hdd-15000"}
    nearest = min(classes, key=lambda known: abs(known - rpm))
    return classes[nearest] if abs(nearest - rpm) <= 0.12 * nearest else None


def queue_depth(device: Device, machine: Machine = HERE) -> int | None:
    """Number of requests that the device takes at once; None: unknown."""
    disk = whole(device)
    if (depth := int_of(disk.sysfs / "device/queue_depth")) is not None:  # SCSI and ATA
        return depth
    tags = [int_of(place / "nr_tags") for place in sorted((disk.sysfs / "mq").glob("*"))]
    known = [count for count in tags if count]
    return sum(known) if known else None
