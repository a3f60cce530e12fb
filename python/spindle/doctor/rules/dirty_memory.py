"""More dirty data in memory than the drives write in reasonable time. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.units import si_size
from spindle.inspect.model import Device, FileSystem

from ..finding import Finding, Severity, UnjudgedPart, machine_knob
from ..rule import Results, Rule, RuleInput
from ..stack import PARITY, Stack, rotates

MOST_SECONDS = 60
"""Half of the kernel's limit for a hung task (hung_task_timeout_secs, 120)."""
WANTED_SECONDS = 5
PLATTERS_BYTES_PER_S, FLASH_BYTES_PER_S, NVME_BYTES_PER_S = 150e6, 400e6, 1500e6
"""Sequential writes of one drive; random writes on platters reach a hundredth of it."""
LEAST_BYTES = 256 << 20
"""Smallest value that the remedy advises."""


def _check(case: RuleInput) -> Results:
    limit = _limit(case.stack)
    if limit is None:
        yield UnjudgedPart(rule=RULE.name, object="machine", why="memory size or vm.dirty_ratio is not known")
        return
    paces = [(pace, found) for found in case.stack.inventory.file_systems if (pace := _pace(case.stack, found))]
    if not paces:
        return
    pace, slowest = min(paces, key=lambda one: one[0])
    if limit / pace > MOST_SECONDS:
        yield _found(case.stack, limit, pace, slowest)


def _limit(stack: Stack) -> float | None:
    """Dirty bytes at which writers wait."""
    fixed, share = _number(stack, "dirty_bytes"), _number(stack, "dirty_ratio")
    if fixed:
        return float(fixed)
    memory = stack.inventory.memory_bytes
    return None if share is None or memory is None else memory * share / 100


def _number(stack: Stack, name: str) -> int | None:
    text = stack.inventory.vm.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _pace(stack: Stack, found: FileSystem) -> float | None:
    """Bytes per second of a sequential write to the whole file system."""
    if "ro" in found.options:
        return None
    paces = [pace for name in found.below if (device := stack.device(name)) and (pace := _of_device(stack, device))]
    return min(paces, default=None)


def _of_device(stack: Stack, device: Device) -> float | None:
    drives = stack.bottoms(device)
    if not drives or any(drive.transport not in ("sata", "sas", "nvme", "usb") for _, drive in drives):
        return None  # drives behind a controller or a network are not known
    one = min(
        PLATTERS_BYTES_PER_S
        if rotates(found) is not False
        else NVME_BYTES_PER_S
        if drive.transport == "nvme"
        else FLASH_BYTES_PER_S
        for found, drive in drives
    )
    return one * _wide(stack, device, len(drives))


def _wide(stack: Stack, device: Device, drives: int) -> int:
    arrays = [found for found, _ in stack.arrays() if found.id in stack.members(device)]
    if len(arrays) != 1 or arrays[0].md is None:
        return drives if not arrays else 1
    md = arrays[0].md
    if md.level in ("raid0", *PARITY):
        return max(md.data_disks or 1, 1)
    return max(drives // 2, 1) if md.level == "raid10" else 1


def _found(stack: Stack, limit: float, pace: float, slowest: FileSystem) -> Finding:
    fixed = _number(stack, "dirty_bytes")
    how = f"vm.dirty_bytes {fixed}" if fixed else f"vm.dirty_ratio {_number(stack, 'dirty_ratio')} %"
    wanted = max(int(pace * WANTED_SECONDS) >> 20 << 20, LEAST_BYTES)
    return Finding(
        rule=RULE.name,
        object="machine",
        severity=Severity.WARN,
        summary="memory may hold more dirty data than the drives write in a minute",
        evidence=(
            f"{how}: up to {si_size(round(limit))}; {slowest.mount_point} takes about {pace / 1e6:.0f} MB/s at best"
        ),
        why="Writers fill memory up to this limit without waiting; then all of them wait for the drives. An fsync "
        "waits for much of it as well, and random writes take far longer than this estimate.",
        effect=f"Stalls of {limit / pace:.0f} s and more, and as much data lost at a power failure; with "
        f"{si_size(wanted)}: {wanted / pace:.0f} s.",
        numbers={"limit_bytes": limit, "write_bytes_per_s": pace, "stall_seconds": limit / pace},
        steps=machine_knob(vm__dirty_background_bytes=wanted // 4, vm__dirty_bytes=wanted),
    )


RULE = Rule("dirty-memory", "The drives can write all dirty data in a minute.", _check)
