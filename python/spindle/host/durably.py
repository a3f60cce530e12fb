"""Names and files that are on the disk when the call returns."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """The names in it are on the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing: a new file takes the name when it is complete, whatever had it before. Raises OSError."""
    part = path.absolute().with_name(f".{path.name}.{os.urandom(4).hex()}")
    with part.open("xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
