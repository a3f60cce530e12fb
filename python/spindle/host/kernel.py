"""Kernel interfaces without a Python function: statx, kcmp, umount2 and block device ioctls."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass

# include/uapi/linux/fs.h
BLKSSZGET = 0x1268
BLKGETSIZE64 = 0x80081272
BLKGETDISKSEQ = 0x80081280
FS_IOC_GETFLAGS = 0x80086601
FS_COMPR_FL = 0x4
FS_NOCOW_FL = 0x00800000
# include/uapi/linux/fiemap.h
FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 0x1
FIEMAP_EXTENT_LAST = 0x1
FIEMAP_EXTENT_ENCODED = 0x8
FIEMAP_EXTENT_UNWRITTEN = 0x800
_FIEMAP = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQIIII")
_EXTENTS_A_CALL = 256
# include/uapi/linux/loop.h
LOOP_GET_STATUS64 = 0x4C05
# include/uapi/linux/hdreg.h
HDIO_GET_IDENTITY = 0x030D

# include/uapi/linux/stat.h
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
_STATX_BTIME = 0x800
_STATX_MNT_ID = 0x1000
_STATX_DIOALIGN = 0x2000
_STATX_BYTES = 256
# include/uapi/linux/kcmp.h; numbers of the system call: arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h
_KCMP_FILES = 2
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "loongarch64": 272, "ppc64le": 354, "s390x": 343}
# include/linux/fs.h
_UMOUNT_NOFOLLOW = 8
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Alignment:
    """Requirements of O_DIRECT: offset and length, and the buffer's address, are multiples of these (bytes). 0: direct
    I/O is not possible on this file."""

    offset: int
    memory: int


def _statx(fd: int, mask: int) -> bytes | None:
    call = getattr(_libc, "statx", None)  # missing in musl and in glibc before 2.28
    if call is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if call(fd, b"", _AT_EMPTY_PATH, mask, buffer) != 0:
        return None
    granted = struct.unpack_from("=I", buffer, 0)[0]
    return buffer.raw if granted & mask == mask else None


@dataclass(frozen=True)
class Node:
    """The inode that a path leads to, as the kernel knows it without asking a server."""

    mode: int
    """st_mode; its type is 0 for io_uring, epoll and the like."""
    device: tuple[int, int]
    inode: int
    number: tuple[int, int]
    """Number of the device behind a device node (st_rdev)."""
    mount_id: int | None
    """Mount through which it was reached; None before Linux 5.8."""
    birth_ns: int | None
    """Only if requested, and if the file system stores it."""


def node_at(path: str, *, born: bool = False) -> Node | None:
    """Look up a path. A link of /proc leads to its object, even if that has lost its name. None if it is gone or not
    visible to us. No network file system is asked, so that a dead server cannot block the caller; `born` may ask."""
    call = getattr(_libc, "statx", None)
    if call is None:
        return _node_by_stat(path)
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if call(_AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, _STATX_BTIME if born else 0, buffer) != 0:
        return None
    granted = struct.unpack_from("=I", buffer, 0)[0]
    (mode,) = struct.unpack_from("=H", buffer, 28)
    (inode,) = struct.unpack_from("=Q", buffer, 32)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
    numbers = struct.unpack_from("=IIIIQ", buffer, 128)
    return Node(
        mode,
        (numbers[2], numbers[3]),
        inode,
        (numbers[0], numbers[1]),
        numbers[4] if granted & _STATX_MNT_ID else None,
        seconds * 1_000_000_000 + nanoseconds if born and granted & _STATX_BTIME else None,
    )


def _node_by_stat(path: str) -> Node | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Node(found.st_mode, _decode(found.st_dev), found.st_ino, _decode(found.st_rdev), None, None)


def share_descriptors(task: int, other: int) -> bool:
    """True if two tasks certainly share one table of descriptors (kcmp(2)). False also if that is not known."""
    number = _KCMP.get(platform.machine())
    return number is not None and _libc.syscall(number, task, other, _KCMP_FILES, 0, 0) == 0


def direct_alignment(fd: int) -> Alignment | None:
    """`stx_dio_offset_align` and `stx_dio_mem_align` (Linux 6.1); None if the kernel or file system does not report
    them."""
    found = _statx(fd, _STATX_DIOALIGN)
    if found is None:
        return None
    memory, offset = struct.unpack_from("=II", found, 152)
    return Alignment(offset=offset, memory=memory)


def birth_time_ns(fd: int) -> int | None:
    """Birth time of the file, ns since 1970; None if the file system does not store it."""
    found = _statx(fd, _STATX_BTIME)
    if found is None:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", found, 80)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def _ioctl_int(fd: int, request: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(fd, request, b"\0" * 4))[0])


def logical_block_bytes(fd: int) -> int:
    """Smallest addressable unit of a block device."""
    return _ioctl_int(fd, BLKSSZGET)


def device_bytes(fd: int) -> int:
    """Size of a block device."""
    return int(struct.unpack("Q", fcntl.ioctl(fd, BLKGETSIZE64, b"\0" * 8))[0])


def disk_sequence(fd: int) -> int | None:
    """Sequence number among all disks since boot: it changes when a number is used again, a loop device is set up
    again, or a medium is replaced. None before Linux 5.15."""
    try:
        return int(struct.unpack("Q", fcntl.ioctl(fd, BLKGETDISKSEQ, b"\0" * 8))[0])
    except OSError:
        return None


@dataclass(frozen=True)
class LoopStatus:
    """Report of a loop device on its file: the file's file system, inode, and, for a block device, its number; and the
    offset in the file at which the loop device begins."""

    file_device: tuple[int, int]
    file_inode: int
    block_device: tuple[int, int] | None
    offset: int


def loop_status(fd: int) -> LoopStatus | None:
    """Status of a loop device; None if it is not set up or not a loop device."""
    try:
        data = fcntl.ioctl(fd, LOOP_GET_STATUS64, b"\0" * 232)
    except OSError:
        return None
    file_device, inode, rdevice, offset = struct.unpack_from("=QQQQ", data)
    # Older kernels report the file system's number in lo_rdevice when a regular file is behind the loop device.
    block = None if rdevice in (0, file_device) else _decode(rdevice)
    return LoopStatus(_decode(file_device), inode, block, offset)


def _decode(number: int) -> tuple[int, int]:
    return os.major(number), os.minor(number)


def ata_buffer_bytes(fd: int) -> int | None:
    """Buffer size that an ATA drive reports (word 21 of IDENTIFY DEVICE, in sectors); None for all others."""
    try:
        data = fcntl.ioctl(fd, HDIO_GET_IDENTITY, b"\0" * 512)
    except OSError:
        return None
    sectors = int(struct.unpack_from("<H", data, 42)[0])
    return sectors * 512 or None


def sync_file_system(fd: int) -> None:
    """Call syncfs(2)."""
    if _libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unmount(point: str) -> None:
    """Call umount2(2) for the mount at this very path; does not follow a link. Raises OSError."""
    if _libc.umount2(os.fsencode(point), _UMOUNT_NOFOLLOW) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@dataclass(frozen=True)
class Extent:
    """Position of a part of a file; bytes."""

    offset: int
    length: int
    flags: int
    """FIEMAP_EXTENT_*."""


def extents(fd: int) -> Iterator[Extent]:
    """The parts of a file that have space, in order (Documentation/filesystems/fiemap.rst). Raises OSError if the file
    system does not support this."""
    start = 0
    while True:
        asked = _FIEMAP.pack(start, (1 << 64) - 1 - start, FIEMAP_FLAG_SYNC, 0, _EXTENTS_A_CALL, 0)
        buffer = bytearray(asked + b"\0" * (_EXTENTS_A_CALL * _EXTENT.size))
        fcntl.ioctl(fd, FS_IOC_FIEMAP, buffer)
        mapped = _FIEMAP.unpack_from(buffer)[3]
        for at in range(mapped):
            offset, _, length, _, _, flags, *_ = _EXTENT.unpack_from(buffer, _FIEMAP.size + at * _EXTENT.size)
            yield Extent(offset, length, flags)
            start = offset + length
            if flags & FIEMAP_EXTENT_LAST:
                return
        if not mapped:
            return


def file_attributes(fd: int) -> int | None:
    """FS_*_FL of a file (chattr); None if the file system has none."""
    try:
        return _ioctl_int(fd, FS_IOC_GETFLAGS)
    except OSError:
        return None
