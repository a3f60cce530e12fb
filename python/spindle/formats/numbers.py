"""Numbers as tools write them. None: not a number, or an impossible one."""

from __future__ import annotations

import re
from math import isfinite

_MOST = 1 << 63
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_UNITS = {"ns": 1.0, "us": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9, "min": 60e9, "h": 3600e9}
_PREFIX = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME = re.compile(r"([0-9.,]+)\s*([a-z]+)", re.ASCII)


def number(text: object) -> float | None:
    """Parse a finite number, also with a decimal comma, as in some locales."""
    if isinstance(text, bool):
        return None
    if isinstance(text, int | float):
        return float(text) if abs(text) < 1e300 and isfinite(text) else None
    if not isinstance(text, str) or len(text) > 40 or not _NUMBER.fullmatch(text.strip()):
        return None
    value = float(text.strip().replace(",", "."))
    return value if isfinite(value) else None


def amount(value: object) -> float | None:
    """Parse a number that is not negative."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def whole(value: object) -> int | None:
    """Parse a count, or a time in ns: an integer that is not negative and has less than 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < _MOST else None
    found = amount(value)
    return round(found) if found is not None and found < _MOST else None


def scaled(value: object, factor: float) -> float | None:
    """Convert to another unit."""
    found = amount(value)
    return None if found is None or not isfinite(found * factor) else found * factor


def scaled_whole(value: object, factor: float) -> int | None:
    """Convert to another unit, as an integer."""
    return whole(scaled(value, factor))


def time_ns(text: str) -> int | None:
    """Parse `123us`, `45ms`, `1.5 s`."""
    found = _TIME.fullmatch(text.strip())
    return scaled_whole(found[1], _UNITS[found[2]]) if found and found[2] in _UNITS else None


def prefixed(prefix: str, base: int) -> float:
    """Return the factor of `k`, `M`, `G` ... at a base of 1000 or 1024."""
    return float(base ** _PREFIX[prefix.lower()])
