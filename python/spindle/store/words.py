"""Text that every database can store."""

from __future__ import annotations

import os


def storable(text: str) -> str:
    """Return the text with `\\xff` for bytes of a name that are not UTF-8, and without NUL, which PostgreSQL cannot
    store.
    """
    return os.fsencode(text).decode("utf-8", "backslashreplace").replace("\0", "\\x00")
