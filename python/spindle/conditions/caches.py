"""Caches that can make a result too fast, and functions that drop the page cache."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from spindle.base.plain import Plain
from spindle.host import groups, kernel
from spindle.host.devices import HERE, Device, DevNumber, Machine, text_of, whole
from spindle.host.memory import memory
from spindle.host.number import whole_number
from spindle.inspect.reading import Reading, dig_list, dig_text
from spindle.inspect.tree import Tool, Tree, running
from spindle.knobs.files import Files

_DRIVES = ("disk",)
_DROP = "sys/vm/drop_caches"


@dataclass(frozen=True)
class Caches(Plain):
    """Sizes in bytes; None: not known."""

    COMPUTED = ("data_set_bytes",)

    ram_bytes: int
    """Limit of the page cache: all memory, or the limit of this process's control group."""
    page_cache_bytes: int
    """Its size now."""
    zfs_arc_bytes: int | None
    drives: dict[str, int | None]
    """Buffer of each drive; None where the drive does not report it."""
    controllers: dict[str, int | None] = field(default_factory=dict)
    """Memory of each RAID controller (by SCSI host); None where the maker's tool does not report it."""

    @property
    def data_set_bytes(self) -> int:
        """Smallest data set that these caches cannot keep: twice their sum. A lower bound, as a cache of unknown size
        counts as 0."""
        held = (*self.drives.values(), *self.controllers.values())
        return 2 * (self.ram_bytes + sum(size or 0 for size in held))


def known_caches(devices: Iterable[Device], machine: Machine = HERE, tree: Tree | None = None) -> Caches:
    """The caches between a program and the medium of these devices."""
    found = memory(machine)
    ram = found.get("MemTotal", 0)
    limit = groups.memory_limit(machine)
    disks = {disk.name: disk for disk in map(whole, devices) if disk.kind in _DRIVES}
    return Caches(
        ram_bytes=min(ram, limit) if limit else ram,
        page_cache_bytes=found.get("Cached", 0) + found.get("Buffers", 0),
        zfs_arc_bytes=_arc_limit(machine),
        drives={name: _drive_buffer(disk, machine) for name, disk in disks.items()},
        controllers=_controllers(disks.values(), machine, tree),
    )


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


_RAID = ("megaraid_sas", "3w-9xxx", "3w-sas", "3w-xxxx", "hpsa", "smartpqi", "aacraid", "arcmsr")
"""Drivers of controllers with memory of their own."""
_STORCLI = (("storcli", "storcli64"), ("perccli", "perccli64"))


def _controllers(disks: Iterable[Device], machine: Machine, tree: Tree | None) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for disk in disks:
        host = re.search(r"/(host[0-9]+)/", str(disk.sysfs.resolve()))
        if host is None or host[1] in found:
            continue
        driver = text_of(machine.sys / "class/scsi_host" / host[1] / "proc_name")
        if driver in _RAID:
            asked = tree if tree is not None else running() if machine.live else None
            found[host[1]] = _megaraid_memory(asked) if driver == "megaraid_sas" and asked is not None else None
    return found


def _megaraid_memory(tree: Tree) -> int | None:
    """Memory that storcli reports. The largest of several controllers, as storcli does not use the kernel's names."""
    for name, program in _STORCLI:
        data = Reading(tree, {}).json("memory", Tool(name, "all", (program, "/call", "show", "all", "J")))
        found = []
        for answer in dig_list(data, "Controllers"):
            text = dig_text(answer, "Response Data", "HwCfg", "On Board Memory Size") or ""
            size = re.fullmatch(r"([0-9]{1,9})\s*MB", text)
            found += [int(size[1]) << 20] if size else []
        if found:
            return max(found)
    return None


def drop_file_cache(fd: int) -> None:
    """Write out an open file or device and drop its pages from the page cache. Pages mapped by others stay."""
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def may_drop_caches(machine: Machine = HERE) -> bool:
    """True if this user may drop the whole page cache."""
    return os.access(machine.proc / _DROP, os.W_OK)


def drop_caches(machine: Machine = HERE) -> None:
    """Drop all clean pages, inodes and names of the machine (Documentation/admin-guide/sysctl/vm.rst). Raises OSError.

    There is nothing to restore afterwards, so this needs no journal.
    """
    Files().write(machine.proc / _DROP, "3")


def sync_file_system(fd: int) -> None:
    """Write out all dirty data of the file system of an open file (syncfs), so that the run does not count it."""
    kernel.sync_file_system(fd)
