"""Users of a block device. Each answer is a clause for people: 'is mounted on /data'.

The kernel's exclusive claim (O_EXCL) separates users; this module names them, and finds users without a claim: loop
devices, targets of the kernel, file systems in other mount namespaces. `openers` finds the processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import kernel
from .devices import (
    Backing,
    Device,
    DevNumber,
    Machine,
    backing,
    by_number,
    holders,
    loops,
    other_paths,
    partitions,
    passthrough_nodes,
    slaves,
    whole,
)
from .exports import Export, exports
from .mounts import Mount, Swap, all_mounts, btrfs_members, devices_of, swaps
from .openers import SearchSet
from .overlays import FileId, Overlays, file_id


@dataclass(frozen=True)
class Usage:
    """All uses on the machine, read once for one decision."""

    machine: Machine
    mounts: list[Mount]
    mounted: dict[DevNumber, list[Mount]]
    swaps: list[Swap]
    loops: list[tuple[Device, Backing]]
    btrfs: dict[str, set[DevNumber]]
    exports: list[Export]

    @classmethod
    def now(cls, machine: Machine) -> Usage:
        """Read the current uses."""
        mounts = all_mounts(machine)
        mounted: dict[DevNumber, list[Mount]] = {}
        for mount in mounts:
            for dev in devices_of(mount, machine):
                mounted.setdefault(dev, []).append(mount)
        return cls(machine, mounts, mounted, swaps(machine), loops(machine), btrfs_members(machine), exports(machine))

    def of(self, device: Device) -> Iterator[str]:
        """Uses of the whole device, of its partitions, and of devices built on it."""
        yield from self._itself(device)
        for part in partitions(device):
            for use in self._itself(part):
                yield f"its partition {part.name} {use}"

    def of_disk(self, partition: Device) -> Iterator[str]:
        """Uses of a partition's disk that cover the partition too."""
        disk = whole(partition)
        for use in self._itself(disk):
            yield f"{disk.name}, the disk it is a partition of, {use}"

    def of_siblings(self, partition: Device) -> Iterator[str]:
        """Uses of the other partitions of the same disk."""
        for part in partitions(whole(partition)):
            if part.dev != partition.dev:
                for use in self._itself(part):
                    yield f"{part.name} on the same disk {use}"

    def of_other_paths(self, device: Device) -> Iterator[str]:
        """Uses of the same drive through another path. The kernel treats the paths as different disks."""
        for other in other_paths(device, self.machine):
            for use in self.of(other):
                yield f"{other.name}, which has the same world-wide name, {use}"

    def of_layers_below(self, device: Device) -> Iterator[str]:
        """Uses, by others, of the devices below."""
        disk = whole(device)
        for member in slaves(disk):
            for use in [*self._mounts(member), *self._swap(member)]:
                yield f"{member.name}, which it is built of, {use}"
        behind = backing(disk, self.machine)
        if behind is not None:
            yield from self._behind_loop(disk, behind)

    def written_through(self, device: Device) -> SearchSet:
        """Everything that a write to the device passes through or changes: itself, its disk and partitions, all layers
        below, other paths to the same drive, the files behind loop devices."""
        found = SearchSet()
        pending = [device]
        while pending:
            part = pending.pop(0)
            disk = whole(part)
            for one in (part, disk, *partitions(part)):
                found.devices.setdefault(one.dev, "it" if one.dev == device.dev else one.path)
            for number, name in passthrough_nodes(disk).items():
                found.passthrough[number] = f"{found.devices[disk.dev]} ({name}, which takes SCSI or NVMe commands)"
            behind = backing(disk, self.machine)
            if behind is not None and behind.file is not None:
                found.add_file(behind.file, behind.path, f"the file behind {disk.path} ({behind.path})")
            under = by_number(behind.block, self.machine) if behind is not None and behind.block is not None else None
            others = (*slaves(disk), *other_paths(disk, self.machine), under)
            pending += [one for one in others if one is not None and one.dev not in found.devices]
        return found

    def of_file(self, file: FileId) -> Iterator[str]:
        """Uses of a regular file."""
        for loop, behind in self.loops:
            if behind.file == file:
                above = next(self.of(loop), None)
                yield f"is the file behind {loop.path}" + (f", which {above}" if above else "")
        for swap in self.swaps:
            if swap.file == file:
                yield "is in use as swap"
        for mount in self._mounts_of_file(file):
            yield f"is mounted on {mount}"

    def _itself(self, device: Device) -> Iterator[str]:
        yield from self._mounts(device)
        yield from self._swap(device)
        for holder in holders(device):
            above = next(self._itself(holder), None)
            name = f"{holder.name} ({holder.label})" if holder.label else holder.name
            yield f"is part of {name}" + (f", which {above}" if above else "")
        for loop, behind in self.loops:
            if behind.block == device.dev:
                above = next(self.of(loop), None)
                yield f"is behind {loop.path}" + (f", which {above}" if above else "")
        for uuid, members in self.btrfs.items():
            if device.dev in members and device.dev not in self.mounted:
                yield f"is a member of the mounted btrfs {uuid}"
        if (device.sysfs / "bcache").is_dir() and device.kind != "bcache":
            yield "is registered with bcache"
        for export in self.exports:
            if export.device == device.dev:
                yield f"is served to others by {export.server}"
        if device.dev not in self.mounted and (found := _journal_use(device, self.machine)):
            yield found

    def _mounts(self, device: Device) -> Iterator[str]:
        found = self.mounted.get(device.dev)
        if found:
            yield f"is mounted on {found[0]}"

    def _swap(self, device: Device) -> Iterator[str]:
        if any(swap.dev == device.dev for swap in self.swaps):
            yield "is in use as swap"

    def _behind_loop(self, device: Device, behind: Backing) -> Iterator[str]:
        overlays = Overlays(self.mounts)
        for other, others_behind in self.loops:
            same_file = (
                behind.file is not None
                and others_behind.file is not None
                and overlays.same(behind.file, behind.path, others_behind.file, others_behind.path)
            )
            same_block = behind.block is not None and others_behind.block == behind.block
            if other.dev != device.dev and (same_file or same_block):
                above = next(self.of(other), None)
                yield f"has {behind.path} behind it, as has {other.path}" + (f", which {above}" if above else "")
        if behind.file is not None and any(swap.file == behind.file for swap in self.swaps):
            yield f"has {behind.path} behind it, which is in use as swap"
        for mount in self._mounts_of_file(behind.file):
            yield f"has {behind.path} behind it, which is mounted on {mount}"
        for export in self.exports:
            if behind.file is not None and export.file == behind.file:
                yield f"has {behind.path} behind it, which is served to others by {export.server}"

    def _mounts_of_file(self, file: FileId | None) -> Iterator[Mount]:
        """File systems in a file without a loop device (EROFS since Linux 6.12)."""
        for mount in self.mounts if file is not None else ():
            if mount.fs_type == "erofs" and mount.dev.major == 0:
                node = kernel.node_at(f"{mount.root_path}/{mount.source.lstrip('/')}")
                if node is not None and file_id(node) == file:
                    yield mount


def _journal_use(device: Device, machine: Machine) -> str | None:
    """Use as a journal. jbd2 names its folder after the journal's device, with '-INODE' if it is a file."""
    try:
        names = os.listdir(machine.proc / "fs/jbd2")
    except OSError:
        return None
    if device.name in names:
        return "is the journal of a mounted file system"
    if any(re.fullmatch(rf"{re.escape(device.name)}-\d+", name) for name in names):
        return "holds a file system that is mounted but not visible"
    return None
