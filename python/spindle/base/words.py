"""Lists and numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def listed(parts: Sequence[str], last: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'."""
    return f" {last} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(number: int, what: str) -> str:
    """'1 result', '2 results'."""
    return f"{number} {what}{'' if number == 1 else 's'}"
