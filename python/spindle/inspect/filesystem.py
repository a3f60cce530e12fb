"""Mounted file systems and their geometry: from mountinfo, sysfs, and xfs_info, dumpe2fs and findmnt."""

from __future__ import annotations

import posixpath
import re

from spindle.host.devices import SECTOR
from spindle.host.mounts import Mount

from .model import FileSystem
from .reading import Reading, dig_int, dig_list, value, whole_number
from .tree import Tool, Tree

_BARRIERS_BY_DEFAULT = ("ext4", "xfs", "btrfs", "f2fs")


def file_system_of(mounts: list[Mount], devices: list[str], tree: Tree) -> FileSystem:
    """`mounts`: all of one file system, the main one first; `devices`: names of its devices."""
    mount = mounts[0]
    found = FileSystem(
        id=f"fs:{mount.point}",
        mount_point=mount.point,
        also_mounted=[other.point for other in mounts[1:]],
        type=mount.fs_type,
        source=mount.source,
        options=mount.options.split(","),
        super_options=mount.super_options.split(","),
        below=list(devices),
    )
    read = Reading(tree, found.unknown)
    found.atime = atime(found.options)
    found.barriers = _barriers(found)
    _sizes(found, read)
    if found.type in ("ext2", "ext3", "ext4"):
        _ext(found, read, devices)
    elif found.type == "xfs":
        _xfs(found, read)
    elif found.type == "btrfs":
        _btrfs(found, read, devices)
    else:
        read.lack("stripe_unit_bytes", f"the geometry of {found.type} is not readable")
    return found


def atime(options: list[str]) -> str:
    """mountinfo names every mode but strictatime, which is the absence of the others (fs/proc_namespace.c)."""
    for name in ("noatime", "relatime"):
        if name in options:
            return name
    return "strictatime"


def _barriers(found: FileSystem) -> bool | None:
    options = found.super_options
    if "nobarrier" in options or "barrier=0" in options:
        return False
    if found.type in _BARRIERS_BY_DEFAULT or "barrier" in options or "barrier=1" in options:
        return True
    found.unknown["barriers"] = f"the mount has no option, and the default of {found.type} has changed between kernels"
    return None


def _sizes(found: FileSystem, read: Reading) -> None:
    command = ("findmnt", "--json", "--bytes", "--output", "TARGET,SIZE,AVAIL", "--mountpoint", found.mount_point)
    data = read.json("size_bytes", Tool("findmnt", found.mount_point, command))
    row = next(iter(dig_list(data, "filesystems")), None)
    found.size_bytes, found.available_bytes = _whole(row, "size"), _whole(row, "avail")
    if found.size_bytes is None:
        read.lack("size_bytes", "findmnt does not report it")


def _whole(row: object, key: str) -> int | None:
    """Parse a number, which findmnt prints as text up to util-linux 2.32."""
    if (reported := dig_int(row, key)) is not None:
        return reported
    text = row.get(key) if isinstance(row, dict) else None
    try:
        return whole_number(text) if isinstance(text, str) else None
    except ValueError:
        return None


# --- ext4 ----------------------------------------------------------------------------------------------------------


def _ext(found: FileSystem, read: Reading, devices: list[str]) -> None:
    if devices:
        found.errors = read.number("errors", f"sys/fs/ext4/{devices[0]}/errors_count")
    for option in found.super_options:
        name, _, text = option.partition("=")
        if name == "data":
            found.journal = text
        elif name == "stripe" and re.fullmatch(r"[0-9]{1,9}", text):
            found.mount_stripe_blocks = int(text)
    headings = _superblock(read, devices)
    if headings is None:
        why = found.unknown.get("block_bytes", "no device to ask")
        read.lack("stripe_unit_bytes", why)
        read.lack("stripe_width_bytes", why)
        if found.journal is None and found.type != "ext2":
            read.lack("journal", why)
        return
    found.geometry_source = "the superblock"
    found.block_bytes = _heading(read, headings, "block_bytes", "Block size")
    # dumpe2fs leaves out values that are not set
    found.stride_blocks = _heading(read, headings, "stride_blocks", "RAID stride", "0")
    found.stripe_width_blocks = _heading(read, headings, "stripe_width_blocks", "RAID stripe width", "0")
    found.features = headings.get("Filesystem features", "").split()
    if found.journal is None and found.type in ("ext3", "ext4") and "has_journal" in found.features:
        found.journal = _usual_journal(headings.get("Default mount options", ""))
    found.uuid = headings.get("Filesystem UUID")
    label = headings.get("Filesystem volume name", "<none>")
    found.label = None if label == "<none>" else label
    found.log_device = headings.get("Journal device")
    if found.block_bytes is not None:
        if found.stride_blocks is not None:
            found.stripe_unit_bytes = found.stride_blocks * found.block_bytes
        if found.stripe_width_blocks is not None:
            found.stripe_width_bytes = found.stripe_width_blocks * found.block_bytes
    for field in ("stripe_unit_bytes", "stripe_width_bytes"):
        if getattr(found, field) is None:
            read.lack(field, "the superblock's output cannot be parsed")


def _usual_journal(options: str) -> str:
    """Data mode of the superblock: the mount names a mode only if it differs (fs/ext4/super.c, _ext4_show_options)."""
    for word, mode in (("journal_data_writeback", "writeback"), ("journal_data_ordered", "ordered")):
        if word in options.split():
            return mode
    return "journal" if "journal_data" in options.split() else "ordered"


def _superblock(read: Reading, devices: list[str]) -> dict[str, str] | None:
    if not devices:
        return None
    for name, command in (("dumpe2fs", ("dumpe2fs", "-h")), ("tune2fs", ("tune2fs", "-l"))):
        text = read.output("block_bytes", Tool(name, devices[0], (*command, f"/dev/{devices[0]}")))
        headings = dict(re.findall(r"^([A-Z][\w #]*?):[ \t]+(\S.*)$", text or "", re.M))
        if "Block size" in headings:
            read.known("block_bytes")
            return {head: words[:1000].strip() for head, words in headings.items()}
        if text is not None:
            read.lack("block_bytes", f"{name} {devices[0]}: prints no superblock")
    return None


def _heading(read: Reading, headings: dict[str, str], field: str, head: str, absent: str | None = None) -> int | None:
    text = headings.get(head, absent)
    try:
        count = whole_number(text) if text is not None else None
    except ValueError:
        count = None
    if count is None or not 0 <= count < 1 << 32:
        read.lack(field, f"the superblock's {head} is {text!r}")
        return None
    return count


# --- XFS -----------------------------------------------------------------------------------------------------------


def _xfs(found: FileSystem, read: Reading) -> None:
    text = read.output("block_bytes", Tool("xfs_info", found.mount_point, ("xfs_info", found.mount_point)))
    if text is not None and _xfs_info(found, text):
        found.geometry_source = "xfs_info"
        read.known("block_bytes")
    else:
        if text is not None:
            read.lack("block_bytes", "the output of xfs_info cannot be parsed")
        _xfs_mount(found, read)
    for option in found.super_options:
        name, _, text = option.partition("=")
        if name == "logdev":
            found.log_device = text


def _xfs_info(found: FileSystem, text: str) -> bool:
    sections: dict[str, dict[str, str]] = {}
    section = ""
    for line in text.splitlines():
        head, equals, rest = line.partition("=")
        if not equals:
            continue
        section = head.strip() or section
        sections.setdefault(section, {}).update(dict(re.findall(r"\b([a-z0-9-]+)=([0-9]{1,18})\b", rest)))
    data, meta, log = (sections.get(name, {}) for name in ("data", "meta-data", "log"))
    if not {"bsize", "sunit", "swidth"} <= data.keys():
        return False
    block = int(data["bsize"])
    found.block_bytes = block
    found.sunit_blocks, found.swidth_blocks = int(data["sunit"]), int(data["swidth"])
    found.stripe_unit_bytes, found.stripe_width_bytes = found.sunit_blocks * block, found.swidth_blocks * block
    found.allocation_groups = _optional(meta, "agcount")
    found.allocation_group_blocks = _optional(meta, "agsize")
    found.sector_bytes = _optional(meta, "sectsz")
    log_unit = _optional(log, "sunit")
    found.log_stripe_unit_bytes = None if log_unit is None else log_unit * int(log.get("bsize", block))
    found.features = sorted(name for name in ("crc", "finobt", "reflink", "rmapbt", "bigtime") if meta.get(name) == "1")
    return True


def _optional(values: dict[str, str], name: str) -> int | None:
    return int(values[name]) if name in values else None


def _xfs_mount(found: FileSystem, read: Reading) -> None:
    """Read sunit and swidth, which the mount shows in sectors of 512 bytes, and only if they are not 0."""
    reported = dict(
        option.split("=", 1) for option in found.super_options if re.fullmatch(r"s(unit|width)=[0-9]{1,9}", option)
    )
    found.geometry_source = "the mount options"
    found.stripe_unit_bytes = int(reported.get("sunit", 0)) * SECTOR
    found.stripe_width_bytes = int(reported.get("swidth", 0)) * SECTOR
    for field in ("sunit_blocks", "swidth_blocks", "allocation_groups", "sector_bytes"):
        read.lack(field, found.unknown.get("block_bytes", "xfs_info does not report it"))


# --- btrfs ---------------------------------------------------------------------------------------------------------


def _btrfs(found: FileSystem, read: Reading, devices: list[str]) -> None:
    place = btrfs_folder(devices, read.tree)
    if place is None:
        read.lack("profiles", "sys/fs/btrfs: no file system with its device")
        return
    found.uuid = posixpath.basename(place)
    found.label = read.text("label", f"{place}/label")
    read.known("label")  # most have none
    found.block_bytes = read.number("block_bytes", f"{place}/sectorsize")
    found.features = read.tree.names(f"{place}/features")
    found.exclusive_operation = value(read.tree, f"{place}/exclusive_operation")  # since Linux 5.10
    for kind in ("data", "metadata", "system"):
        profiles = [
            name
            for name in read.tree.names(f"{place}/allocation/{kind}")
            if read.tree.resolve(f"{place}/allocation/{kind}/{name}/used_bytes") is not None
        ]
        if profiles:
            found.profiles[kind] = ", ".join(profiles)
    if not found.profiles:
        read.lack("profiles", f"{place}/allocation: not there")
    counts = [
        _btrfs_errors(read.table(f"{place}/devinfo/{name}/error_stats")) for name in read.tree.names(f"{place}/devinfo")
    ]
    reported = [count for count in counts if count is not None]
    found.errors = sum(reported) if reported else None
    if not reported:
        read.lack("errors", f"{place}/devinfo: no error_stats")


def _btrfs_errors(text: str | None) -> int | None:
    counts = re.findall(r"^\w+_errs ([0-9]{1,18})$", text or "", re.M)
    return sum(map(int, counts)) if counts else None


def btrfs_folder(devices: list[str], tree: Tree) -> str | None:
    """The sysfs folder of the btrfs with one of these devices as a member."""
    for uuid in tree.names("sys/fs/btrfs"):
        if set(devices) & set(btrfs_devices(uuid, tree)):
            return f"sys/fs/btrfs/{uuid}"
    return None


def btrfs_devices(uuid: str, tree: Tree) -> list[str]:
    """Names of its members."""
    return tree.names(f"sys/fs/btrfs/{uuid}/devices")
