"""I/O of control groups: io.stat of cgroup v2, or blkio.throttle.* of v1.

Both count a request when it is handed to the block layer, before it is merged or split (block/blk-cgroup.c
blk_cgroup_bio_start; block/blk-throttle.c in older kernels). So their sum can differ from the device's counters. A v2
group contains the groups below it; a v1 group does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from spindle.host.devices import DevNumber, Machine, text_of
from spindle.host.number import whole_number

MOST_GROUPS = 20_000
"""Limit for the walk over the tree; larger than on any real machine."""


class Key(NamedTuple):
    """A group (its path below the root, which is `/`) on a device."""

    group: str
    number: DevNumber


@dataclass(frozen=True)
class CgroupIo:
    """Requests and bytes asked for since the group was made."""

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0
    discards: int = 0
    discard_bytes: int = 0


_V2 = {
    "rios": "reads",
    "rbytes": "read_bytes",
    "wios": "writes",
    "wbytes": "write_bytes",
    "dios": "discards",
    "dbytes": "discard_bytes",
}
_V1 = {"Read": ("reads", "read_bytes"), "Write": ("writes", "write_bytes"), "Discard": ("discards", "discard_bytes")}
_NONE = CgroupIo()


@dataclass(frozen=True)
class Groups:
    """Counters of every group at one moment."""

    disks: Mapping[DevNumber, str]
    """The whole disks that `io` covers."""
    io: Mapping[Key, CgroupIo]
    uncounted: frozenset[DevNumber] = frozenset()
    """Disks that the kernel counts for no group."""


@dataclass(frozen=True)
class Hierarchy:
    """The mounted tree of the groups that count I/O."""

    root: Path
    version: int

    def read(self, disks: Mapping[DevNumber, str]) -> Groups:
        """Read every group that did I/O on one of these disks.

        v1 lists a disk in the root group, even with zeros, unless it does not count it: since Linux 6.10 blk-throttle
        counts only disks that once had a limit (block/blk-throttle.c tg_set_conf, blk_throtl_activated).
        """
        found: dict[Key, CgroupIo] = {}
        counted: set[DevNumber] = set()
        for folder in self._folders():
            group = "/" + os.path.relpath(folder, self.root).removeprefix(".")
            for number, io in (self._v2(folder) if self.version == 2 else self._v1(folder)).items():
                counted.add(number)
                if number in disks and io != _NONE:
                    found[Key(group, number)] = io
        return Groups(disks, found, frozenset(disks) - counted if self.version == 1 else frozenset())

    def _folders(self) -> Iterator[Path]:
        for at, (folder, _, _) in enumerate(os.walk(self.root)):
            if at >= MOST_GROUPS:
                return
            yield Path(folder)

    @staticmethod
    def _v2(folder: Path) -> dict[DevNumber, CgroupIo]:
        return parse_v2(text_of(folder / "io.stat") or "")

    @staticmethod
    def _v1(folder: Path) -> dict[DevNumber, CgroupIo]:
        return parse_v1(
            text_of(folder / "blkio.throttle.io_serviced") or "",
            text_of(folder / "blkio.throttle.io_service_bytes") or "",
        )


def hierarchy(machine: Machine) -> Hierarchy | None:
    """v2 where it has the io controller, else v1's blkio; None where neither counts."""
    roots: dict[int, Path] = {}
    for line in (text_of(machine.proc / "self/mountinfo") or "").splitlines():
        mount, _, rest = line.partition(" - ")
        places, kinds = mount.split(), rest.split()
        if len(places) < 5 or len(kinds) < 3:
            continue
        point = _unescaped(places[4])
        root = machine.sys / point.removeprefix("/sys/") if point.startswith("/sys/") else Path(point)
        if kinds[0] == "cgroup2" and "io" in (text_of(root / "cgroup.controllers") or "").split():
            roots.setdefault(2, root)
        elif kinds[0] == "cgroup" and "blkio" in kinds[2].split(","):
            roots.setdefault(1, root)
    return next((Hierarchy(roots[version], version) for version in (2, 1) if version in roots), None)


def _unescaped(text: str) -> str:
    """mountinfo writes a space as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def parse_v2(text: str) -> dict[DevNumber, CgroupIo]:
    """Parse `8:0 rbytes=4096 wbytes=0 rios=1 ...`; some kernels print an unused device before it on the same line."""
    found: dict[DevNumber, dict[str, int]] = {}
    values: dict[str, int] = {}
    for word in text.split():
        if (number := _number(word)) is not None:
            values = found.setdefault(number, {})
            continue
        name, _, digits = word.partition("=")
        value = whole_number(digits)
        if name in _V2 and value is not None:
            values[_V2[name]] = value
    return {number: CgroupIo(**values) for number, values in found.items()}


def parse_v1(serviced: str, service_bytes: str) -> dict[DevNumber, CgroupIo]:
    """Parse `8:0 Read 12`, one file of counts and one of bytes."""
    found: dict[DevNumber, dict[str, int]] = {}
    for at, text in enumerate((serviced, service_bytes)):
        for line in text.splitlines():
            parts = line.split(maxsplit=3)
            if len(parts) != 3 or parts[1] not in _V1:
                continue
            number, value = _number(parts[0]), whole_number(parts[2])
            if number is not None and value is not None:
                found.setdefault(number, {})[_V1[parts[1]][at]] = value
    return {number: CgroupIo(**values) for number, values in found.items()}


def _number(word: str) -> DevNumber | None:
    found = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", word)
    return DevNumber(int(found[1]), int(found[2])) if found else None


def difference(before: CgroupIo | None, after: CgroupIo) -> CgroupIo:
    """Counts added between two moments. A new group starts at 0."""
    old = before or _NONE
    values = {field.name: getattr(after, field.name) - getattr(old, field.name) for field in fields(CgroupIo)}
    return after if min(values.values()) < 0 else CgroupIo(**values)
