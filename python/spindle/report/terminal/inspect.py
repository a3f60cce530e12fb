"""The block stack as a tree, with the important settings of each part."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base.units import kib, si_size
from spindle.inspect.model import (
    Controller,
    Device,
    Drive,
    FileSystem,
    Inventory,
    Irq,
    Md,
    Pool,
    Queue,
    RaidDrive,
    Smart,
)
from spindle.report.terminal.style import Style

Fact = tuple[str, str]
"""A heading and its text."""
UNKNOWN = "unknown"
_HEAD = 9
"""Width of the longest heading, so that all texts begin in one column."""


def inventory_page(inventory: Inventory, style: Style) -> list[str]:
    """Return the page for a terminal or a pipe."""
    tree = _Tree(inventory, style)
    lines: list[str] = []
    for at, top in enumerate(inventory.tops):
        lines += [""] if at else []
        lines += tree.draw(top)
    if (count := inventory.unknowns()) > 0:
        lines += ["", *style.wrap(f"{count} values are unknown; `json=True` gives the reasons, under `unknown`.")]
    return lines


class _Tree:
    """A tree that draws each part once; repeated parts are only named."""

    def __init__(self, inventory: Inventory, style: Style) -> None:
        self._inventory = inventory
        self._style = style
        self._drawn: set[str] = set()

    def draw(self, identity: str, first: str = "", rest: str = "") -> list[str]:
        title, facts, below = self._part(identity)
        if identity in self._drawn:
            return self._style.wrap(f"{title[0]}  (above)", first, rest)
        self._drawn.add(identity)
        lines = self._style.wrap("  ".join(word for word in title if word), first, rest + "  ")
        # The line on the left continues while there is more below.
        bar = "│ " if below else "  "
        for head, words in facts:
            indent = f"{rest}{bar}{' ' * (_HEAD + 1)}"
            lines += self._style.wrap(words, f"{rest}{bar}{head.ljust(_HEAD)} ", indent)
        for at, under in enumerate(below):
            last = at == len(below) - 1
            lines += self.draw(under, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
        return lines

    def _part(self, identity: str) -> tuple[list[str], list[Fact], list[str]]:
        if (found := self._inventory.file_system(identity)) is not None:
            return _file_system_title(found), list(_file_system(found)), found.below
        if (pool := self._inventory.pool(identity)) is not None:
            return _pool_title(pool), list(_pool(pool)), pool.below
        if (device := self._inventory.device(identity)) is not None:
            below = device.below or _controllers(device, self._inventory)
            return _device_title(device), list(_device(device)), below
        if (controller := self._inventory.controller(identity)) is not None:
            return _controller_title(controller), list(_controller(controller)), []
        return [identity], [], []


def _controllers(device: Device, inventory: Inventory) -> list[str]:
    if device.drive is None:
        return []
    ways = [device.drive.controller, *(path.pci for path in device.drive.paths)]
    found = (way for way in dict.fromkeys(ways) if way is not None)
    return [way for way in found if inventory.controller(way) is not None]


# --- file systems --------------------------------------------------------------------------------------------------


def _file_system_title(found: FileSystem) -> list[str]:
    space = "" if found.size_bytes is None else si_size(found.size_bytes)
    free = "" if found.available_bytes is None else f"{si_size(found.available_bytes)} free"
    return [_safe(found.mount_point), _safe(found.type), ", ".join(part for part in (space, free) if part)]


def _file_system(found: FileSystem) -> Iterator[Fact]:
    yield "mount", _safe(", ".join(dict.fromkeys([*found.options, *found.super_options])))
    if found.also_mounted:
        yield "also on", _safe(", ".join(found.also_mounted))
    if found.profiles:
        yield "profiles", _safe(", ".join(f"{kind} {profile}" for kind, profile in found.profiles.items()))
    elif "stripe_unit_bytes" in found.unknown:
        yield "geometry", f"{UNKNOWN} ({_safe(found.unknown['stripe_unit_bytes'])})"
    elif found.stripe_unit_bytes is not None and found.stripe_width_bytes is not None:
        yield "geometry", _geometry(found)
    if found.log_device:
        yield "log", f"on {_safe(found.log_device)}"
    if found.errors:
        yield "errors", f"{found.errors} counted"


def _geometry(found: FileSystem) -> str:
    unit, width = found.stripe_unit_bytes or 0, found.stripe_width_bytes or 0
    if found.type == "xfs":
        words = f"su {kib(unit)}, sw {width / unit:g} (swidth {kib(width)})" if unit else "no su, no sw"
        if found.allocation_groups is not None:
            words += f", {found.allocation_groups} allocation groups"
        if found.log_stripe_unit_bytes:
            words += f", log su {kib(found.log_stripe_unit_bytes)}"
    else:
        words = f"stride {kib(unit)}, stripe-width {kib(width)}" if unit or width else "no stride, no stripe-width"
        if found.mount_stripe_blocks is not None:
            words += f", mounted with stripe={found.mount_stripe_blocks} blocks"
    if found.block_bytes is not None:
        words += f", block {kib(found.block_bytes)}"
    return words


def _pool_title(pool: Pool) -> list[str]:
    space = "" if pool.size_bytes is None else si_size(pool.size_bytes)
    free = "" if pool.free_bytes is None else f"{si_size(pool.free_bytes)} free"
    return [f"{_safe(pool.name)} (ZFS pool)", _safe(pool.state or UNKNOWN), ", ".join(w for w in (space, free) if w)]


def _pool(pool: Pool) -> Iterator[Fact]:
    groups: dict[str, list[str]] = {}
    for member in pool.members:
        words = "" if member.state in ("ONLINE", "AVAIL") else f" {member.state}"
        errors = f" {member.errors} errors" if member.errors else ""
        name = " ".join(word for word in (member.role * (member.role != "data"), member.group) if word) or "single"
        groups.setdefault(name, []).append(_safe(f"{member.device or member.path}{words}{errors}"))
    for name, members in groups.items():
        yield "vdev", f"{_safe(name)}: {', '.join(members)}"
    shifts = ", ".join(f"{shift} ({kib(1 << shift)})" for shift in dict.fromkeys(pool.ashifts))
    yield "ashift", shifts or f"{UNKNOWN} ({_safe(pool.unknown.get('ashifts', ''))})"
    if pool.scan is not None:
        yield "scan", _safe(pool.scan)
    if pool.errors is not None:
        yield "errors", _safe(pool.errors)


# --- devices -------------------------------------------------------------------------------------------------------


def _device_title(device: Device) -> list[str]:
    name = _safe(device.id) + (f" ({_safe(device.label)})" if device.label and device.label != device.id else "")
    space = UNKNOWN + " size" if device.size_bytes is None else si_size(device.size_bytes)
    words = [name, _kind(device), space]
    if device.read_only:
        words.append("read-only")
    return words


def _kind(device: Device) -> str:
    if device.md is not None:
        md = device.md
        disks = f"of {md.raid_disks}" if md.raid_disks is not None else ""
        return " ".join(part for part in (_safe((md.level or "md").upper()), _safe(md.layout or ""), disks) if part)
    if device.dm is not None:
        return {"LVM": "logical volume", "mpath": "multipath", "CRYPT": "crypt"}.get(device.dm.owner or "", "dm")
    if device.drive is not None:
        drive = device.drive
        named = " ".join(part for part in (drive.vendor, drive.model) if part)
        return _safe(named) or _safe(drive.transport or "disk")
    return device.kind


def _device(device: Device) -> Iterator[Fact]:
    if device.partition is not None:
        part = device.partition
        start = f"sector {part.start_sector}" if part.start_sector is not None else f"{UNKNOWN} sector"
        aligned = f", a multiple of {kib(part.aligned_to_bytes)}" if part.aligned_to_bytes else ""
        yield "start", f"{start}{aligned}{f', {_safe(part.table)}' if part.table else ''}"
    if device.loop is not None:
        loop = device.loop
        how = {True: ", direct I/O", False: ", buffered"}.get(loop.direct_io) if loop.direct_io is not None else ""
        offset = f", from {kib(loop.offset_bytes)}" if loop.offset_bytes else ""
        yield "file", f"{_safe(loop.file or '')}{' (deleted)' if loop.deleted else ''}{offset}{how}"
    if device.md is not None:
        yield from _md(device.md)
    if device.dm is not None:
        yield from _dm(device)
    if device.bcache is not None:
        cache = device.bcache
        words = f"{cache.cache_mode or UNKNOWN}, state {cache.state or UNKNOWN}, {cache.dirty or UNKNOWN} dirty"
        yield "cache", _safe(words)
    if device.drive is not None:
        yield from _drive(device.drive, device.queue)
    if device.queue is not None:
        yield from _queue(device.queue, device.alignment_offset_bytes)
    elif device.alignment_offset_bytes:
        yield "sectors", f"alignment offset {_offset(device.alignment_offset_bytes)}"


def _queue(queue: Queue, offset: int | None) -> Iterator[Fact]:
    words = [
        f"{_bytes(queue.logical_block_size)} logical, {_bytes(queue.physical_block_size)} physical",
        f"alignment offset {_offset(offset)}",
    ]
    if queue.minimum_io_size and queue.optimal_io_size:
        words.append(f"best I/O {kib(queue.minimum_io_size)} to {kib(queue.optimal_io_size)}")
    if queue.zoned not in (None, "none"):
        words.append(f"zoned {_safe(queue.zoned or '')}, {_number(queue.nr_zones)} zones")
    yield "sectors", ", ".join(words)
    scheduler = _safe(queue.scheduler or UNKNOWN)
    if queue.iosched:
        scheduler += f" ({_safe(', '.join(f'{name} {text}' for name, text in queue.iosched.items()))})"
    yield "scheduler", scheduler
    words = [
        f"nr_requests {_number(queue.nr_requests)}",
        f"read-ahead {_kilo(queue.read_ahead_kb)}",
        f"max_sectors {_kilo(queue.max_sectors_kb)}",
        f"write cache {_safe(queue.write_cache or UNKNOWN)}",
        {1: "rotational", 0: "not rotational"}.get(queue.rotational or 0, "") if queue.rotational is not None else "",
    ]
    if queue.hardware_queues is not None:
        words.append(f"{queue.hardware_queues} hardware queue{'s' if queue.hardware_queues != 1 else ''}")
    yield "queue", ", ".join(word for word in words if word)


def _md(md: Md) -> Iterator[Fact]:
    if md.chunk_bytes is not None:
        width = f", {md.data_disks} wide (stripe {kib(md.stripe_bytes)})" if md.stripe_bytes else ""
        yield "chunk", f"{kib(md.chunk_bytes)}{width}"
    words = [_safe(md.array_state or f"state {UNKNOWN}")]
    if md.degraded:
        words.append(f"DEGRADED: {md.degraded} missing")
    if md.sync_action is not None:
        words.append(_safe(md.sync_action) + _progress(md))
    if md.mismatches:
        words.append(f"{md.mismatches} sectors mismatch")
    yield "state", ", ".join(words)
    words = []
    if md.stripe_cache_size is not None:
        words.append(f"stripe cache {md.stripe_cache_size} pages")
    if md.bitmap is not None:
        chunk = f", chunk {kib(md.bitmap_chunk_bytes)}" if md.bitmap_chunk_bytes else ""
        words.append(f"bitmap {_safe(md.bitmap)}{chunk}")
    if md.consistency_policy is not None:
        words.append(f"consistency by {_safe(md.consistency_policy)}")
    if words:
        yield "settings", ", ".join(words)
    bad = [member for member in md.members if "faulty" in member.state or member.errors or member.bad_blocks]
    if bad:
        each = (
            f"{_safe(member.device)} {_safe(' '.join(member.state))}, {member.errors or 0} errors, "
            f"{member.bad_blocks or 0} bad ranges"
            for member in bad
        )
        yield "members", "; ".join(each)


def _progress(md: Md) -> str:
    if not md.sync_total_sectors or md.sync_done_sectors is None:
        return ""
    speed = f" at {md.sync_speed_kb / 1000:.1f} MB/s" if md.sync_speed_kb is not None else ""
    return f" {100 * md.sync_done_sectors / md.sync_total_sectors:.1f} %{speed}"


def _dm(device: Device) -> Iterator[Fact]:
    dm = device.dm
    if dm is None:
        return
    if dm.volume_group is not None:
        yield "volume", f"{_safe(dm.logical_volume or '')} of group {_safe(dm.volume_group)}"
    shown = [
        f"{_safe(segment.target)}"
        + (f" over {segment.stripes}" if segment.stripes else "")
        + (f", chunk {kib(segment.chunk_bytes)}" if segment.chunk_bytes else "")
        + "".join(
            f" from sector {area.offset_sectors} of {_safe(area.device)}"
            for area in segment.areas[:1]
            if area.offset_sectors is not None
        )
        for segment in dm.segments[:4]
    ]
    if len(dm.segments) > len(shown):
        shown.append(f"and {len(dm.segments) - len(shown)} more")
    yield "table", "; ".join(shown) or f"{UNKNOWN} ({_safe(dm.unknown.get('segments', ''))})"
    if dm.paths:
        each = (
            f"{_safe(path.device)} {'active' if path.active else 'FAILED'} (group {path.group} {path.group_state})"
            for path in dm.paths
        )
        yield "paths", ", ".join(each)


# --- drives --------------------------------------------------------------------------------------------------------


def _drive(drive: Drive, queue: Queue | None) -> Iterator[Fact]:
    yield "drive", ", ".join(word for word in _drive_words(drive, queue) if word)
    if drive.serial or drive.firmware:
        serial = f"serial {_safe(drive.serial)}" if drive.serial else ""
        firmware = f"firmware {_safe(drive.firmware)}" if drive.firmware else ""
        yield "identity", ", ".join(word for word in (serial, firmware) if word)
    depth = ", ".join(word for word in _depth_words(drive) if word)
    if depth:
        yield "commands", depth
    for path in drive.paths:
        words = [path.name, path.controller, path.transport, path.state, path.ana_state]
        yield "path", _safe(", ".join(word for word in words if word))
    if drive.smart is not None:
        yield "health", health(drive.smart)
    elif "smart" in drive.unknown:
        yield "health", f"{UNKNOWN} ({_safe(drive.unknown['smart'])})"
    if drive.io_errors or drive.io_timeouts:
        timeouts = f", {drive.io_timeouts} timeouts" if drive.io_timeouts is not None else ""
        yield "errors", f"{_number(drive.io_errors)} counted{timeouts}"


def _drive_words(drive: Drive, queue: Queue | None) -> Iterator[str]:
    yield _safe(drive.transport or f"transport {UNKNOWN}")
    if drive.link_gbps is not None:
        fastest = f" of {drive.link_max_gbps:g}" if drive.link_max_gbps not in (None, drive.link_gbps) else ""
        yield f"{drive.link_gbps:g}{fastest} Gb/s"
    if drive.rotation_rpm:
        yield f"{drive.rotation_rpm} rpm"
    elif drive.rotation_rpm == 0:
        yield "does not rotate"
    elif queue is not None and queue.rotational == 1 and drive.transport not in ("raid", "virtio"):
        yield f"rotation rate {UNKNOWN}"
    if drive.port is not None:
        behind = f" behind {_safe(drive.expander)}" if drive.expander else ""
        slot = f" slot {drive.slot}" if drive.slot is not None else ""
        yield f"{_safe(drive.port)}{behind}{slot}"
    if drive.state not in (None, "running", "live"):
        yield f"state {_safe(drive.state or '')}"
    if drive.numa_node is not None and drive.numa_node >= 0:
        yield f"node {drive.numa_node}"


def _depth_words(drive: Drive) -> Iterator[str]:
    if drive.queue_depth is not None:
        yield f"queue depth {drive.queue_depth}"
    if drive.ncq_supported is not None:
        yield f"NCQ {drive.ncq_depth}" if drive.ncq_supported else "no NCQ"
    if drive.write_cache_enabled is not None:
        yield f"drive cache {'on' if drive.write_cache_enabled else 'off'}"
    elif drive.write_cache_type is not None:
        yield f"cache {_safe(drive.write_cache_type)}"
    if drive.multipath_policy is not None:
        yield f"policy {_safe(drive.multipath_policy)}"


def health(smart: Smart) -> str:
    """Return SMART in a line: the verdict, the temperature, and counters that are not zero."""
    words = [{True: "healthy", False: "FAILING", None: f"health {UNKNOWN}"}[smart.healthy]]
    if smart.temperature_celsius is not None:
        words.append(f"{smart.temperature_celsius} °C")
    if smart.power_on_hours is not None:
        words.append(f"{smart.power_on_hours} h")
    for count, name in (
        (smart.reallocated, "reallocated"),
        (smart.pending, "pending"),
        (smart.uncorrectable, "uncorrectable"),
        (smart.crc_errors, "cable errors"),
        (smart.grown_defects, "grown defects"),
        (smart.media_errors, "media errors"),
        (smart.critical_warning, "critical warning"),
        (smart.used_percent, "% used"),
    ):
        if count:
            words.append(f"{count} {name}")
    if smart.failing:
        words.append(f"below threshold: {_safe(', '.join(smart.failing))}")
    if smart.self_test_running:
        words.append("self-test running")
    return ", ".join(words)


# --- controllers ---------------------------------------------------------------------------------------------------


def _controller_title(controller: Controller) -> list[str]:
    return [controller.id, _safe(controller.driver or f"driver {UNKNOWN}"), _safe(controller.name or "")]


def _controller(controller: Controller) -> Iterator[Fact]:
    words = []
    if controller.link_speed is not None:
        words.append(f"PCIe {_safe(controller.link_speed.removesuffix(' PCIe'))} x{_number(controller.link_width)}")
        if (controller.link_max_speed, controller.link_max_width) != (controller.link_speed, controller.link_width):
            words.append(f"of {_safe(controller.link_max_speed or UNKNOWN)} x{_number(controller.link_max_width)}")
    if controller.firmware is not None:
        words.append(f"firmware {_safe(controller.firmware)}")
    if controller.can_queue is not None:
        words.append(f"queues {controller.can_queue}")
    if controller.numa_node is not None and controller.numa_node >= 0:
        words.append(f"node {controller.numa_node}")
    if words:
        yield "bus", ", ".join(words)
    yield "irqs", _irqs(controller)
    raid = controller.raid
    if raid is None:
        return
    for unit in raid.units:
        kept = {True: "write back", False: "write through", None: f"cache {UNKNOWN}"}[unit.write_back]
        traits = [unit.name, unit.level, unit.size, unit.state, kept]
        chunk = f", strip {kib(unit.chunk_bytes)}" if unit.chunk_bytes else ""
        yield "unit", _safe(", ".join(word for word in traits if word)) + chunk
    for drive in raid.drives:
        yield "behind", _raid_drive(drive)
    yield "battery", _safe(raid.battery) if raid.battery else f"{UNKNOWN} ({_why(raid.unknown)})"


def _why(unknown: dict[str, str]) -> str:
    return _safe(unknown.get("battery") or unknown.get("units") or "no source for it")


def _raid_drive(drive: RaidDrive) -> str:
    words = [drive.name, drive.model, drive.size, drive.interface, drive.medium, drive.state]
    smart = f", {health(drive.smart)}" if drive.smart is not None else ""
    return _safe(", ".join(word for word in words if word)) + smart


def _irqs(controller: Controller) -> str:
    if not controller.irqs:
        return UNKNOWN
    used: list[Irq] = [irq for irq in controller.irqs if irq.count]
    cpus = _number(controller.irq_cpus)
    words = f"{len(controller.irqs)}, {len(used)} in use, on {cpus} CPU{'' if controller.irq_cpus == 1 else 's'}"
    return words + (f"; local CPUs {_safe(controller.local_cpus)}" if controller.local_cpus else "")


# --- words ---------------------------------------------------------------------------------------------------------


def _kilo(count: int | None) -> str:
    return UNKNOWN if count is None else kib(count * 1024)


def _bytes(count: int | None) -> str:
    return UNKNOWN if count is None else kib(count)


def _offset(count: int | None) -> str:
    if count == -1:
        return "unavailable: the layers below do not agree"
    return "0" if count == 0 else _bytes(count)


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else str(count)


def _safe(text: str) -> str:
    """Escape names of devices and files for the terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
