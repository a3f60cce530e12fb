"""An inventory with the queries that rules need: the stripe below a file system, the drives under an array, rotating or
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spindle.inspect.model import (
    Controller,
    Device,
    Drive,
    FileSystem,
    HardwareRaid,
    Inventory,
    Md,
    MdMember,
    Queue,
    RaidDrive,
    RaidUnit,
)

PARITY = ("raid4", "raid5", "raid6")
STORAGE = ("raid", "fc", "iscsi")
"""Transports that may have many drives behind them, with a cache and an order of their own."""
_CLEAR = ("linear", "crypt")
"""Device-mapper targets that keep addresses, except for a shift."""
_UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}  # storcli and tw_cli count so
_DEEP = 64
_SAME_SIZE = 0.02
"""Tools round sizes to three or four digits, and controllers reserve some of each drive."""


@dataclass(frozen=True)
class Stripe:
    """The layout of data on a striped device."""

    device: str
    chunk_bytes: int
    data_disks: int | None
    parity: bool
    source: str
    """Source of this knowledge."""
    widths: tuple[int, ...] = ()
    """Widths in bytes that are plausible for a file system; empty if not known."""

    @property
    def bytes(self) -> int | None:
        """Data bytes in a stripe."""
        return None if self.data_disks is None else self.chunk_bytes * self.data_disks


@dataclass(frozen=True)
class DriveGroup:
    """Drives whose data belong together: a request may wait for any of them."""

    name: str
    """md0, zpool:tank."""
    redundant: bool
    drives: tuple[tuple[Device, Drive], ...]


class Stack:
    """Queries on one inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._devices = {device.id: device for device in inventory.devices}
        self._beside = {device.id: device for device in inventory.beside}

    # --- parts -----------------------------------------------------------------------------------------------------

    def device(self, name: str) -> Device | None:
        """The device with this name."""
        return self._devices.get(name)

    def drives(self) -> Iterator[tuple[Device, Drive]]:
        """All drives, at the bottom of the stack."""
        for device in self.inventory.devices:
            if device.drive is not None:
                yield device, device.drive

    def arrays(self) -> Iterator[tuple[Device, Md]]:
        """All md arrays."""
        for device in self.inventory.devices:
            if device.md is not None:
                yield device, device.md

    def teams(self) -> Iterator[DriveGroup]:
        """md arrays and ZFS pools, with the drives under their working members."""
        for device, md in self.arrays():
            members = [drive for _, member in self.active(md) for drive in self.bottoms(member)]
            yield DriveGroup(device.id, md.level not in ("raid0", "linear"), tuple(_once(members)))
        for pool in self.inventory.pools:
            found = [(member, self.device(member.device)) for member in pool.members if member.device is not None]
            data = [device for member, device in found if device is not None and member.role == "data"]
            members = [drive for device in data for drive in self.bottoms(device)]
            yield DriveGroup(pool.id, any(member.group for member in pool.members), tuple(_once(members)))

    def teams_of(self, device: Device) -> list[DriveGroup]:
        """The groups that a drive is a member of."""
        return [team for team in self.teams() if any(found.id == device.id for found, _ in team.drives)]

    def redundant(self, device: Device, depth: int = 0) -> bool:
        """True if it survives the loss of any one drive, as far as can be seen."""
        if device.md is not None:
            return device.md.level not in ("raid0", "linear", None)
        if device.drive is not None:
            unit = self.unit(device, device.drive)
            mirrored = unit is not None and re.search(r"[1456]", unit.level or "") is not None
            return mirrored or device.drive.transport in ("fc", "iscsi", "virtio")
        if device.dm is not None and any(segment.target == "raid" for segment in device.dm.segments):
            return True
        below = [found for name in device.below if (found := self.device(name)) is not None]
        return bool(below) and depth < _DEEP and all(self.redundant(found, depth + 1) for found in below)

    def raids(self) -> Iterator[tuple[Controller, HardwareRaid]]:
        """RAID controllers whose tool reported something."""
        for controller in self.inventory.controllers:
            if controller.raid is not None:
                yield controller, controller.raid

    def active(self, md: Md) -> list[tuple[MdMember, Device]]:
        """Members with data, and their devices."""
        found = ((member, self.device(member.device)) for member in md.members)
        return [
            (member, device)
            for member, device in found
            if device is not None and member.slot is not None and member.slot >= 0 and "faulty" not in member.state
        ]

    def raid_number(self, controller: Controller) -> int:
        """Index among the controllers of its driver, from 0, as their tools count."""
        same = [found for found in self.inventory.controllers if found.driver == controller.driver]
        return sorted(same, key=lambda found: found.scsi_hosts or [found.id]).index(controller)

    # --- parts that share drives
    # -----------------------------------------------------------------------------------------

    def seen(self) -> Iterator[Device]:
        """All devices, including those outside the target."""
        yield from self.inventory.devices
        yield from self.inventory.beside

    def around(self, name: str) -> set[str]:
        """The devices of a part, all devices below them, and all devices built on any of these. A part: a device, a
        file system, a pool, or a controller and its units (0000:04:00.0/u0).
        """
        below: set[str] = set()
        for first in self._devices_of(name):
            below |= self._reach(first, up=False)
        return below.union(*(self._reach(one, up=True) for one in below))

    def _devices_of(self, name: str) -> list[str]:
        if (found := self.inventory.file_system(name)) is not None:
            pools = [pool for below in found.below if (pool := self.inventory.pool(below)) is not None]
            return [*found.below, *(device for pool in pools for device in pool.below)]
        if (pool := self.inventory.pool(name)) is not None:
            return pool.below
        if (controller := self.inventory.controller(name.partition("/")[0])) is not None:
            return controller.drives
        return [name]

    def _reach(self, name: str, up: bool) -> set[str]:
        seen: set[str] = set()
        pending = [name]
        while pending:
            one = pending.pop()
            found = self._devices.get(one) or self._beside.get(one)
            if found is not None and one not in seen:
                seen.add(one)
                pending.extend(found.above if up else found.below)
        return seen

    # --- downwards -------------------------------------------------------------------------------------------------

    def disk(self, device: Device) -> Device:
        """The whole disk of a partition; any other device itself."""
        if device.kind != "partition":
            return device
        return next((found for name in device.below if (found := self.device(name)) is not None), device)

    def queue(self, device: Device) -> Queue | None:
        """Its own queue, or its disk's."""
        return self.disk(device).queue

    def members(self, device: Device) -> set[str]:
        """The device and everything below it."""
        seen: set[str] = set()
        pending = [device.id]
        while pending:
            name = pending.pop()
            found = self.device(name)
            if found is not None and name not in seen:
                seen.add(name)
                pending.extend(found.below)
        return seen

    def bottoms(self, device: Device) -> list[tuple[Device, Drive]]:
        """The drives under it."""
        below = self.members(device)
        return [(found, drive) for found, drive in self.drives() if found.id in below]

    def drive_of(self, device: Device) -> tuple[Device, Drive] | None:
        """The single drive under a partition, a linear volume or the drive itself; None if there are several."""
        found = self.bottoms(device)
        return found[0] if len(found) == 1 else None

    def data_device(self, found: FileSystem) -> Device | None:
        """The device with a file system's data; an own log device comes after it. btrfs has its own stripes."""
        return self.device(found.below[0]) if found.below and found.type != "btrfs" else None

    def entries(self) -> Iterator[tuple[FileSystem | None, Device]]:
        """Devices through which data is read, with their file system: devices of file systems, and top devices without
        one.
        """
        used: set[str] = set()
        for found in self.inventory.file_systems:
            if (device := self.data_device(found)) is not None and device.id not in used:
                used.add(device.id)
                yield found, device
        for name in self.inventory.tops:
            device = self.device(name)
            if device is not None and name not in used and not device.above:
                yield None, device

    def stripe_below(self, device: Device) -> Stripe | None:
        """The stripe of the first layer below that spreads data; layers that only shift addresses are skipped."""
        seen: set[str] = set()
        at: Device | None = device
        while at is not None and at.id not in seen:
            seen.add(at.id)
            if (own := self.stripe(at)) is not None:
                return own
            at = self._under(at)
        return None

    def _under(self, device: Device) -> Device | None:
        """The single device below, without spreading or copying; None if there is none."""
        if device.kind == "partition":
            return self.disk(device) if device.below else None
        if device.dm is not None:
            if any(segment.target not in _CLEAR for segment in device.dm.segments):
                return None
        elif device.kind != "bcache":
            return None
        return self.device(device.below[0]) if len(device.below) == 1 else None

    def stripe(self, device: Device) -> Stripe | None:
        """The stripe of this device itself."""
        if device.md is not None:
            return _md_stripe(device, device.md)
        if device.dm is not None:
            return _dm_stripe(device)
        if device.drive is not None and device.drive.transport == "raid":
            return self._unit_stripe(device, device.drive)
        return None

    def _unit_stripe(self, device: Device, drive: Drive) -> Stripe | None:
        """The stripe of a RAID controller's unit: as its tool reports it, or as the unit reports it in its limits."""
        unit = self.unit(device, drive)
        if unit is not None and unit.level is not None and not re.search(r"[0456]", unit.level):
            return None  # a mirror, or a single drive
        queue = device.queue
        least = queue.minimum_io_size if queue is not None else None
        best = queue.optimal_io_size if queue is not None else None
        physical = (queue.physical_block_size if queue is not None else None) or 4096
        reported = least if least and least > physical else None
        chunk = (unit.chunk_bytes if unit is not None else None) or reported
        if not chunk:
            return None
        disks = self.unit_data_disks(device, drive)
        if disks is None and reported == chunk and best and best > chunk and best % chunk == 0:
            disks = best // chunk
        level = unit.level if unit is not None and unit.level is not None else "RAID"
        widths = tuple(count * chunk for count in (disks,) if count)
        return Stripe(device.id, chunk, disks, bool(re.search(r"[456]", level)), f"the controller's {level}", widths)

    # --- hardware RAID ---------------------------------------------------------------------------------------------

    def raid_of(self, drive: Drive) -> HardwareRaid | None:
        """The report of its controller's tool."""
        found = self.inventory.controller(drive.controller) if drive.controller is not None else None
        return found.raid if found is not None else None

    def unit(self, device: Device, drive: Drive) -> RaidUnit | None:
        """The controller's unit that appears as this disk: the only one, the only one of its size, or that of its SCSI
        target.
        """
        raid = self.raid_of(drive)
        if raid is None or drive.transport != "raid":
            return None
        if len(raid.units) == 1:
            return raid.units[0]
        fitting = [unit for unit in raid.units if _alike(binary_size(unit.size), device.size_bytes)]
        if len(fitting) == 1:
            return fitting[0]
        target = drive.scsi_address.split(":")[2] if drive.scsi_address is not None else None
        named = [unit for unit in fitting or raid.units if target in re.findall(r"\d+", unit.name)[-1:]]
        return named[0] if len(named) == 1 else None

    def unit_drives(self, device: Device, drive: Drive) -> list[RaidDrive]:
        """The drives of that unit."""
        raid, unit = self.raid_of(drive), self.unit(device, drive)
        if raid is None or unit is None:
            return []
        group = unit.name.partition("/")[0]
        return [found for found in raid.drives if found.unit is not None and found.unit in (unit.name, group)]

    def unit_data_disks(self, device: Device, drive: Drive) -> int | None:
        """Size of the unit divided by that of its drives: the other drives are parity, copies and spares."""
        unit = self.unit(device, drive)
        sizes = [size for found in self.unit_drives(device, drive) if (size := binary_size(found.size))]
        whole = binary_size(unit.size) if unit is not None else None
        if not sizes or whole is None:
            return None
        ratio = whole / min(sizes)
        return round(ratio) if round(ratio) >= 1 and abs(ratio - round(ratio)) <= _SAME_SIZE * ratio else None


def _once(drives: list[tuple[Device, Drive]]) -> list[tuple[Device, Drive]]:
    return list({device.id: (device, drive) for device, drive in drives}.values())


def rotates(device: Device) -> bool | None:
    """True if a drive has platters: as the drive reports it, else as the kernel does. None for RAID units, LUNs and
    virtual disks, which report nothing.
    """
    drive = device.drive
    if drive is None:
        return None
    if drive.rotation_rpm is not None:
        return drive.rotation_rpm > 0
    if named_flash(drive):
        return False
    if drive.transport in ("sata", "sas") and device.queue is not None and device.queue.rotational is not None:
        return device.queue.rotational == 1
    return None


def named_flash(drive: Drive) -> bool:
    """True if its model name says flash; used where nothing else is known."""
    return re.search(r"\bSSD\b", drive.model or "") is not None


def binary_size(text: str | None) -> float | None:
    """Parse '14.552 TB' with powers of two, as controllers' tools mean it."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([KMGTP]B)", text or "")
    return float(found[1]) * _UNITS[found[2]] if found else None


def gigatransfers(text: str | None) -> float | None:
    """Parse '8.0 GT/s PCIe', the link speed of a PCI device."""
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s( PCIe)?", text or "")
    return float(found[1]) or None if found else None


def kernel_version(inventory: Inventory) -> tuple[int, int] | None:
    """The version (6, 1) of '6.1.0-28-amd64'."""
    found = re.match(r"([0-9]{1,3})\.([0-9]{1,3})\b", inventory.kernel or "")
    return (int(found[1]), int(found[2])) if found else None


def _alike(first: float | None, second: float | None) -> bool:
    return bool(first and second and abs(first - second) <= _SAME_SIZE * second)


def _md_stripe(device: Device, md: Md) -> Stripe | None:
    if md.level not in ("raid0", "raid10", *PARITY) or not md.chunk_bytes or md.chunk_bytes < 0 or not md.raid_disks:
        return None
    if not md.data_disks:
        return None
    chunk, disks = md.chunk_bytes, md.data_disks
    counts = {disks}
    if md.level == "raid10":
        counts |= _raid10_counts(md)
    words = " ".join(part for part in (md.level, md.layout) if part)
    source = f"{words} of {md.raid_disks} drives"
    return Stripe(device.id, chunk, disks, md.level in PARITY, source, tuple(sorted(count * chunk for count in counts)))


def _raid10_counts(md: Md) -> set[int]:
    """The kernel's optimal_io_size counts disks / near, or all disks if that is not whole (raid10_set_io_opt in
    raid10.c). With far copies, disks / copies is as good, as copies of a row are on the next drive.
    """
    number, disks = md.layout_number or 0, md.raid_disks or 0
    near, far = number & 0xFF, number >> 8 & 0xFF
    counts = set()
    if near > 0 and disks % near:
        counts.add(disks)
    if near > 0 and far > 1 and disks % (near * far) == 0:
        counts.add(disks // (near * far))
    return counts


def _dm_stripe(device: Device) -> Stripe | None:
    segments = device.dm.segments if device.dm is not None else []
    shapes = {(segment.stripes, segment.chunk_bytes) for segment in segments}
    if len(shapes) != 1 or segments[0].target != "striped":
        return None
    stripes, chunk = segments[0].stripes, segments[0].chunk_bytes
    if not stripes or not chunk or stripes < 2:
        return None
    return Stripe(device.id, chunk, stripes, False, f"striped over {stripes}", (stripes * chunk,))
