"""Amounts in a native workload."""

from __future__ import annotations

Keys = dict[str, str | float | bool]
"""Keys and values of a workload's TOML."""


def duration(us: int) -> str:
    """Return microseconds as a duration."""
    return f"{us // 10**6}s" if us % 10**6 == 0 else f"{us}us"
