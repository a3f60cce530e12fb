"""A machine file for the simulator from an inventory: host, queue settings, md array, drives of the catalogue.

Only known values that the simulator models are written; a stack that it cannot model is refused, naming the
layer that prevents it. A device without a data sheet can be described by what was measured of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from spindle import _core
from spindle.base.commands import given, shell
from spindle.host.devices import SECTOR
from spindle.host.errors import TargetError, WrongTarget

from .model import Device, Inventory, Md, Queue
from .tree import plain

_MOST_DEEP = 64
MADE_BY = f"# made by `{shell('spindle', 'inspect', *given(machine=True))}`"
"""First line of a machine file, which identifies it as Spindle's own."""


@dataclass(frozen=True)
class MeasuredDrive:
    """A device as reads showed it: the least, middle and largest of each number."""

    service_ns: tuple[float, float, float]
    """Time of a read without its bytes."""
    per_byte_ns: tuple[float, float, float]
    """Time of a byte."""
    at_once: float
    """Requests that it serves at once."""


def machine_file(inventory: Inventory, models: Sequence[str], measured: MeasuredDrive | None = None) -> str:
    """The machine file as TOML. `models`: names of the drives in the catalogue. `measured`: the topmost device is
    described by this instead of the drives below it. Raises `TargetError`.
    """
    if len(inventory.tops) != 1:
        raise WrongTarget("a machine file describes one stack; name a mount point or a device")
    top = _device(inventory, inventory.tops[0]) if measured is None else topmost(inventory)
    lines = [MADE_BY, f"about = {_text(f'As inspected: {inventory.target or top.id}')}", *_host(inventory)]
    if measured is not None:
        lines += _queue([top.queue] if top.queue is not None else [], top.queue)
        return "\n".join([*lines, "", "[[drive]]", *_measured(top, measured)]) + "\n"
    members = _members(inventory, top)
    drives = [_drive(inventory, name, start, length, models) for name, start, length in members]
    lines += _queue([disk.queue for disk, _ in drives if disk.queue is not None], top.queue)
    if top.md is not None:
        lines += _array(top.md)
    tables = [table for _, table in drives]
    at = 0
    while at < len(tables):
        same = next((end for end in range(at, len(tables)) if tables[end] != tables[at]), len(tables)) - at
        lines += ["", "[[drive]]", *tables[at][:1], *([f"count = {same}"] if same > 1 else []), *tables[at][1:]]
        at += same
    return "\n".join(lines) + "\n"


def topmost(inventory: Inventory) -> Device:
    """The device that a load on the target reaches first: the one under the file system. Raises `TargetError`."""
    if len(inventory.tops) != 1:
        raise WrongTarget("a machine file describes one stack; name a mount point or a device")
    identity = inventory.tops[0]
    file_system = inventory.file_system(identity)
    if file_system is not None and len(file_system.below) == 1:
        identity = file_system.below[0]
    device = inventory.device(identity)
    if device is None or not device.size_bytes:
        raise TargetError(f"{identity}: the device below is not known")
    return device


def _host(inventory: Inventory) -> list[str]:
    lines = ["", "[host]"]
    kernel = re.match(r"[0-9]+\.[0-9]+(\.[0-9]+)?", inventory.kernel or "")
    if kernel:
        lines.append(f'kernel = "{kernel[0]}"')
    if inventory.memory_bytes:
        lines.append(f'memory = "{inventory.memory_bytes} B"')
    for key, form in _DIRTY.items():
        text = inventory.vm.get(f"{key}_centisecs" if form == "10ms" else key, "")
        if re.fullmatch(r"[1-9][0-9]{0,14}", text):
            lines.append(f"{key} = {_dirty(form, int(text))}")
    return lines


_LEAST_DATA_OFFSET = 8192
"""The least that a machine file takes."""
_DIRTY = {
    "dirty_background_ratio": "count",
    "dirty_ratio": "count",
    "dirty_background_bytes": "bytes",
    "dirty_bytes": "bytes",
    "dirty_expire": "10ms",
    "dirty_writeback": "10ms",
}
"""Keys of `[host]` that are files of /proc/sys/vm, those of times without `_centisecs`."""


def _dirty(form: str, value: int) -> str:
    match form:
        case "bytes":
            return f'"{value} B"'
        case "10ms":
            return f'"{10 * value}ms"'
        case _:
            return str(value)


def _measured(device: Device, measured: MeasuredDrive) -> list[str]:
    """The keys of a drive that is a service time, with the ranges of the trials."""
    queue = device.queue
    service = [f'"{max(1, round(ns))}ns"' for ns in measured.service_ns]
    lines = [f"service = {service[1]}", f'capacity = "{device.size_bytes} B"']
    ranges = [f"service = [{service[0]}, {service[2]}]"]
    if measured.per_byte_ns[0] > 0:
        # The fastest trial has the least time of a byte.
        rate = [f'"{round(1e9 / ns)} B/s"' for ns in reversed(measured.per_byte_ns)]
        lines.append(f"transfer_rate = {rate[1]}")
        ranges.append(f"transfer_rate = [{rate[0]}, {rate[2]}]")
    if (at_once := round(measured.at_once)) > 1:
        lines.append(f"servers = {at_once}")
    if queue is not None:
        tags = [depth for depth in (queue.tags, queue.nr_requests) if depth]
        lines += [f"queue_depth = {min(tags)}"] if tags else []
        lines += [f"rotational = {'true' if queue.rotational else 'false'}"]
        lines += ['flush = "0s"'] if queue.write_cache == "write back" else []
    return [*lines, f"range = {{ {', '.join(ranges)} }}"]


def _device(inventory: Inventory, identity: str, depth: int = 0) -> Device:
    """The array or the drive below: skips partitions and the single linear piece of a volume."""
    file_system = inventory.file_system(identity)
    if file_system is not None:
        if len(file_system.below) != 1:
            raise _unmodelled(identity, f"{file_system.type} over {len(file_system.below)} devices")
        return _device(inventory, file_system.below[0], depth + 1)
    device = inventory.device(identity)
    if device is None or depth > _MOST_DEEP:
        raise TargetError(f"{identity}: the device below is not known")
    if device.kind in ("md", "disk"):
        return device
    under = inventory.device(device.below[0]) if device.below else None
    if under is not None and device.kind == "partition":
        return device if under.kind == "disk" else _device(inventory, under.id, depth + 1)
    if under is not None and device.dm is not None and [part.target for part in device.dm.segments] == ["linear"]:
        return _device(inventory, under.id, depth + 1)
    raise _unmodelled(device.id, "multipath" if device.dm and device.dm.owner == "mpath" else device.kind)


def _unmodelled(name: str, what: str) -> TargetError:
    return TargetError(f"{name}: {what} is not modelled; a machine is one drive, or md over drives or their partitions")


def _members(inventory: Inventory, top: Device) -> list[tuple[str, int, int | None]]:
    """Name, first byte and used bytes of each member, in slot order; an empty slot gets the first one's drive.

    The space before the data counts if the machine file says how much that is.
    """
    if top.md is None:
        return [(top.id, 0, None)]
    by_slot = {member.slot: member for member in top.md.members if member.slot is not None}
    if not by_slot or top.md.raid_disks is None:
        raise TargetError(f"{top.id}: its members are not known; a machine file needs each of them")
    found = []
    before = _data_offset(top.md)
    for slot in range(min(top.md.raid_disks, 4096)):
        member = by_slot.get(slot) or next(iter(by_slot.values()))
        start = (member.data_offset_sectors or 0) * SECTOR
        size = None if member.size_bytes is None else member.size_bytes + before
        found.append((member.device, start - before, size))
    return found


def _data_offset(md: Md) -> int:
    """Bytes before the data, with superblock and bitmap, if all members have as many (metadata 1.1 and 1.2); else 0."""
    offsets = {(member.data_offset_sectors or 0) * SECTOR for member in md.members if member.slot is not None}
    offset = offsets.pop() if len(offsets) == 1 else 0
    return offset if offset >= _LEAST_DATA_OFFSET and offset % 4096 == 0 else 0


def _drive(
    inventory: Inventory, name: str, start: int, length: int | None, models: Sequence[str]
) -> tuple[Device, list[str]]:
    device = inventory.device(name)
    if device is not None and device.partition is not None:
        if device.partition.start_bytes is None:
            raise TargetError(f"{name}: its start is not known")
        start += device.partition.start_bytes
        length = device.size_bytes if length is None else length
        device = inventory.device(device.below[0]) if device.below else None
    if device is None or device.drive is None:
        raise _unmodelled(name, "the device below")
    drive = device.drive
    if drive.transport in ("raid", "virtio"):
        raise _unmodelled(device.id, "a RAID controller" if drive.transport == "raid" else "a virtual disk")
    table = [f'model = "{_model(device, models)}"']
    if drive.queue_depth is not None:
        table.append(f"queue_depth = {drive.queue_depth}")
    if drive.write_cache_enabled is not None:
        table.append(f"write_cache = {'true' if drive.write_cache_enabled else 'false'}")
    if length is not None:
        table.append(f'region = "{start} B-{start + length} B"')
    return device, table


def _model(device: Device, models: Sequence[str]) -> str:
    model = device.drive.model if device.drive is not None else None
    letters = _letters(model or "")
    fitting = [model for model in models if _letters(model) and _letters(model) in letters]
    if not fitting:
        raise TargetError(
            f"{device.id}: the catalogue has no drive {model or 'of an unknown model'!r}; "
            "write the machine file by hand, with a data sheet in [[sheet]]"
        )
    return max(fitting, key=len)


def _text(words: str) -> str:
    """A basic string of TOML: as in JSON, except that characters beyond 16 bits are not escaped."""
    return json.dumps(plain(words), ensure_ascii=False)


def _letters(text: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", text.upper())


def _queue(queues: list[Queue], under_test: Queue | None) -> list[str]:
    """The simulator has one setting for all drives: values that differ are left to the kernel's default. Read-ahead is
    that of the device under test."""
    lines = []
    if under_test is not None and under_test.read_ahead_kb is not None:
        lines.append(f'read_ahead = "{under_test.read_ahead_kb} KiB"')
    schedulers = {queue.scheduler for queue in queues}
    scheduler = schedulers.pop() if len(schedulers) == 1 else None
    if scheduler is not None:
        lines.append(f"scheduler = {_text(scheduler)}")
    depths = {queue.nr_requests for queue in queues}
    if len(depths) == 1 and (depth := depths.pop()) is not None and depth > 0:
        lines.append(f"nr_requests = {depth}")
    longest = {queue.max_sectors_kb for queue in queues}
    if len(longest) == 1 and (most := longest.pop()) is not None and most > 0:
        lines.append(f'max_request = "{most} KiB"')
    parameters = [queue.iosched for queue in queues]
    settings = []
    if scheduler is not None and parameters and all(one == parameters[0] for one in parameters):
        known = _core.elevator_parameters().get(scheduler, {})
        settings = [
            _parameter(*known[name], int(text))
            for name, text in sorted(parameters[0].items())
            if name in known and re.fullmatch(r"[0-9]{1,12}", text)
        ]
    return [
        *(["", "[queue]", *lines] if lines else []),
        *(["", "[queue.iosched]", *settings] if settings else []),
    ]


def _parameter(key: str, unit: str, value: int) -> str:
    match unit:
        case "flag":
            return f"{key} = {'true' if value else 'false'}"
        case "count":
            return f"{key} = {value}"
        case _:
            return f'{key} = "{value}{unit}"'


def _array(md: Md) -> list[str]:
    lines = ["", "[array]", f"level = {_text(md.level or 'unknown')}"]
    if md.layout is not None:
        short = re.fullmatch(r"(near|far|offset)=([0-9]+)", md.layout)
        lines.append(f"layout = {_text(short[1][0] + short[2] if short else md.layout)}")
    if md.chunk_bytes:
        lines.append(f'chunk = "{md.chunk_bytes} B"')
    if md.stripe_cache_size is not None:
        lines.append(f"stripe_cache_size = {md.stripe_cache_size}")
    if offset := _data_offset(md):
        lines.append(f'data_offset = "{offset} B"')
    if md.bitmap == "internal":
        lines.append('bitmap = "internal"')
        lines += [f'bitmap_chunk = "{md.bitmap_chunk_bytes} B"'] if md.bitmap_chunk_bytes else []
    present = {member.slot: member for member in md.members if member.slot is not None}
    missing = [slot for slot in range(min(md.raid_disks or 0, 4096)) if slot not in present]
    if missing:
        lines.append(f"missing = {missing}")
    if md.sync_action == "recover":
        rebuilding = [slot for slot, member in present.items() if "in_sync" not in member.state]
        if rebuilding:
            lines.append(f"rebuild = {min(rebuilding)}")
            for name, speed in (("sync_speed_min", md.sync_speed_min_kb), ("sync_speed_max", md.sync_speed_max_kb)):
                if speed:
                    lines.append(f'{name} = "{speed} KiB/s"')
    return lines
