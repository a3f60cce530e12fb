"""Meaning of a path before it is opened."""

from __future__ import annotations

import os

from .devices import HERE, Machine
from .errors import WrongTarget
from .several import joined, split


def is_under_dev(path: str | os.PathLike[str]) -> bool:
    """True if a path is under /dev, also through `..` or a link on the way."""
    folder = os.path.dirname(os.path.abspath(path))
    return any(name == "/dev" or name.startswith("/dev/") for name in (folder, os.path.realpath(folder)))


def target_path(name: str, machine: Machine = HERE) -> str:
    """The path of a target, for every verb: a bare name (`sdb`) of a block device, without a file of that name here,
    becomes /dev/NAME. Each of several (`sdb:sdc`) by itself. Anything else stays as it is.

    Raises WrongTarget for an empty name, which an unset variable of a shell leaves."""
    if not name.strip():
        raise WrongTarget("the target has no name: it is empty; name a device, a file or a folder (`.` is this one)")
    parts = split(name)
    meant = [_device_path(part, machine) for part in parts]
    return joined(meant) if meant != parts else name


def _device_path(name: str, machine: Machine) -> str:
    bare = name not in ("", ".", "..") and "/" not in name and "\0" not in name
    known = bare and os.path.isdir(machine.sys / "class/block" / name) and not os.path.lexists(name)
    return str(machine.dev / name.replace("!", "/")) if known else name
