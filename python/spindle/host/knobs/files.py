"""The files of the kernel. `write_kernel_file` is the only function of Spindle that writes to /sys or /proc."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..devices import text_of
from . import swap


def write_kernel_file(path: Path, text: str) -> None:
    """One write(2), as sysfs and procfs want it; never makes a file. Raises what the kernel answers."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(fd, f"{text}\n".encode())
    finally:
        os.close(fd)


class Files:
    """What changes and undoes go through; tests put a kernel of their own in its place."""

    def read(self, path: Path) -> str | None:
        """Its text; None when it is not there or refuses to be read."""
        return text_of(path)

    def write(self, path: Path, text: str) -> None:
        """Raises OSError."""
        write_kernel_file(path, text)

    def swap(self, area: Path) -> str:
        """State of a swap area, as `swap.state_of` has it."""
        return swap.state_of(area)

    def switch_swap(self, area: Path, wanted: str, is_same: Callable[[int], bool]) -> None:
        """As `swap.switch`. Raises OSError."""
        swap.switch(area, wanted, is_same)

    def writable(self, path: Path) -> bool:
        """By its mode: root may open a read-only file of sysfs, and then every write fails."""
        try:
            return bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)
        except OSError:
            return False
