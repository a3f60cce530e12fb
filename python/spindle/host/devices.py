"""Block devices, identified by number, never by name: their properties, the layers below and above.

All is read from sysfs and procfs. `Machine` has their roots, so that a captured tree can replace them.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from . import kernel
from .number import signed_number, whole_number

SECTOR = 512  # unit of `size` and `start` in sysfs, whatever the device's own block is


@dataclass(frozen=True)
class Machine:
    """Roots of the kernel's file systems."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")

    @property
    def live(self) -> bool:
        """True for the running machine, whose devices can be asked directly."""
        return self.sys == Path("/sys")


HERE = Machine()
"""The running machine."""


class DevNumber(NamedTuple):
    """A device's identity: st_rdev (or st_dev) of `stat`."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}:{self.minor}"

    @classmethod
    def of(cls, number: int) -> DevNumber:
        """Split st_rdev or st_dev."""
        return cls(os.major(number), os.minor(number))

    @classmethod
    def parse(cls, text: str) -> DevNumber:
        """Parse '8:16', as sysfs and mountinfo write it. Raises ValueError."""
        major, _, minor = text.strip().partition(":")
        numbers = whole_number(major), whole_number(minor)
        if numbers[0] is None or numbers[1] is None:
            raise ValueError("not the number of a device")
        return cls(numbers[0], numbers[1])

    @classmethod
    def read(cls, path: Path) -> DevNumber | None:
        """Read a sysfs `dev` file; None if it contains something else."""
        try:
            return cls.parse(text_of(path) or "")
        except ValueError:
            return None


@dataclass(frozen=True)
class Backing:
    """The storage behind a loop device: a regular file (file system and inode), or a block device."""

    path: str
    file: tuple[DevNumber, int] | None
    block: DevNumber | None
    deleted: bool


@dataclass(frozen=True)
class Device:
    """A block device."""

    name: str
    """The kernel's name: sda1, dm-0, md127, cciss!c0d0."""
    dev: DevNumber
    kind: str
    """disk, partition, loop, md, dm, zram, nvme path (hidden)."""
    size_bytes: int
    sysfs: Path
    partition: int | None = None
    model: str | None = None
    serial: str | None = None
    label: str | None = None
    """The name people use: the device-mapper or md name."""
    rotational: bool | None = None
    read_only: bool = False
    logical_block_bytes: int = 512
    physical_block_bytes: int = 512

    @property
    def path(self) -> str:
        """Node that udev and devtmpfs make."""
        return "/dev/" + self.name.replace("!", "/")

    @property
    def counted_name(self) -> str:
        """Its name in /proc/diskstats."""
        return self.name.replace("!", "/")

    def node(self, machine: Machine) -> Path:
        """Its node under that machine's /dev."""
        return machine.dev / self.name.replace("!", "/")

    @property
    def stacked(self) -> bool:
        """True if it is built of other block devices (md, dm)."""
        return self.kind in ("md", "dm")

    def to_dict(self) -> dict[str, object]:
        """The JSON of the result record."""
        return {
            "name": self.name,
            "number": str(self.dev),
            "kind": self.kind,
            "size_bytes": self.size_bytes,
            "model": self.model,
            "serial": self.serial,
            "label": self.label,
            "rotational": self.rotational,
            "logical_block_bytes": self.logical_block_bytes,
            "physical_block_bytes": self.physical_block_bytes,
        }


_PART_BYTES = 16 << 10
"""More than most kernel files have."""


def text_of(path: Path) -> str | None:
    """Content of a small kernel file without the final newline; None if it is missing or not readable."""
    try:
        # `read_text` takes four times as long, and a run reads a hundred files.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = b""
            while part := os.read(file, _PART_BYTES):
                content += part
        finally:
            os.close(file)
    except OSError:
        return None
    return content.decode(errors="replace").rstrip("\n")


def int_of(path: Path) -> int | None:
    """The whole number in a kernel file."""
    return signed_number((text_of(path) or "").strip())


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; empty if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


# --- one device ------------------------------------------------------------------------------------------------------


def by_number(dev: DevNumber, machine: Machine = HERE) -> Device | None:
    """The block device with this number."""
    return _load((machine.sys / "dev/block" / str(dev)).resolve()) if dev.major or dev.minor else None


def by_name(name: str, machine: Machine = HERE) -> Device | None:
    """The block device with this kernel name."""
    return _load((machine.sys / "class/block" / name).resolve())


def all_devices(machine: Machine = HERE) -> list[Device]:
    """All block devices, including partitions."""
    found = (by_name(name, machine) for name in names_in(machine.sys / "class/block"))
    return [device for device in found if device is not None]


def _load(sysfs: Path) -> Device | None:
    dev = DevNumber.read(sysfs / "dev")
    if dev is None:
        return None
    partition = int_of(sysfs / "partition")
    disk = sysfs.parent if partition is not None else sysfs
    rotational = int_of(disk / "queue/rotational")
    return Device(
        name=sysfs.name,
        dev=dev,
        kind=_kind(sysfs, partition),
        size_bytes=(int_of(sysfs / "size") or 0) * SECTOR,
        sysfs=sysfs,
        partition=partition,
        model=_model(disk),
        serial=_serial(disk),
        label=text_of(sysfs / "dm/name"),
        rotational=None if rotational is None else rotational == 1,
        read_only=int_of(sysfs / "ro") == 1,
        logical_block_bytes=int_of(disk / "queue/logical_block_size") or SECTOR,
        physical_block_bytes=int_of(disk / "queue/physical_block_size") or SECTOR,
    )


def _kind(sysfs: Path, partition: int | None) -> str:
    if partition is not None:
        return "partition"
    for folder in ("md", "dm"):
        if (sysfs / folder).is_dir():
            return folder
    if found := re.match(r"(loop|zram|ram|nbd|bcache|rbd|drbd|zd)\d", sysfs.name):
        return found[1]
    if int_of(sysfs / "hidden") == 1:
        return "path"
    return "disk"


def _model(disk: Path) -> str | None:
    model = (text_of(disk / "device/model") or text_of(disk / "device/name") or "").strip()
    vendor = (text_of(disk / "device/vendor") or "").strip()
    # Virtio and NVMe give a PCI number there; 'ATA' comes from the SCSI layer, not from the maker.
    if model and vendor and not vendor.startswith("0x") and vendor != "ATA":
        model = f"{vendor} {model}"
    return model or None


def _serial(disk: Path) -> str | None:
    for name in ("serial", "device/serial"):
        text = (text_of(disk / name) or "").strip()
        if text:
            return text
    try:  # SCSI unit serial number page: 4 bytes of header, then text (SPC-4 7.8.15)
        page = (disk / "device/vpd_pg80").read_bytes()
    except OSError:
        return None
    return page[4:].decode("ascii", errors="replace").strip("\0 ") or None


# --- neighbours ------------------------------------------------------------------------------------------------------


def whole(device: Device) -> Device:
    """The disk of a partition; any other device itself."""
    if device.partition is None:
        return device
    return _load(device.sysfs.parent) or device


def partitions(device: Device) -> list[Device]:
    """The partitions of a disk, as the kernel lists them."""
    if device.partition is not None:
        return []
    inside = (
        _load(device.sysfs / name) for name in names_in(device.sysfs) if (device.sysfs / name / "partition").exists()
    )
    return sorted((part for part in inside if part is not None), key=lambda part: part.partition or 0)


def passthrough_nodes(disk: Device) -> dict[DevNumber, str]:
    """Character devices that send commands to a disk past the block layer: SCSI generic, bsg, NVMe generic."""
    folders = [*disk.sysfs.glob("device/scsi_generic/*"), *disk.sysfs.glob("device/bsg/*")]
    if found := re.fullmatch(r"nvme(\d+n\d+)", disk.name):
        folders += [disk.sysfs.parent / f"ng{found[1]}", disk.sysfs / f"device/ng{found[1]}"]
    numbers = ((folder, DevNumber.read(folder / "dev")) for folder in folders)
    return {number: folder.name for folder, number in numbers if number is not None}


def other_paths(device: Device, machine: Machine = HERE) -> list[Device]:
    """Other disks with the same world-wide name: further paths to one drive without a multipath driver."""
    disk = whole(device)
    name = world_wide_name(disk)
    if name is None:
        return []
    disks = (other for other in all_devices(machine) if other.kind == "disk" and other.dev != disk.dev)
    return [other for other in disks if world_wide_name(other) == name]


def world_wide_name(disk: Device) -> str | None:
    """World-wide name of a drive, the same on every path (SCSI: device/wwid, NVMe: wwid)."""
    return text_of(disk.sysfs / "wwid") or text_of(disk.sysfs / "device/wwid") or None


def holders(device: Device) -> list[Device]:
    """Devices built on this one that registered as such (md, dm, bcache); loop devices do not."""
    return _linked(device.sysfs / "holders")


def slaves(device: Device) -> list[Device]:
    """Devices this one is built of (md, dm, bcache), and the hidden paths of an NVMe multipath device."""
    paths = []
    if found := re.fullmatch(r"nvme(\d+)n(\d+)", device.name):
        pattern = re.compile(rf"nvme{found[1]}c\d+n{found[2]}")
        siblings = {device.sysfs.parent, *(link.resolve() for link in device.sysfs.glob("multipath/*"))}
        for place in siblings:
            if pattern.fullmatch(place.name):
                paths.append(place)
            else:
                paths.extend(place / name for name in names_in(place) if pattern.fullmatch(name))
    hidden = [found_path for found_path in (_load(path) for path in paths) if found_path is not None]
    return _linked(device.sysfs / "slaves") + hidden


def _linked(folder: Path) -> list[Device]:
    found = (_load((folder / name).resolve()) for name in names_in(folder))
    return [device for device in found if device is not None]


def backing(device: Device, machine: Machine = HERE) -> Backing | None:
    """The storage behind a loop device; None for other devices and unused loop devices."""
    text = text_of(device.sysfs / "loop/backing_file")
    if text is None:
        return None
    path = text.removesuffix(" (deleted)")
    deleted = path != text
    if machine.live and (asked := _ask_loop(device, machine)) is not None:
        block = DevNumber(*asked.block_device) if asked.block_device else None
        file = None if block else (DevNumber(*asked.file_device), asked.file_inode)
        return Backing(path, file, block, deleted)
    if deleted:
        return Backing(path, None, None, deleted)
    try:
        found = os.stat(path)
    except OSError:
        return Backing(path, None, None, deleted)
    if stat.S_ISBLK(found.st_mode):
        return Backing(path, None, DevNumber.of(found.st_rdev), deleted)
    return Backing(path, (DevNumber.of(found.st_dev), found.st_ino), None, deleted)


def _ask_loop(device: Device, machine: Machine) -> kernel.LoopStatus | None:
    """The kernel's own answer, right even if the path has changed its meaning; needs the right to read the device."""
    try:
        fd = os.open(device.node(machine), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return kernel.loop_status(fd) if DevNumber.of(os.fstat(fd).st_rdev) == device.dev else None
    finally:
        os.close(fd)


def loops(machine: Machine = HERE) -> list[tuple[Device, Backing]]:
    """All loop devices in use, with the storage behind them."""
    found = []
    listed = machine.sys / "class/block"
    for name in names_in(listed):
        if not re.fullmatch(r"loop\d+", name) or not (listed / name / "loop").exists():
            continue  # there may be hundreds of unused ones
        if (device := by_name(name, machine)) is not None:
            behind = backing(device, machine)
            if behind is not None:
                found.append((device, behind))
    return found


def loops_over(device: Device, machine: Machine = HERE) -> list[Device]:
    """Loop devices whose backing file is this block device."""
    return [loop for loop, behind in loops(machine) if behind.block == device.dev]
