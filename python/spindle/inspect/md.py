"""md arrays (md(4), Documentation/admin-guide/md.rst); /proc/mdstat and mdadm fill gaps of sysfs."""

from __future__ import annotations

import re

from .model import Md, MdMember
from .reading import Reading, value, whole_number
from .tree import Tool, Tree

_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
_PARITY_LAYOUTS = {
    # md.h and md_u.h: ALGORITHM_*, as mdadm prints them
    0: "left-asymmetric",
    1: "right-asymmetric",
    2: "left-symmetric",
    3: "right-symmetric",
    4: "parity-first",
    5: "parity-last",
    8: "ddf-zero-restart",
    9: "ddf-N-restart",
    10: "ddf-N-continue",
    16: "left-asymmetric-6",
    17: "right-asymmetric-6",
    18: "left-symmetric-6",
    19: "right-symmetric-6",
    20: "parity-first-6",
}


def md_of(name: str, folder: str, tree: Tree) -> Md:
    """The array behind a device."""
    md = Md()
    read = Reading(tree, md.unknown)
    place = f"{folder}/md"
    _shape(md, read, place)
    _state(md, read, place)
    md.members = _members(tree, place)
    detail = _detail(read, name)
    _fill_from_mdadm(md, detail)
    _fill_from_mdstat(md, name, read)
    _derive(md)
    return md


def _shape(md: Md, read: Reading, place: str) -> None:
    md.level = read.text("level", f"{place}/level")
    md.raid_disks = read.number("raid_disks", f"{place}/raid_disks")
    md.metadata = read.text("metadata", f"{place}/metadata_version")
    md.uuid = value(read.tree, f"{place}/uuid")
    component = read.number("component_bytes", f"{place}/component_size")
    md.component_bytes = None if component is None else component * 1024  # kept in KiB
    if md.level not in ("raid1", "linear"):
        md.chunk_bytes = read.number("chunk_bytes", f"{place}/chunk_size")
    if md.level in ("raid10", "raid0", *_PARITY):
        md.layout_number = read.number("layout", f"{place}/layout")
        if md.layout_number is not None:
            md.layout = layout_name(md.level, md.layout_number)
            if md.layout is None and md.level != "raid0":
                read.lack("layout", f"{place}/layout: {md.layout_number} is no layout of {md.level}")
    if md.level in _PARITY:
        md.stripe_cache_size = read.number("stripe_cache_size", f"{place}/stripe_cache_size")
        md.group_thread_count = read.number("group_thread_count", f"{place}/group_thread_cnt")


def layout_name(level: str | None, number: int) -> str | None:
    """md's number in mdadm's words: raid10 258 -> near=2, 513 -> far=2; raid5 2 -> left-symmetric."""
    if level in _PARITY:
        return _PARITY_LAYOUTS.get(number)
    if level != "raid10" or number < 0:
        return None
    # raid10.c: low byte near copies, next byte far copies, bit 16 offset, bits 17 and 18 how far sets are made
    near, far, offset = number & 0xFF, number >> 8 & 0xFF, bool(number & 1 << 16)
    if near < 1 or far < 1 or number >> 19:
        return None
    words = [f"near={near}"] if near > 1 or far == 1 else []
    if far > 1:
        words.append(f"{'offset' if offset else 'far'}={far}")
    return ", ".join(words)


def _state(md: Md, read: Reading, place: str) -> None:
    md.array_state = read.text("array_state", f"{place}/array_state")
    if md.level in ("raid0", "linear"):  # without redundancy, resync or journal
        return
    md.degraded = read.number("degraded", f"{place}/degraded")
    md.sync_action = read.text("sync_action", f"{place}/sync_action")
    done = read.text("sync_completed", f"{place}/sync_completed")
    if done is not None and (found := re.fullmatch(r"([0-9]{1,18}) / ([0-9]{1,18})", done)):
        md.sync_done_sectors, md.sync_total_sectors = int(found[1]), int(found[2])
    speed = read.text("sync_speed_kb", f"{place}/sync_speed")
    if speed is not None and speed.isascii() and speed.isdigit():
        md.sync_speed_kb = whole_number(speed[:18])
    md.sync_speed_min_kb = _limit(read, "sync_speed_min_kb", f"{place}/sync_speed_min")
    md.sync_speed_max_kb = _limit(read, "sync_speed_max_kb", f"{place}/sync_speed_max")
    md.mismatches = read.number("mismatches", f"{place}/mismatch_cnt")
    md.consistency_policy = read.text("consistency_policy", f"{place}/consistency_policy")
    location = read.text("bitmap", f"{place}/bitmap/location")
    if location is not None:
        # '+8' is the position near the superblock: internal
        md.bitmap = "internal" if re.fullmatch(r"[+-][0-9]+", location) else location
        if md.bitmap != "none":
            md.bitmap_chunk_bytes = read.number("bitmap_chunk_bytes", f"{place}/bitmap/chunksize")


def _limit(read: Reading, field: str, path: str) -> int | None:
    """Parse '200000 (system)' or '1000 (local)'."""
    text = read.text(field, path)
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,18})( \((system|local)\))?", text)
    if found is None:
        read.lack(field, f"{path}: {text[:40]!r} is not a speed")
    return int(found[1]) if found else None


def _members(tree: Tree, place: str) -> list[MdMember]:
    found = []
    for name in tree.names(place):
        if not name.startswith("dev-"):
            continue
        member = MdMember(device=name.removeprefix("dev-"))
        read = Reading(tree, member.unknown)
        inside = f"{place}/{name}"
        state = read.text("state", f"{inside}/state")
        member.state = [] if state is None else [word.strip() for word in state.split(",") if word.strip()]
        slot = read.text("slot", f"{inside}/slot")
        if slot is not None and slot not in ("none", "journal"):
            member.slot = read.number("slot", f"{inside}/slot")
        member.errors = read.number("errors", f"{inside}/errors")
        member.data_offset_sectors = read.number("data_offset_sectors", f"{inside}/offset")
        size = read.number("size_bytes", f"{inside}/size")
        member.size_bytes = None if size is None else size * 1024  # kept in KiB
        member.bad_blocks = _ranges(read.table(f"{inside}/bad_blocks"))
        found.append(member)
    return sorted(found, key=lambda member: (member.slot is None, member.slot or 0, member.device))


def _ranges(text: str | None) -> int | None:
    """Count lines of a first sector and a length (badblocks_show in block/badblocks.c)."""
    lines = [] if text is None else text.strip().splitlines()
    if text is None or not all(re.fullmatch(r"[0-9]{1,18} [0-9]{1,9}", line) for line in lines):
        return None
    return len(lines)


def _detail(read: Reading, name: str) -> dict[str, str]:
    """Values of `mdadm --detail`, by their heading."""
    text = read.output("name", Tool("mdadm-detail", name, ("mdadm", "--detail", f"/dev/{name}")))
    return dict(re.findall(r"^\s*([A-Z][A-Za-z /]*?) : (.+)$", text or "", re.M))


def _fill_from_mdadm(md: Md, detail: dict[str, str]) -> None:
    if name := detail.get("Name"):
        md.name = name.split("  (")[0].strip()
    md.uuid = detail.get("UUID", md.uuid)
    md.level = md.level or detail.get("Raid Level")
    md.layout = md.layout or detail.get("Layout")
    if md.consistency_policy is None:
        md.consistency_policy = detail.get("Consistency Policy")
    if md.chunk_bytes is None and (found := re.fullmatch(r"([0-9]{1,9})K", detail.get("Chunk Size", ""))):
        md.chunk_bytes = int(found[1]) * 1024
    for field in ("name", "level", "layout", "consistency_policy", "chunk_bytes"):
        if getattr(md, field) is not None:
            md.unknown.pop(field, None)
    if detail and md.name is None:
        md.unknown["name"] = "the array was made without a name"


def _fill_from_mdstat(md: Md, name: str, read: Reading) -> None:
    """Fill values from mdstat, the only source of the bitmap's chunk in kernels before 2.6.33."""
    text = read.table("proc/mdstat") or ""
    found = re.search(rf"^{re.escape(name)} : .*\n(?:[ \t].*\n)*", text, re.M)
    entry = found[0] if found else ""
    if md.level is None and (level := re.search(r" : active (?:\([^)]*\) )?(raid\d+|linear)\b", entry)):
        md.level = level[1]
        read.known("level")
    if md.chunk_bytes is None and (chunk := re.search(r"\b([0-9]{1,9})[kK] chunks?\b", entry)):
        md.chunk_bytes = int(chunk[1]) * 1024
        read.known("chunk_bytes")
    if md.degraded is None and (count := re.search(r"\[([0-9]{1,4})/([0-9]{1,4})\]", entry)):
        md.degraded = max(int(count[1]) - int(count[2]), 0)
        read.known("degraded")
    if bitmap := re.search(r"bitmap: \d+/\d+ pages \[\d+KB\], ([0-9]{1,9})(B|KB)? chunk", entry):
        if md.bitmap_chunk_bytes is None:
            md.bitmap_chunk_bytes = int(bitmap[1]) * (1 if bitmap[2] == "B" else 1024)
        md.bitmap = md.bitmap or "internal"
        read.known("bitmap", "bitmap_chunk_bytes")


def _derive(md: Md) -> None:
    md.data_disks = data_disks(md.level, md.raid_disks, md.layout_number)
    if md.data_disks and md.chunk_bytes:
        md.stripe_bytes = md.chunk_bytes * md.data_disks


def data_disks(level: str | None, disks: int | None, layout: int | None) -> int | None:
    """Disks' worth of data in one row of chunks.

    RAID10: near copies share a row, so disks / near; far copies are in other rows, so every disk counts, as in
    sequential reads. An odd number of disks has rows that do not repeat evenly: rounded down, as in mkfs.
    """
    if level is None or disks is None or disks < 1:
        return None
    if level in ("raid0", "linear"):
        return disks
    if level == "raid1":
        return 1
    if level in _PARITY:
        return disks - _PARITY[level] if disks > _PARITY[level] else None
    if level == "raid10" and layout is not None and layout & 0xFF:
        return max(disks // (layout & 0xFF), 1)
    return None
