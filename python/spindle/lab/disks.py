"""Contents of the lab's drives as sparse files of a folder: `vda`, `vdb` ..., so that they can be booted again."""

from __future__ import annotations

import os
from pathlib import Path

from spindle import _core

from .files import place_pieces

_PAGE = 64 * 1024
"""Bytes of a page of the drives' contents (`crates/disk/src/device/contents.rs`)."""


def _name(slot: int) -> str:
    letters = ""
    slot += 1
    while slot:
        slot, letter = divmod(slot - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return f"vd{letters}"


def read(lab: _core.Lab, folder: Path) -> None:
    """Put what the folder has on the drives."""
    slot = 0
    while (path := folder / _name(slot)).is_file():
        with path.open("rb") as file:
            end = os.fstat(file.fileno()).st_size
            place = _next(file.fileno(), 0)
            while place is not None and place < end:
                at = place - place % _PAGE
                data = os.pread(file.fileno(), _PAGE, at)
                if any(data):
                    lab.put(slot, at, data)
                place = _next(file.fileno(), at + _PAGE)
        slot += 1


def _next(fd: int, offset: int) -> int | None:
    """Where the next data of a sparse file begin."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError:
        return None


def write(lab: _core.Lab, folder: Path, sizes: list[int]) -> None:
    """Keep the contents of the drives, which have these sizes in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for slot, size in enumerate(sizes):
        pages = ((offset, lab.page(slot, offset)) for offset in lab.pages(slot))
        place_pieces(folder / _name(slot), size, pages)
