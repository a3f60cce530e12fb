"""A device-mapper device: LVM, multipath, crypt and the rest, from sysfs and dmsetup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spindle.host.devices import SECTOR

from .model import Area, Dm, DmPath, DmRaid, PathGroup, Segment
from .nodes import Nodes
from .reading import Reading, dig_list, dig_text, value
from .tree import Tool, Tree

_GROUP_STATES = {"A": "active", "E": "enabled", "D": "disabled"}
_NUMBER = re.compile(r"[0-9]{1,18}")


def dm_of(device: str, folder: str, tree: Tree, nodes: Nodes) -> Dm:
    """Read a device-mapper device."""
    dm = Dm()
    read = Reading(tree, dm.unknown)
    dm.name = read.text("name", f"{folder}/dm/name")
    dm.uuid = value(tree, f"{folder}/dm/uuid")  # not every target has one
    if dm.uuid is not None:
        dm.owner = dm.uuid.partition("-")[0]
    if dm.owner == "LVM" and dm.name is not None:
        dm.volume_group, dm.logical_volume = split_volume(dm.name)
    table = read.output("segments", Tool("dmsetup-table", device, ("dmsetup", "table", f"/dev/{device}")))
    dm.segments = [segment for line in (table or "").splitlines() if (segment := _segment(line, nodes)) is not None]
    if table is not None and not dm.segments:
        read.lack("segments", f"dmsetup table {device}: no line of it is understood")
    if any(segment.target == "raid" for segment in dm.segments):
        status = read.output("raid", Tool("dmsetup-status", device, ("dmsetup", "status", f"/dev/{device}")))
        dm.raid = _raid(status or "")
        if status is not None and dm.raid is None:
            read.lack("raid", f"dmsetup status {device}: not the form of raid")
    if dm.owner == "mpath":
        status = read.output("paths", Tool("dmsetup-status", device, ("dmsetup", "status", f"/dev/{device}")))
        dm.paths = _paths(status or "", nodes)
        _queueing(dm, read)
        if status is not None and not dm.paths:
            read.lack("paths", f"dmsetup status {device}: not the form of multipath")
    return dm


def split_volume(name: str) -> tuple[str | None, str | None]:
    """Split vg-lv, where LVM doubles each dash inside a name."""
    found = re.fullmatch(r"((?:[^-]|--)+)-((?:[^-]|--)+)", name)
    return (found[1].replace("--", "-"), found[2].replace("--", "-")) if found else (None, None)


def _segment(line: str, nodes: Nodes) -> Segment | None:
    """Parse '0 8388608 striped 4 128 253:0 2048 ...' (Documentation/admin-guide/device-mapper)."""
    words = re.sub(r"^[^\s:]+: (?=[0-9])", "", line).split()
    if len(words) < 3 or not _NUMBER.fullmatch(words[0]) or not _NUMBER.fullmatch(words[1]):
        return None
    segment = Segment(start_sector=int(words[0]), sectors=int(words[1]), target=words[2][:100])
    rest = words[3:]
    if segment.target == "striped" and len(rest) >= 2 and all(_NUMBER.fullmatch(word) for word in rest[:2]):
        segment.stripes, segment.chunk_bytes = int(rest[0]), int(rest[1]) * SECTOR
        rest = rest[2:]
    segment.options = _options(segment.target, rest)
    segment.groups = _groups(rest, nodes) if segment.target == "multipath" else []
    for at, word in enumerate(rest):
        if re.fullmatch(r"[0-9]{1,7}:[0-9]{1,7}", word):
            following = rest[at + 1] if at + 1 < len(rest) else ""
            segment.areas.append(
                Area(
                    device=nodes.numbers.get(word, word),
                    offset_sectors=int(following) if _has_offset(segment.target, following) else None,
                )
            )
    return segment


_COUNT_AT = {"crypt": 5, "cache": 4, "thin-pool": 4, "writecache": 4, "multipath": 0}
"""Position of the number of optional words in a target's table (Documentation/admin-guide/device-mapper)."""


def _options(target: str, rest: list[str]) -> list[str]:
    """Optional words; other words of crypt are dropped, as they may be a key."""
    at = _COUNT_AT.get(target)
    if at is None or at >= len(rest) or not _NUMBER.fullmatch(rest[at]):
        return []
    return [word[:100] for word in rest[at + 1 : at + 1 + min(int(rest[at]), 100)]]


def _groups(rest: list[str], nodes: Nodes) -> list[PathGroup]:
    """Parse 'FEATURES... HANDLER... GROUPS NEXT {SELECTOR ARGS... PATHS PER_PATH {DEV ARGS...}}' (dm-mpath.c)."""
    groups: list[PathGroup] = []
    words = iter(rest)
    try:
        _skip(words)  # features
        _skip(words)  # hardware handler
        count = _count(words)
        next(words)
        for _ in range(count):
            group = PathGroup(selector=next(words)[:40])
            _skip(words)
            paths, arguments = _count(words), _count(words)
            for _ in range(paths):
                dev = next(words)
                group.devices.append(nodes.numbers.get(dev, dev[:40]))
                for _ in range(arguments):
                    next(words)
            groups.append(group)
    except (StopIteration, ValueError):
        return []
    return groups


def _has_offset(target: str, following: str) -> bool:
    return target in ("linear", "striped", "crypt") and _NUMBER.fullmatch(following) is not None


def _queueing(dm: Dm, read: Reading) -> None:
    """Read multipathd's behaviour without any path left: only its maps show no_path_retry."""
    data = read.json("queueing", Tool("multipathd", "maps", ("multipathd", "show", "maps", "json")))
    for row in dig_list(data, "maps"):
        if dig_text(row, "name") == dm.name:
            dm.queueing = dig_text(row, "queueing")
    if dm.queueing is None:
        read.lack("queueing", f"multipathd reports nothing about {dm.name}")


def _raid(status: str) -> DmRaid | None:
    """Parse '0 N raid raid5_ls 3 AAA 100/100 idle 0 ...' (Documentation/admin-guide/device-mapper/dm-raid.rst)."""
    found = re.search(r"^(?:[^\s:]+: )?\d+ \d+ raid \S+ \d+ ([AaD-]{1,256}) \d+/\d+ ([a-z]{1,20})\b", status)
    return DmRaid(health=found[1], sync_action=found[2]) if found else None


def _paths(status: str, nodes: Nodes) -> list[DmPath]:
    """Parse '0 N multipath FEATURES... HANDLER... GROUPS NEXT {STATE ARGS... PATHS PER_PATH {DEV A|F FAILURES ...}}'
    (multipath_status in drivers/md/dm-mpath.c)."""
    words = re.sub(r"^[^\s:]+: (?=[0-9])", "", status).split()
    if len(words) < 4 or words[2] != "multipath":
        return []
    paths: list[DmPath] = []
    try:
        rest = iter(words[3:])
        _skip(rest)  # features
        _skip(rest)  # hardware handler
        groups = _count(rest)
        next(rest)  # the group to use next
        for group in range(1, groups + 1):
            state = _GROUP_STATES[next(rest)]
            _skip(rest)  # the selector's own
            count, arguments = _count(rest), _count(rest)
            for _ in range(count):
                dev, word, failures = next(rest), next(rest), _count(rest, 1 << 40)
                paths.append(
                    DmPath(
                        device=nodes.numbers.get(dev, dev[:40]),
                        active=word == "A",
                        failures=failures,
                        group=group,
                        group_state=state,
                    )
                )
                for _ in range(arguments):
                    next(rest)
    except (StopIteration, ValueError, KeyError):
        return []
    return paths


def _count(words: Iterator[str], most: int = 1000) -> int:
    word = next(words)
    if not _NUMBER.fullmatch(word) or int(word) > most:
        raise ValueError(word)
    return int(word)


def _skip(words: Iterator[str]) -> None:
    for _ in range(_count(words)):
        next(words)
