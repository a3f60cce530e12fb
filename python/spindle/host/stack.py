"""The block stack: the layers below a path or a device, down to the drives, and the layers above a device."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .devices import (
    HERE,
    SECTOR,
    Device,
    DevNumber,
    Machine,
    backing,
    by_number,
    holders,
    int_of,
    loops_over,
    partitions,
    slaves,
    text_of,
    whole,
)
from .held import PRIVATE
from .mounts import Mount, devices_of, mount_of

PathLike = str | os.PathLike[str] | int
"""A path, or an open descriptor."""


def device_of(path: PathLike, machine: Machine = HERE) -> Device | None:
    """The block device itself, or the one under the file's file system (the first of several); None for tmpfs, network
    file systems and the like."""
    return next(iter(devices_under(path, machine)), None)


def devices_under(path: PathLike, machine: Machine = HERE) -> list[Device]:
    """The same with all members of a file system on several devices."""
    status = os.stat(path)
    if stat.S_ISBLK(status.st_mode):
        found = by_number(DevNumber.of(status.st_rdev), machine)
        return [found] if found else []
    return _under_file(DevNumber.of(status.st_dev), path, machine)


def _under_file(dev: DevNumber, path: PathLike, machine: Machine) -> list[Device]:
    found = by_number(dev, machine)
    if found is not None:
        return [found]
    # btrfs, overlayfs and ZFS have numbers of their own; the mount names the device.
    mount = mount_of(path, machine)
    if mount is None:
        return []
    if mount.fs_type == "overlay":
        return _under_overlay(dev, mount, machine)
    members = (by_number(number, machine) for number in sorted(devices_of(mount, machine)))
    return [member for member in members if member is not None]


def _under_overlay(dev: DevNumber, mount: Mount, machine: Machine) -> list[Device]:
    """The device of an overlay's upper folder, which gets the writes, if it is visible from here."""
    upper = re.search(r"(?:^|,)upperdir=([^,]*)", mount.super_options)
    try:
        below_it = DevNumber.of(os.stat(upper[1]).st_dev) if upper else dev
    except OSError:
        return []
    return [] if below_it == dev or upper is None else _under_file(below_it, upper[1], machine)


def below(device: Device, machine: Machine = HERE) -> list[Device]:
    """All devices underneath, nearest first: the disk of a partition, members, the device of a loop device's file."""
    return _walk(device, lambda found: directly_below(found, machine))


def above(device: Device, machine: Machine = HERE) -> list[Device]:
    """All devices above, nearest first: partitions, holders, loop devices."""
    return _walk(device, lambda found: [*partitions(found), *holders(found), *loops_over(found, machine)])


def _walk(start: Device, step: Callable[[Device], Iterable[Device]]) -> list[Device]:
    found: dict[str, Device] = {}
    pending = list(step(start))
    while pending:
        device = pending.pop(0)
        if device.name != start.name and device.name not in found:
            found[device.name] = device
            pending.extend(step(device))
    return list(found.values())


def directly_below(device: Device, machine: Machine = HERE) -> list[Device]:
    """The next layer below."""
    if device.partition is not None:
        return [whole(device)]
    behind = backing(device, machine)
    if behind is None:
        return slaves(device)
    if behind.block is not None:
        under = by_number(behind.block, machine)
        return [under] if under else []
    return _under_file(behind.file[0], behind.path, machine) if behind.file is not None else []


@dataclass(frozen=True)
class Layer:
    """One layer between a path and the drives."""

    depth: int
    """0 at the top; members of one array have the same depth."""
    kind: str
    """file system, partition, disk, loop, md, dm, zram ..."""
    name: str
    details: dict[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The JSON of the result record."""
        return {"depth": self.depth, "kind": self.kind, "name": self.name, **self.details}


def stack_of(path: PathLike, machine: Machine = HERE) -> list[Layer]:
    """The layers between a path and the drives, from the top down."""
    layers: list[Layer] = []
    try:
        if not stat.S_ISBLK(os.stat(path).st_mode):
            layers.append(_file_system_layer(path, machine))
        top = devices_under(path, machine)
    except OSError:  # it disappeared during the run; the rest of the record is still useful
        return layers
    return layers + layers_of(top, machine, len(layers))


def layers_of(top: Iterable[Device], machine: Machine = HERE, first: int = 0) -> list[Layer]:
    """The layers from these devices down; `first`: the depth of the topmost."""
    layers: list[Layer] = []
    seen: set[str] = set()

    def descend(device: Device, depth: int) -> None:
        if device.name in seen:
            return
        seen.add(device.name)
        layers.append(Layer(depth, device.kind, device.name, _device_details(device)))
        behind = backing(device, machine)
        if behind is not None and behind.file is not None:
            depth += 1
            layers.append(Layer(depth, "file", behind.path, {}))
        for under in directly_below(device, machine):
            descend(under, depth + 1)

    for device in top:
        descend(device, first)
    return layers


def _file_system_layer(path: PathLike, machine: Machine) -> Layer:
    mount = mount_of(path, machine)
    if mount is None:
        return Layer(0, "file system", "unknown", {})
    space = os.statvfs(path)
    return Layer(
        0,
        "file system",
        mount.fs_type,
        {
            "mount_point": mount.point,
            "source": _source(mount, machine),
            "options": mount.options,
            "super_options": mount.super_options,
            "block_bytes": space.f_frsize,
            "size_bytes": space.f_blocks * space.f_frsize,
            "available_bytes": space.f_bavail * space.f_frsize,
        },
    )


def _source(mount: Mount, machine: Machine) -> str:
    """Device name of a file system that was mounted through a private node."""
    if mount.source.startswith(PRIVATE):
        return next(
            (device.path for number in devices_of(mount, machine) if (device := by_number(number, machine))), ""
        )
    return mount.source


def _device_details(device: Device) -> dict[str, object]:
    details = {
        key: value for key, value in device.to_dict().items() if key not in ("name", "kind") and value is not None
    }
    if device.kind == "md":
        for name in ("level", "layout", "chunk_size", "raid_disks", "degraded", "metadata_version"):
            if (value := text_of(device.sysfs / "md" / name)) is not None:
                details[name] = value
    if device.kind == "dm" and (uuid := text_of(device.sysfs / "dm/uuid")):
        details["target"] = uuid.partition("-")[0]  # LVM, CRYPT, mpath ...
    if device.partition is not None and (start := int_of(device.sysfs / "start")) is not None:
        details["start_bytes"] = start * SECTOR
    return details
