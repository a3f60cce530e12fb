"""Comparison of JSON documents."""

from __future__ import annotations

from typing import Any


def structure(value: Any, name: str = "") -> dict[str, str]:
    """Every key with the type of its value; the elements of a list are merged."""
    if isinstance(value, dict):
        return {key: kind for each, item in value.items() for key, kind in structure(item, f"{name}/{each}").items()}
    if isinstance(value, list):
        return {key: kind for item in value for key, kind in structure(item, name + "[]").items()}
    return {name: "text" if isinstance(value, str) else "number"}
