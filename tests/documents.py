"""Comparison of JSON documents, and their optional values."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def structure(value: Any, name: str = "") -> dict[str, str]:
    """Every key with the type of its value; the elements of a list are merged."""
    if isinstance(value, dict):
        return {key: kind for each, item in value.items() for key, kind in structure(item, f"{name}/{each}").items()}
    if isinstance(value, list):
        return {key: kind for item in value for key, kind in structure(item, name + "[]").items()}
    return {name: "text" if isinstance(value, str) else "number"}


def present(value: T | None) -> T:
    """A value that must be known here."""
    assert value is not None
    return value
