"""The name that somebody may have meant who wrote one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, names: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The end of a sentence: the nearest of the names, or `otherwise` where none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return f"did you mean `{near[0]}`?" if near else otherwise
