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


def kib(count: int | None) -> str:
    """Bytes of what is laid out in powers of two: 512 B, 64 KiB, 1.5 MiB."""
    if count is None:
        return "unknown"
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.10g} {unit}" if value == round(value, 3) else f"{value:.3f} {unit}"


def listed(parts: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
