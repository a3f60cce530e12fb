"""Amounts as a native workload has them."""

from __future__ import annotations

Keys = dict[str, str | float | bool]
"""Keys and values as they stand in a workload's TOML."""


def duration(us: int) -> str:
    """Of microseconds."""
    return f"{us // 10**6}s" if us % 10**6 == 0 else f"{us}us"
