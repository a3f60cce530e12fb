"""The kinds of targets. `parse` resolves a name; a new kind is a module here, an entry in `KINDS`, and the
properties of its records in `result/target.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from spindle.host.paths import target_path

from .kernel import OnKernel, on_kernel
from .modelled import MachineTarget
from .null import NullTarget
from .paths import PathTarget
from .target import AS_IT_IS, Opening, Target

KINDS = (NullTarget, MachineTarget, PathTarget)
"""In order of parsing; every name is valid for `Paths`."""


def parse(name: str, *, devices_by_name: bool = True) -> Target:
    """`null:1GiB`, a machine of the catalogue or a machine file, paths (several: `A:B`), or bare names of block devices
    (`sdb`), unless `devices_by_name` is False: fio takes those for files."""
    for kind in KINDS:
        found = kind.parse(target_path(name) if devices_by_name else name)
        if found is not None:
            return found
    raise AssertionError("every name is one of `Paths`")


def refusal(target: Target, given: Iterable[str]) -> tuple[str, str] | None:
    """The first given option that the target refuses, and the reason."""
    return next(((name, target.refusals[name]) for name in given if name in target.refusals), None)


__all__ = [
    "AS_IT_IS",
    "KINDS",
    "MachineTarget",
    "NullTarget",
    "OnKernel",
    "Opening",
    "PathTarget",
    "Target",
    "on_kernel",
    "parse",
    "refusal",
]
