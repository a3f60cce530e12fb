"""Swap areas: their state and priority, and switching one off and on (swapon(2), swapon(8)).

The state of an area as text: `off`, `auto` (in use; the kernel chose its priority, below all others), or a priority
that somebody chose. A chosen priority is restored as it was; among areas with `auto`, the first switched on comes
first.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from spindle.host.devices import HERE, Machine
from spindle.host.mounts import Swap, swaps

OFF, AUTO = "off", "auto"
MOST = 32767
"""SWAP_FLAG_PRIO_MASK (include/linux/swap.h)."""
_PREFER = 0x8000  # SWAP_FLAG_PREFER
_libc = ctypes.CDLL(None, use_errno=True)


def state_of(area: Path, machine: Machine = HERE) -> str:
    """State of the area at this path."""
    for one in swaps(machine):
        if Path(one.path) == area:
            return state(one)
    return OFF


def state(one: Swap) -> str:
    """State of an area in use."""
    return AUTO if one.priority is None or one.priority < 0 else str(one.priority)


def switch(area: Path, wanted: str, is_same: Callable[[int], bool]) -> None:
    """Switch an area on or off. Raises OSError. Switching off reads back all swapped pages, which takes time. `is_same`
    checks that the open file is the area that is meant.

    The area is opened once and switched through the descriptor, so its name may lead elsewhere at any moment.
    """
    fd = os.open(area, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{fd}") != os.fspath(area) or not is_same(fd):
            raise OSError(errno.ESTALE, "its name leads to something else now")
        if wanted != OFF and not _is_private(fd):
            raise OSError(errno.EPERM, "others may write to the file; chown root and chmod go-rw it")
        _switch(f"/proc/self/fd/{fd}".encode(), wanted)
    finally:
        os.close(fd)


def _is_private(fd: int) -> bool:
    """True if only root can write to it: others could otherwise change memory of programs."""
    status = os.fstat(fd)
    return stat.S_ISBLK(status.st_mode) or (status.st_uid == 0 and not status.st_mode & 0o022)


def _switch(path: bytes, wanted: str) -> None:
    if wanted == OFF:
        failed = _libc.swapoff(path)
    else:
        failed = _libc.swapon(path, 0 if wanted == AUTO else _PREFER | int(wanted))
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
