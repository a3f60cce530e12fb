"""Writes that are never flushed from a volatile cache. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

import msgspec

from spindle.inspect.model import Device, Drive, FileSystem

from ..finding import Finding, Phase, Severity, Step, StepEffect, UnjudgedPart, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stack


def _check(case: RuleInput) -> Results:
    for found in case.stack.inventory.file_systems:
        if found.barriers is False and "ro" not in found.options:
            yield from _unflushed(case.stack, found)
    for device, drive in case.stack.drives():
        believed = device.queue.write_cache if device.queue is not None else None
        if drive.transport in ("sata", "sas") and drive.write_cache_enabled and believed == "write through":
            yield _unknown_to_the_kernel(device)


def _unflushed(stack: Stack, found: FileSystem) -> Results:
    volatile: list[str] = []
    unsure: list[str] = []
    for name in found.below:
        device = stack.device(name)
        for disk, drive in stack.bottoms(device) if device is not None else []:
            kept = _volatile(stack, disk, drive)
            if kept is None:
                unsure.append(disk.id)
            elif kept:
                volatile.append(f"{disk.id} ({kept})")
    if not volatile:
        if unsure:
            why = f"mounted without barriers; not known whether {', '.join(unsure)} loses its cache at a power failure"
            yield UnjudgedPart(rule=RULE.name, object=found.id, why=why)
        return
    option = next((word for word in found.super_options if word in ("nobarrier", "barrier=0")), "nobarrier")
    yield Finding(
        rule=RULE.name,
        object=found.id,
        severity=Severity.CRITICAL,
        summary=f"{found.mount_point} never flushes a cache that loses its content at a power failure",
        evidence=f"mounted with {option}; volatile: {', '.join(volatile)}",
        why="A journal needs its writes in order. Without flushes the drive writes in any order, and after a power "
        "failure the journal may refer to blocks that were never written.",
        effect="A power failure can damage the file system and lose data that fsync had confirmed.",
        numbers={"volatile_caches": len(volatile)},
        steps=[
            Step(
                phase=Phase.PROTECT,
                about=f"flush again, now; remove `{option}` from /etc/fstab as well",
                commands=[
                    f"mount -o remount,{'barrier' if found.type != 'ext3' else 'barrier=1'} {quote(found.mount_point)}"
                ],
            )
        ],
    )


def _volatile(stack: Stack, device: Device, drive: Drive) -> str | bool | None:
    """Why a power failure loses its cache; False: it does not. None: not known."""
    if drive.transport == "raid":
        raid, unit = stack.raid_of(drive), stack.unit(device, drive)
        if unit is not None and unit.write_back is False:
            return False
        if raid is None or raid.battery_ok is None:
            return None
        return False if raid.battery_ok else f"controller cache, battery {raid.battery}"
    if drive.write_cache_enabled is not None:
        return "drive cache on" if drive.write_cache_enabled else False
    queue = device.queue
    if drive.transport in ("nvme", "virtio") and queue is not None and queue.write_cache is not None:
        return "drive cache on" if queue.write_cache == "write back" else False
    return None


def _unknown_to_the_kernel(device: Device) -> Finding:
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.CRITICAL,
        summary=f"the kernel never flushes the write cache of {device.id}",
        evidence="the drive reports its write cache on; the kernel treats it as write through (queue/write_cache)",
        why="The kernel assumes an empty cache and drops every flush, and with it the order that journals need.",
        effect="A power failure can damage any file system on it and lose data that fsync had confirmed.",
        steps=[
            msgspec.structs.replace(step, phase=step.phase if step.phase is Phase.KEEP else Phase.PROTECT)
            for step in knob(device.id, StepEffect.SAFEGUARD, write_cache="write back")
        ],
    )


RULE = Rule("barriers", "File systems can flush volatile caches.", _check, ("queue.write_cache",))
