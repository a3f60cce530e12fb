"""The only module of the lab that makes files: in folders of its own, below the cache and the temporary folder, and
the contents of drives where they are asked for.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def place(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put a file in place, whole or not at all; replaces an earlier one."""
    place_pieces(path, len(data), [(0, data)], mode)


def place_pieces(path: Path, size: int, pieces: Iterable[tuple[int, bytes]], mode: int = 0o644) -> None:
    """Put a sparse file in place, whole or not at all, from pieces at offsets."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            for offset, data in pieces:
                file.seek(offset)
                file.write(data)
            file.truncate(size)
        os.rename(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
