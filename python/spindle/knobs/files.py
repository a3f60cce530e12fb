"""The files of the kernel. `write_kernel_file` is the only function of Spindle that writes to /sys or /proc."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from spindle.host.devices import text_of

from . import swap


def write_kernel_file(path: Path, text: str) -> None:
    """Write with one write(2), as sysfs and procfs require; never creates a file. Raises the kernel's error."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(fd, f"{text}\n".encode())
    finally:
        os.close(fd)


class Files:
    """Access to the kernel's files for changes and their undo; tests replace it with a simulated kernel."""

    def read(self, path: Path) -> str | None:
        """The file's text; None if it does not exist or cannot be read."""
        return text_of(path)

    def write(self, path: Path, text: str) -> None:
        """Write a file. Raises OSError."""
        write_kernel_file(path, text)

    def swap(self, area: Path) -> str:
        """State of a swap area, as `swap.state_of` returns it."""
        return swap.state_of(area)

    def switch_swap(self, area: Path, wanted: str, is_same: Callable[[int], bool]) -> None:
        """See `swap.switch`. Raises OSError."""
        swap.switch(area, wanted, is_same)

    def writable(self, path: Path) -> bool:
        """True if the file's mode allows writes: root can open a read-only file of sysfs, but then every write
        fails."""
        try:
            return bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)
        except OSError:
            return False
