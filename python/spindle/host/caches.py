"""The caches a measurement can be fooled by, and dropping the one that is ours to drop."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from . import kernel
from .devices import HERE, Device, DevNumber, Machine, int_of, text_of, whole
from .knobs.files import Files
from .memory import memory
from .number import whole_number

_DRIVES = ("disk",)
_DROP = "sys/vm/drop_caches"


@dataclass(frozen=True)
class Caches:
    """Sizes in bytes; None where it is not known."""

    ram_bytes: int
    """What the page cache could grow to: all memory, or the limit of this process's control group."""
    page_cache_bytes: int
    """What it holds now."""
    zfs_arc_bytes: int | None
    drives: dict[str, int | None]
    """Buffer of each drive, where it tells."""

    @property
    def data_set_bytes(self) -> int:
        """The least a data set should have so that the caches do not hold it: twice their sum. A cache of unknown size
        counts as nothing, so this is a lower bound."""
        return 2 * (self.ram_bytes + sum(size or 0 for size in self.drives.values()))

    def to_dict(self) -> dict[str, object]:
        """For the result record."""
        return {**asdict(self), "data_set_bytes": self.data_set_bytes}


def known_caches(devices: Iterable[Device], machine: Machine = HERE) -> Caches:
    """Caches between a program and the medium of these devices."""
    found = memory(machine)
    ram = found.get("MemTotal", 0)
    limit = group_memory_limit(machine)
    disks = {disk.name: disk for disk in map(whole, devices) if disk.kind in _DRIVES}
    return Caches(
        ram_bytes=min(ram, limit) if limit else ram,
        page_cache_bytes=found.get("Cached", 0) + found.get("Buffers", 0),
        zfs_arc_bytes=_arc_limit(machine),
        drives={name: _drive_buffer(disk, machine) for name, disk in disks.items()},
    )


def group_memory_limit(machine: Machine = HERE) -> int | None:
    """The tightest memory limit of this process's control groups (version 1 or 2); None without one."""
    limits = []
    for line in (text_of(machine.proc / "self/cgroup") or "").splitlines():
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        base, name = (
            (machine.sys / "fs/cgroup/memory", "memory.limit_in_bytes")
            if "memory" in controllers.split(",")
            else (machine.sys / "fs/cgroup", "memory.max")
        )
        if controllers and "memory" not in controllers.split(","):
            continue
        folder = base / path.lstrip("/")
        while True:
            if (limit := int_of(folder / name)) is not None and limit < 1 << 60:
                limits.append(limit)
            if folder == base or base not in folder.parents:
                break
            folder = folder.parent
    return min(limits, default=None)


def _arc_limit(machine: Machine) -> int | None:
    for line in (text_of(machine.proc / "spl/kstat/zfs/arcstats") or "").splitlines():
        fields = line.split()
        if fields[:1] == ["c_max"]:
            return whole_number(fields[-1])
    return None


def _drive_buffer(disk: Device, machine: Machine) -> int | None:
    try:
        fd = os.open(disk.node(machine), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return kernel.ata_buffer_bytes(fd) if DevNumber.of(os.fstat(fd).st_rdev) == disk.dev else None
    finally:
        os.close(fd)


def drop_file_cache(fd: int) -> None:
    """Write out and forget what the page cache holds of an open file or device. Pages mapped by others stay."""
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def may_drop_caches(machine: Machine = HERE) -> bool:
    """Whether this user may drop the whole page cache."""
    return os.access(machine.proc / _DROP, os.W_OK)


def drop_caches(machine: Machine = HERE) -> None:
    """Forget every clean page, inode and name of the machine (Documentation/admin-guide/sysctl/vm.rst). Raises OSError.

    Nothing is changed that would have to be put back, so this needs no journal.
    """
    Files().write(machine.proc / _DROP, "3")


def sync_file_system(fd: int) -> None:
    """Write out all that the file system of an open file has dirty (syncfs), so that it is not counted in the run."""
    kernel.sync_file_system(fd)
