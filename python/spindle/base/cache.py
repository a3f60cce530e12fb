"""The user's folder for what can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where this program keeps it (XDG base directory specification)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    above = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return above / "spindle"
