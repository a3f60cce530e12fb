"""Sizes in words for the lines this room writes."""

from __future__ import annotations


def size(count: int) -> str:
    """Bytes in decimal units, as drives are sold: 12.0 TB, 67.1 MB."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if value < 999.95 or unit == "PB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def listed(parts: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
