"""Amounts as a native workload has them."""

from __future__ import annotations

Keys = dict[str, str | float | bool]
"""Keys and values as they stand in a workload's TOML."""


def written(count: int) -> str:
    """Bytes in the largest unit that holds them exactly."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def duration(us: int) -> str:
    """Of microseconds."""
    return f"{us // 10**6}s" if us % 10**6 == 0 else f"{us}us"
