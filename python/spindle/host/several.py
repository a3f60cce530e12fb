"""Several existing devices or files as the sets of files of a workload: nothing is made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import Refusal, WrongTarget, not_found

SEPARATOR = ":"
"""Separator of paths, as in fio's `filename`; a colon in a name is written `\\:`."""


@dataclass(frozen=True)
class PathSets:
    """Name of the set -> its paths, in order."""

    sets: Mapping[str, tuple[str, ...]]

    @property
    def paths(self) -> list[str]:
        """All paths, each once."""
        return list(dict.fromkeys(path for paths in self.sets.values() for path in paths))

    @property
    def path(self) -> str:
        """All paths, as a user would write them."""
        return joined(self.paths)


def joined(paths: list[str]) -> str:
    """Join paths to `/dev/a:/dev/b`."""
    return SEPARATOR.join(path.replace(SEPARATOR, f"\\{SEPARATOR}") for path in paths)


def split(text: str) -> list[str]:
    """Split paths again; an existing path is one path, even with colons."""
    if os.path.exists(text):
        return [text]
    return [part.replace(f"\\{SEPARATOR}", SEPARATOR) for part in re.split(r"(?<!\\):", text) if part]


def erase_of_each(paths: list[str], erase: str | None) -> dict[str, str | None]:
    """Path -> the name in `erase` (one or several) that leads to it, or None. Raises Refusal or TargetError."""
    known: dict[tuple[int, int, int], str] = {}
    for path in paths:
        key = _key(path)
        if key in known:
            raise WrongTarget(f"{path}: is the same as {known[key]}; name it once")
        known[key] = path
    found: dict[str, str | None] = dict.fromkeys(paths)
    for named in [] if erase is None else split(erase):
        meant = known.get(_key(named))
        if meant is None:
            raise Refusal(f"{named}: `erase=` names it, but it is none of {', '.join(paths)}")
        found[meant] = named
    return found


def _key(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise not_found(path, error) from None
    # A device is identified by its number, whichever node names it.
    return (0, 0, status.st_rdev) if status.st_rdev else (status.st_dev, status.st_ino, 0)
