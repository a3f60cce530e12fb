"""Strict parsers for the kernel's numbers: a file of /proc or /sys may contain anything."""

from __future__ import annotations

_LIMIT = 1 << 64
_DIGITS = len(str(_LIMIT))


def whole_number(text: str) -> int | None:
    """Parse a counter: up to 64 bits, only digits."""
    if len(text) > _DIGITS or not (text.isdigit() and text.isascii()):
        return None
    value = int(text)
    return value if value < _LIMIT else None


def signed_number(text: str) -> int | None:
    """Parse a counter that may be negative."""
    value = whole_number(text.removeprefix("-"))
    return -value if value is not None and text.startswith("-") else value
