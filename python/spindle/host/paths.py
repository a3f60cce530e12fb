"""What a path means before it is opened."""

from __future__ import annotations

import os


def is_under_dev(path: str | os.PathLike[str]) -> bool:
    """Whether a path lies under /dev, by whatever way it gets there: `..`, or a link on the way."""
    folder = os.path.dirname(os.path.abspath(path))
    return any(name == "/dev" or name.startswith("/dev/") for name in (folder, os.path.realpath(folder)))
