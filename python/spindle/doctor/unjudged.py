"""Parts that a rule could not judge: values it needs are unknown, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spindle.inspect.model import Drive, Part

from .finding import UnjudgedPart
from .rule import Rule
from .stack import Stack

NamedParts = Iterator[tuple[str, Part | None, str]]
"""A part's name, the record with the value, and the reason if there is no such record."""


def unjudged(rule: Rule, stack: Stack, said: set[str]) -> Iterator[UnjudgedPart]:
    """Parts with unknown values, each once. `said`: parts that the rule itself has reported."""
    said = set(said)
    for value in rule.inputs:
        kind, _, field = value.partition(".")
        for name, part, absent in PARTS[kind](stack):
            why = absent if part is None else part.unknown.get(field) if getattr(part, field) in (None, []) else None
            if why and name not in said:
                said.add(name)
                yield UnjudgedPart(rule=rule.name, object=name, why=why)


def _arrays(stack: Stack) -> NamedParts:
    for device, md in stack.arrays():
        yield device.id, md, ""


def _members(stack: Stack) -> NamedParts:
    for device, md in stack.arrays():
        for member in md.members:
            yield member.device, member, ""
        if not md.members:
            yield device.id, None, "its members are not reported"


def _maps(stack: Stack) -> NamedParts:
    for device in stack.inventory.devices:
        if device.dm is not None:
            yield device.id, device.dm, ""


def _drives(stack: Stack) -> NamedParts:
    for device, drive in stack.drives():
        yield device.id, drive, ""


def _queues(stack: Stack) -> NamedParts:
    for device, _ in stack.drives():
        yield device.id, device.queue, f"sysfs shows no queue of {device.id}"


def _health(stack: Stack) -> NamedParts:
    """Health of drives, of drives behind RAID controllers, and of devices with a hidden drive behind them."""
    for device, drive in stack.drives():
        if drive.transport == "raid":
            if why := _hidden(stack, drive):
                yield device.id, None, why
        else:
            yield device.id, drive.smart, drive.unknown.get("smart", "its health was not read")
    for controller, raid in stack.raids():
        for behind in raid.drives:
            yield f"{controller.id}/{behind.name}", behind.smart, behind.unknown.get("smart", "")
    for device in stack.inventory.devices:
        if device.drive is None and not device.below and (words := _NOT_SEEN.get(device.kind)):
            yield device.id, None, words


_NOT_SEEN = {
    "nbd": "a network block device: only its server sees the drives behind it",
    "rbd": "a Ceph image: only its cluster sees the drives behind it",
    "drbd": "a DRBD device: only its peers see the drives behind it",
}


def _hidden(stack: Stack, drive: Drive) -> str | None:
    """Why the drives of a RAID unit are unknown; None where they are listed and judged one by one."""
    raid = stack.raid_of(drive)
    if raid is None:
        return "a unit of a RAID controller hides its drives, and its maker's tool was not run"
    return (
        None
        if raid.drives
        else f"a RAID controller hides its drives: {raid.unknown.get('drives', 'its tool lists none')}"
    )


def _file_systems(stack: Stack) -> NamedParts:
    for found in stack.inventory.file_systems:
        yield found.id, found, ""


def _partitions(stack: Stack) -> NamedParts:
    for device in stack.inventory.devices:
        if device.partition is not None:
            yield device.id, device.partition, ""


def _controllers(stack: Stack) -> NamedParts:
    for controller in stack.inventory.controllers:
        yield controller.id, controller, ""


def _raids(stack: Stack) -> NamedParts:
    for controller, raid in stack.raids():
        yield controller.id, raid, ""


def _pools(stack: Stack) -> NamedParts:
    for pool in stack.inventory.pools:
        yield pool.id, pool, ""
    if (why := stack.inventory.unknown.get("pools")) is not None:
        yield "zpool", None, why


def _caches(stack: Stack) -> NamedParts:
    for device in stack.inventory.devices:
        if device.bcache is not None:
            yield device.id, device.bcache, ""


def _machine(stack: Stack) -> NamedParts:
    yield "machine", stack.inventory, ""


PARTS: dict[str, Callable[[Stack], NamedParts]] = {
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
"""The parts of a stack, by the first word of a rule's inputs."""
