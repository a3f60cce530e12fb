"""Who uses a block device. Each answer is a clause for people: 'is mounted on /data'.

The kernel's exclusive claim (O_EXCL) is what keeps users apart; what is found here says who it is, and covers those
who take no claim: loop devices, other programs that write, file systems seen from other mount namespaces.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .devices import (
    Backing,
    Device,
    DevNumber,
    Machine,
    backing,
    holders,
    loops,
    other_paths,
    partitions,
    slaves,
    text_of,
    whole,
)
from .mounts import Mount, Swap, all_mounts, btrfs_members, devices_of, swaps


@dataclass(frozen=True)
class Usage:
    """What the machine uses, read once for one decision."""

    machine: Machine
    mounted: dict[DevNumber, list[Mount]]
    swaps: list[Swap]
    loops: list[tuple[Device, Backing]]
    btrfs: dict[str, set[DevNumber]]

    @classmethod
    def now(cls, machine: Machine) -> Usage:
        """Read it."""
        mounted: dict[DevNumber, list[Mount]] = {}
        for mount in all_mounts(machine):
            for dev in devices_of(mount, machine):
                mounted.setdefault(dev, []).append(mount)
        return cls(machine, mounted, swaps(machine), loops(machine), btrfs_members(machine))

    def of(self, device: Device) -> Iterator[str]:
        """Uses of the device as a whole, of its partitions, and of what is built on it."""
        yield from self._itself(device)
        for part in partitions(device):
            for use in self._itself(part):
                yield f"its partition {part.name} {use}"

    def of_disk(self, partition: Device) -> Iterator[str]:
        """Uses of the disk a partition lies on that cover the partition too."""
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
        """Uses of the same drive by another way. The kernel takes the ways for different disks."""
        for other in other_paths(device, self.machine):
            for use in self.of(other):
                yield f"{other.name}, which has the same world-wide name, {use}"

    def of_layers_below(self, device: Device) -> Iterator[str]:
        """Uses, by others, of what the device is made of."""
        for member in slaves(device):
            for use in [*self._mounts(member), *self._swap(member)]:
                yield f"{member.name}, which it is built of, {use}"
        behind = backing(device, self.machine)
        if behind is not None:
            yield from self._behind_loop(device, behind)

    def of_file(self, file: tuple[DevNumber, int]) -> Iterator[str]:
        """Uses of a regular file."""
        for loop, behind in self.loops:
            if behind.file == file:
                above = next(self.of(loop), None)
                yield f"is the file behind {loop.path}" + (f", which {above}" if above else "")
        for swap in self.swaps:
            if swap.file == file:
                yield "is in use as swap"

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
        for other, others_behind in self.loops:
            same_file = behind.file is not None and others_behind.file == behind.file
            same_block = behind.block is not None and others_behind.block == behind.block
            if other.dev != device.dev and (same_file or same_block):
                above = next(self.of(other), None)
                yield f"has {behind.path} behind it, as has {other.path}" + (f", which {above}" if above else "")
        if behind.file is not None and any(swap.file == behind.file for swap in self.swaps):
            yield f"has {behind.path} behind it, which is in use as swap"


def _journal_use(device: Device, machine: Machine) -> str | None:
    """jbd2 names its folder after the journal's device, with '-INODE' when the journal is a file of the file system."""
    try:
        names = os.listdir(machine.proc / "fs/jbd2")
    except OSError:
        return None
    if device.name in names:
        return "is the journal of a mounted file system"
    if any(re.fullmatch(rf"{re.escape(device.name)}-\d+", name) for name in names):
        return "holds a file system that is mounted out of sight"
    return None


@dataclass(frozen=True)
class Opener:
    """A process that has a device open."""

    pid: int
    command: str
    writing: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def openers(devices: set[DevNumber], machine: Machine) -> list[Opener]:
    """Other processes with one of these devices open, as far as this user may see; writers first."""
    found: dict[tuple[int, bool], Opener] = {}
    for process in machine.proc.iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        for descriptor in _descriptors(process / "fd"):
            if _names_device(descriptor, devices):
                writing = _is_writing(process / "fdinfo" / descriptor.name)
                opener = Opener(int(process.name), text_of(process / "comm") or "?", writing)
                found[opener.pid, writing] = opener
    return sorted(found.values(), key=lambda opener: (not opener.writing, opener.pid))


def _descriptors(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _names_device(descriptor: Path, devices: set[DevNumber]) -> bool:
    try:
        # Look only at what is called a device: stat of anything else could hang on a dead network file system.
        if "/dev/" not in os.readlink(descriptor):
            return False
        status = os.stat(descriptor)
    except OSError:
        return False
    return stat.S_ISBLK(status.st_mode) and DevNumber.of(status.st_rdev) in devices


def _is_writing(fdinfo: Path) -> bool:
    found = re.search(r"^flags:\s*([0-7]+)$", text_of(fdinfo) or "", re.M)
    return found is not None and int(found[1], 8) & os.O_ACCMODE != os.O_RDONLY
