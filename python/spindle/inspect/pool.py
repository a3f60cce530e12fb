"""ZFS pools, from `zpool status`, `zpool list` and `zdb -C`. Only read: no pool is imported or scanned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .model import Pool, PoolDevice
from .reading import Reading, whole_number
from .tree import Tool, Tree, plain

_ROLES = ("logs", "cache", "spares", "special", "dedup")
_ROW = re.compile(r"(\s+)(\S+)\s+([A-Z]+)(?:\s+([0-9.]+[KMGT]?)\s+([0-9.]+[KMGT]?)\s+([0-9.]+[KMGT]?))?(?:\s+.*)?")
_GROUP = re.compile(r"(mirror|raidz[123]?|draid[^/]*|replacing|spare|indirect)-\d+")


def pools_of(tree: Tree, named: Callable[[str], str | None], unknown: dict[str, str]) -> list[Pool]:
    """All imported pools. `named`: returns the device of a path under /dev."""
    read = Reading(tree, unknown)
    text = read.output("pools", Tool("zpool-status", "all", ("zpool", "status", "-P", "-L")))
    pools = [_pool(block, named) for block in re.split(r"^(?=\s*pool: )", text or "", flags=re.M) if "pool: " in block]
    sizes = _sizes(read)
    for pool in pools:
        own = Reading(tree, pool.unknown)
        pool.size_bytes, pool.free_bytes, pool.fragmentation_percent = sizes.get(pool.name, (None, None, None))
        configuration = own.output("ashifts", Tool("zdb", pool.name, ("zdb", "-C", pool.name)))
        pool.ashifts = [int(found) for found in re.findall(r"^\s+ashift: ([0-9]{1,2})$", configuration or "", re.M)]
        if configuration is not None and not pool.ashifts:
            own.lack("ashifts", f"zdb -C {pool.name}: names no ashift")
    return pools


def _sizes(read: Reading) -> dict[str, tuple[int | None, int | None, int | None]]:
    command = ("zpool", "list", "-Hp", "-o", "name,size,free,fragmentation")
    text = read.output("pool_sizes", Tool("zpool-list", "all", command))
    read.known("pool_sizes")
    found = {}
    for line in (text or "").splitlines():
        words = line.split("\t")
        if len(words) == 4:
            found[words[0]] = (_whole(words[1]), _whole(words[2]), _whole(words[3].rstrip("%")))
    return found


def _whole(text: str) -> int | None:
    try:
        return whole_number(text)
    except ValueError:
        return None


def _pool(block: str, named: Callable[[str], str | None]) -> Pool:
    name = plain(_heading(block, "pool") or "?")
    pool = Pool(id=f"zpool:{name}", name=name)
    pool.state = _heading(block, "state")
    pool.status, pool.scan = _heading(block, "status"), _heading(block, "scan")
    errors = _heading(block, "errors")
    pool.errors = None if errors in (None, "No known data errors") else errors
    if pool.state is None:
        pool.unknown["state"] = "zpool status does not report it"
    if pool.scan is not None and (scan := re.match(r"(resilver|scrub)\b.* in progress", pool.scan)):
        pool.scanning = scan[1]
    pool.members = list(_members(block, named))
    pool.below = list(dict.fromkeys(member.device for member in pool.members if member.device is not None))
    if not pool.members:
        pool.unknown["members"] = "zpool status lists none"
    return pool


def _heading(block: str, head: str) -> str | None:
    """Value of 'status: One or more ...' with its continued lines."""
    found = re.search(rf"^ *{head}: +(.*(?:\n(?:\t|        )\s*\S.*)*)", block, re.M)
    return plain(found[1]) or None if found else None


def _members(block: str, named: Callable[[str], str | None]) -> Iterator[PoolDevice]:
    _, _, table = block.partition("config:")
    table, _, _ = table.partition("\nerrors:")
    role, group = "data", None
    for line in table.splitlines():
        if line.strip() in _ROLES:
            role, group = line.strip(), None
            continue
        row = _ROW.fullmatch(line.replace("\t", " " * 8, 1))
        if row is None or row[2] == "NAME":
            continue
        depth = len(row[1]) - 8
        if _GROUP.fullmatch(row[2]):
            group = row[2] if depth <= 2 else group
        elif row[2].startswith("/") or depth > 0:
            group = group if depth > 2 else None
            counts = [_count(text) for text in row.groups()[3:]]
            errors = sum(counts) if all(row.groups()[3:]) else None
            device = named(row[2])
            yield PoolDevice(path=plain(row[2]), device=device, state=row[3], role=role, group=group, errors=errors)


def _count(text: str | None) -> int:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([KMGT]?)", text or "")
    return round(float(found[1]) * 1000 ** " KMGT".index(found[2] or " ")) if found else 0
