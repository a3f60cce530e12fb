"""What a rule could not look at: every part of which a value that it needs is unknown, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..inspect.model import Drive, Part
from .finding import Unjudged
from .rule import Rule
from .stack import Stack

Named = Iterator[tuple[str, Part | None, str]]
"""An object's name, the part that has the value, and why there is no such part."""


def unjudged(rule: Rule, stack: Stack, said: set[str]) -> Iterator[Unjudged]:
    """Of each part once. `said`: objects of which the rule itself has said something."""
    said = set(said)
    for value in rule.looks_at:
        kind, _, field = value.partition(".")
        for name, part, absent in PARTS[kind](stack):
            why = absent if part is None else part.unknown.get(field) if getattr(part, field) in (None, []) else None
            if why and name not in said:
                said.add(name)
                yield Unjudged(rule=rule.name, object=name, why=why)


def _arrays(stack: Stack) -> Named:
    for device, md in stack.arrays():
        yield device.id, md, ""


def _members(stack: Stack) -> Named:
    for device, md in stack.arrays():
        for member in md.members:
            yield member.device, member, ""
        if not md.members:
            yield device.id, None, "no member of it is told"


def _maps(stack: Stack) -> Named:
    for device in stack.inventory.devices:
        if device.dm is not None:
            yield device.id, device.dm, ""


def _drives(stack: Stack) -> Named:
    for device, drive in stack.drives():
        yield device.id, drive, ""


def _queues(stack: Stack) -> Named:
    for device, _ in stack.drives():
        yield device.id, device.queue, f"{device.id} has no queue that sysfs shows"


def _health(stack: Stack) -> Named:
    """Of drives, of those behind RAID controllers, and of devices behind which a drive stands that is not seen."""
    for device, drive in stack.drives():
        if drive.transport == "raid":
            if why := _hidden(stack, drive):
                yield device.id, None, why
        else:
            yield device.id, drive.smart, drive.unknown.get("smart", "its health was not asked for")
    for controller, raid in stack.raids():
        for behind in raid.drives:
            yield f"{controller.id}/{behind.name}", behind.smart, behind.unknown.get("smart", "")
    for device in stack.inventory.devices:
        if device.drive is None and not device.below and (words := _NOT_SEEN.get(device.kind)):
            yield device.id, None, words


_NOT_SEEN = {
    "nbd": "a network block device: what stands behind it is seen by its server only",
    "rbd": "a Ceph image: what stands behind it is seen by its cluster only",
    "drbd": "a DRBD device: what stands behind it is seen on its peers",
}


def _hidden(stack: Stack, drive: Drive) -> str | None:
    """Why nothing is known of the drives of a RAID unit; None where they are named, and judged one by one."""
    raid = stack.raid_of(drive)
    if raid is None:
        return "a unit of a RAID controller hides its drives, and no tool of its maker was asked"
    return (
        None
        if raid.drives
        else f"a RAID controller hides its drives: {raid.unknown.get('drives', 'its tool has none')}"
    )


def _file_systems(stack: Stack) -> Named:
    for found in stack.inventory.file_systems:
        yield found.id, found, ""


def _partitions(stack: Stack) -> Named:
    for device in stack.inventory.devices:
        if device.partition is not None:
            yield device.id, device.partition, ""


def _controllers(stack: Stack) -> Named:
    for controller in stack.inventory.controllers:
        yield controller.id, controller, ""


def _raids(stack: Stack) -> Named:
    for controller, raid in stack.raids():
        yield controller.id, raid, ""


def _pools(stack: Stack) -> Named:
    for pool in stack.inventory.pools:
        yield pool.id, pool, ""
    if (why := stack.inventory.unknown.get("pools")) is not None:
        yield "zpool", None, why


def _caches(stack: Stack) -> Named:
    for device in stack.inventory.devices:
        if device.bcache is not None:
            yield device.id, device.bcache, ""


def _machine(stack: Stack) -> Named:
    yield "machine", stack.inventory, ""


PARTS: dict[str, Callable[[Stack], Named]] = {
    "md": _arrays,
    "member": _members,
    "dm": _maps,
    "drive": _drives,
    "queue": _queues,
    "smart": _health,
    "fs": _file_systems,
    "partition": _partitions,
    "controller": _controllers,
    "raid": _raids,
    "pool": _pools,
    "bcache": _caches,
    "machine": _machine,
}
"""The parts of a stack, by the first word of what a rule looks at."""
