"""The parts of a file that are on its device: the file system answers reads of holes and unwritten extents with zeros,
and reads fewer bytes for compressed data."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from itertools import islice

from spindle.base.plain import Plain

from . import kernel
from .devices import HERE, Device, Machine, text_of
from .mounts import Mount, parse_mountinfo
from .number import whole_number

MOST_EXTENTS = 200_000
"""Most extents that are read; the rest of a more fragmented file is ignored."""
_OPTION = re.compile(r"(?:^|,)(compress(?:-force|ion|_algorithm)?(?:=[^,]*)?)(?:,|$)")
_ALWAYS = ("squashfs", "erofs", "cramfs", "zfs")
"""File systems that compress by default, without a mount option."""
_UNSET = ("compress=no", "compress=none", "compression=none")
_NOT_ALL_THERE = 0.95
"""Space divided by size; a smaller value means compression or holes on such a file system."""


@dataclass(frozen=True)
class Extents(Plain):
    """Totals of one file, or of several together, in bytes."""

    size_bytes: int
    hole_bytes: int | None
    """Bytes without any space; None: the file system does not report them."""
    unwritten_bytes: int
    """Bytes with space that was never written (fallocate)."""
    compressed_bytes: int
    """Uncompressed size of compressed data."""
    compresses: str
    """Compression of this file: a mount option or attribute; empty: none."""


def extents_of(fd: int, machine: Machine = HERE) -> Extents | None:
    """Extents of an open file; None if it is empty or not a regular file."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size <= 0:
        return None
    size, there, unwritten, packed = status.st_size, 0, 0, 0
    known = True
    try:
        for extent in islice(kernel.extents(fd), MOST_EXTENTS):
            length = max(0, min(extent.offset + extent.length, size) - extent.offset)
            there += length
            unwritten += length if extent.flags & kernel.FIEMAP_EXTENT_UNWRITTEN else 0
            packed += length if extent.flags & kernel.FIEMAP_EXTENT_ENCODED else 0
            if extent.offset >= size:
                break
    except OSError:
        known = False
    return Extents(
        size_bytes=size,
        hole_bytes=max(0, size - there) if known else None,
        unwritten_bytes=unwritten,
        compressed_bytes=packed,
        compresses=_compression(fd, packed, status.st_blocks * 512 / size, machine),
    )


def backing_extents(device: Device, machine: Machine = HERE) -> Extents | None:
    """Extents of the file behind a loop device; None for every other device."""
    path = (text_of(device.sysfs / "loop/backing_file") or "").strip()
    if not path.startswith("/") or not machine.live:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return extents_of(fd, machine)
    finally:
        os.close(fd)


def _compression(fd: int, packed: int, space: float, machine: Machine) -> str:
    mount = _mount_of(fd, machine)
    kind = mount.fs_type if mount is not None else ""
    flags = kernel.file_attributes(fd) or 0
    if mount is not None and kind not in _ALWAYS and not flags & kernel.FS_NOCOW_FL:
        option = _OPTION.search(mount.super_options) or _OPTION.search(mount.options)
        if option is not None and option[1] not in _UNSET:
            return f"{kind}, mounted with {option[1]}"
    if flags & kernel.FS_COMPR_FL:
        return f"{kind}, by the file's attribute c (lsattr)".removeprefix(", ")
    if kind in _ALWAYS and space < _NOT_ALL_THERE:
        return kind
    return kind or "the file system" if packed else ""


def _mount_of(fd: int, machine: Machine) -> Mount | None:
    """The mount, found by its number: device numbers of btrfs files match no mount."""
    found = re.search(r"^mnt_id:\s*([0-9]{1,9})$", text_of(machine.proc / f"self/fdinfo/{fd}") or "", re.MULTILINE)
    number = whole_number(found[1]) if found else None
    mounts = parse_mountinfo(text_of(machine.proc / "self/mountinfo") or "")
    return next((mount for mount in mounts if mount.mount_id == number), None)
