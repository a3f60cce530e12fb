"""Content of test files: data that neither compresses nor repeats in any aligned block of 4 KiB.

Blocks are pieces of a random pool, each at another offset from a multiple of 4 KiB; the pool is renewed before offsets
repeat. This is about as fast as a copy: random numbers for all data would cost ten times as much.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable

from spindle.base.units import si_size

from .errors import reason

_BLOCK = 8 << 20
_POOL = 2 * _BLOCK
_POOL_TURNS = 64
_PAGE = 4096
_WRITE_BEHIND = 64 << 20

Progress = Callable[[int, int], None]
"""Called with (bytes written, bytes in all)."""


class Filler:
    """Fills one file after another."""

    def __init__(self, total: int, on_progress: Progress | None = None) -> None:
        self._total = total
        self._done = 0
        self._on_progress = on_progress
        self._pool = memoryview(b"")
        self._turn = -1
        self._at = 0

    def fill(self, fd: int, size_bytes: int) -> None:
        """Write `size_bytes` from the start of an empty file, perhaps not yet to the medium. Raises OSError."""
        done = behind = 0
        while done < size_bytes:
            done += os.pwrite(fd, self._piece(min(_BLOCK, size_bytes - done)), done)
            if done - behind >= 2 * _WRITE_BEHIND:
                # Starts writing dirty pages and drops written ones: memory stays free, and the end has no burst of
                # writes.
                os.posix_fadvise(fd, behind, _WRITE_BEHIND, os.POSIX_FADV_DONTNEED)
                behind += _WRITE_BEHIND
            if self._on_progress:
                self._on_progress(self._done + done, self._total)
        self._done += done

    def _piece(self, length: int) -> memoryview:
        length = min(length, len(self._pool) // 2 or length)
        if self._turn < 0 or self._at + length > len(self._pool) - 2 * _POOL_TURNS - 1:
            self._next_turn(length)
        start = self._at + 2 * (self._turn % _POOL_TURNS) + 1
        self._at += -(-length // _PAGE) * _PAGE
        return self._pool[start : start + length]

    def _next_turn(self, length: int) -> None:
        self._turn += 1
        if self._turn % _POOL_TURNS == 0:
            wanted = min(_POOL, max(2 * length, 2 * (self._total - self._done)))
            self._pool = memoryview(os.urandom(wanted + 2 * _POOL_TURNS + 2 * _PAGE))
        # Anywhere in the first half, so that the longest piece fits.
        self._at = secrets.randbelow(max(1, len(self._pool) // 2 // _PAGE)) * _PAGE


def fill_error(error: OSError, size_bytes: int) -> str:
    """Text of the error that ended the writing of `size_bytes`."""
    if error.errno == errno.ENOSPC:
        return f"the file system is full before {si_size(size_bytes)} are written"
    if error.errno == errno.EDQUOT:
        return f"the disk quota ends before {si_size(size_bytes)} are written"
    if error.errno == errno.EFBIG:
        return f"{si_size(size_bytes)} is more than a file may have here"
    return f"the test file cannot be written: {reason(error)}"
