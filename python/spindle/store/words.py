"""Text that every database can hold."""

from __future__ import annotations

import os


def storable(text: str) -> str:
    """With `\\xff` for bytes of a name that are not UTF-8, and without NUL, which PostgreSQL has no place for."""
    return os.fsencode(text).decode("utf-8", "backslashreplace").replace("\0", "\\x00")
