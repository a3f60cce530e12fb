"""The file with the contents of a served drive. The only module of this room that opens anything for writing."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from spindle.host.errors import Refusal, TargetError, reason


def open_contents(path: Path, size: int) -> int:
    """Open a file of `size` bytes, locked: a new sparse one, or one that has this size. Raises TargetError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        return _earlier(path, size)
    except OSError as error:
        raise TargetError(f"{path}: cannot be made ({reason(error)}); give another file") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(fd, size)
    except OSError as error:
        os.close(fd)
        path.unlink()
        raise TargetError(f"{path}: cannot have {size} bytes ({reason(error)}); give another file") from None
    return fd


def _earlier(path: Path, size: int) -> int:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise Refusal(f"{path}: is not a regular file; name a new file")
        if found.st_size != size:
            raise Refusal(f"{path}: has {found.st_size} bytes, the disk {size}; name a new file")
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise TargetError(f"{path}: cannot be opened ({reason(error)}); give another file") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise Refusal(f"{path}: another server has it open; end that one or name a new file") from None
    return fd
