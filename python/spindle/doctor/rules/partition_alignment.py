"""A partition or volume whose start is not at a chunk or a physical sector. See docs/reference/doctor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spindle.base.commands import shell
from spindle.base.units import kib
from spindle.host.devices import SECTOR
from spindle.inspect.model import Device

from ..arithmetic import SIZES, crossing_share, turn_ms
from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, Stripe, rotates

PAGE_BYTES = 4096
"""Size of a page of memory, of flash (at least), and of a sector of nearly all drives since 2011 (IDEMA Advanced
Format)."""
LEAST_BYTES = 2 << 20
"""Smaller partitions contain a boot loader (1 MiB from sector 34 on) or are extended ones (1 KiB): no load."""
NEW_START_SECTOR = 2048
"""Unit of the remedy: 1 MiB, as in parted, fdisk and LVM since 2009, a multiple of every usual chunk."""


@dataclass(frozen=True)
class _Start:
    """The start of a part on the device below it."""

    device: Device
    on: Device
    start_bytes: int
    words: str


def _check(case: RuleInput) -> Results:
    for place in _places(case.stack):
        stripe = case.stack.stripe_below(place.on)
        if stripe is not None:
            if place.start_bytes % stripe.chunk_bytes:
                yield _off_the_chunk(case.stack, place, stripe)
        else:
            yield from _off_the_sector(case.stack, place)


def _places(stack: Stack) -> Iterator[_Start]:
    for device in stack.inventory.devices:
        if device.partition is not None:
            start, on = device.partition.start_bytes, stack.disk(device)
            large = device.size_bytes is None or device.size_bytes >= LEAST_BYTES
            if start is not None and on is not device and large:
                yield _Start(device, on, start, f"begins at sector {device.partition.start_sector} of {on.id}")
        for segment in device.dm.segments if device.dm is not None else []:
            for area in segment.areas:
                on = stack.device(area.device) or device
                if area.offset_sectors is not None and on is not device and segment.target in ("linear", "crypt"):
                    words = f"has its data from sector {area.offset_sectors} of {on.id} on"
                    yield _Start(device, on, area.offset_sectors * SECTOR, words)
    for _, md in stack.arrays():
        for member, on in stack.active(md):
            if member.data_offset_sectors is not None and member.data_offset_sectors > 0:
                words = f"has the array's data from its sector {member.data_offset_sectors} on"
                yield _Start(on, on, member.data_offset_sectors * SECTOR, words)


# --- against chunks ------------------------------------------------------------------------------------------------


def _off_the_chunk(stack: Stack, place: _Start, stripe: Stripe) -> Finding:
    chunk = stripe.chunk_bytes
    shift = place.start_bytes % chunk
    shares = {size: crossing_share(chunk, shift, size) for size in SIZES if size <= chunk}
    shares[chunk] = crossing_share(chunk, shift, chunk)
    crossing = ", ".join(f"{100 * share:.3g} % of {kib(size)}" for size, share in shares.items())
    full = " No write covers a whole stripe: each one reads old data to update the parity." if stripe.parity else ""
    return Finding(
        rule=RULE.name,
        object=place.device.id,
        severity=Severity.WARN,
        summary=f"{place.device.id} does not begin at a chunk of {place.on.id}",
        evidence=f"it {place.words}, {kib(shift)} past a multiple of the chunk of {kib(chunk)} ({stripe.source})",
        why="A request across the end of a chunk needs two drives instead of one.",
        effect=f"Requests at multiples of their size that cross: {crossing}; none if it began at a chunk.{full}",
        numbers={
            "start_bytes": place.start_bytes,
            "chunk_bytes": chunk,
            "shift_bytes": shift,
            **{f"crossing_share_{size}": share for size, share in shares.items()},
        },
        steps=_steps(stack, place, chunk),
    )


# --- against physical sectors --------------------------------------------------------------------------------------


def _off_the_sector(stack: Stack, place: _Start) -> Results:
    bottom = stack.disk(place.on)
    grain = max(_sector(stack, bottom), 1)
    # Where the first sector of a drive is not its first block (jumpered drives), starts count from there.
    first = max(bottom.alignment_offset_bytes or 0, 0) if place.on is bottom and place.device is not bottom else 0
    start = place.start_bytes - first
    if start % grain:
        yield _split(stack, place, bottom, grain, start % grain, Severity.WARN)
    elif start % PAGE_BYTES and grain < PAGE_BYTES and bottom.drive is not None:
        severity = Severity.WARN if rotates(bottom) is False else Severity.NOTE
        yield _split(stack, place, bottom, grain, start % PAGE_BYTES, severity)


def _sector(stack: Stack, disk: Device) -> int:
    """The kernel's granularity: the larger of physical sector and minimum I/O (queue_limits)."""
    queue = disk.queue
    grain = max((queue.physical_block_size or 0, queue.minimum_io_size or 0)) if queue is not None else 0
    if disk.kind != "loop":
        return grain
    blocks = [found.block_bytes for name in disk.below if (found := stack.inventory.file_system(name)) is not None]
    return max(grain, *(block or PAGE_BYTES for block in blocks), PAGE_BYTES)  # the file's blocks, through memory pages


def _split(stack: Stack, place: _Start, disk: Device, sector: int, shift: int, severity: Severity) -> Finding:
    drive = disk.drive
    rpm = drive.rotation_rpm if drive is not None else None
    true_sector = max(sector, PAGE_BYTES)
    known = f"{disk.id} has sectors of {kib(sector)}"
    if disk.kind == "loop":
        known = f"the file of {disk.id} is written in blocks of {kib(sector)}"
    if sector < PAGE_BYTES:
        known += (
            ", but flash is written in pages of 4 KiB and more"
            if rotates(disk) is False
            else ", as it reports: the first drives with 4 KiB sectors reported that too, and a replacement will "
            "have them"
        )
    turn = f", and waits a turn of {turn_ms(rpm):.1f} ms" if rpm else ""
    share = crossing_share(true_sector, shift, PAGE_BYTES)
    many = "Every block of 4 KiB is" if share == 1 else f"{100 * share:.3g} % of the blocks of 4 KiB are"
    cost = f"{many} across two of {kib(true_sector)}"
    return Finding(
        rule=RULE.name,
        object=place.device.id,
        severity=severity,
        summary=f"{place.device.id} does not begin at a sector of 4 KiB"
        if true_sector == PAGE_BYTES
        else f"{place.device.id} does not begin at a block of {kib(true_sector)}",
        evidence=f"it {place.words}, {kib(shift)} past a multiple of {kib(true_sector)}; {known}",
        why="A block across two physical sectors is written by reading both, changing them, and writing both.",
        effect=f"{cost}: such a write first reads{turn}. Larger writes pay it at both ends.",
        numbers={
            "start_bytes": place.start_bytes,
            "sector_bytes": sector,
            "shift_bytes": shift,
            "split_share_4096": share,
        },
        steps=_steps(stack, place, true_sector),
    )


def _steps(stack: Stack, place: _Start, grain: int) -> list[Step]:
    device, disk = place.device, place.on
    if device.partition is not None and disk is not device:
        anew = [_moved(device, disk, place.start_bytes, grain)]
        about = f"move the start of {device.id} to a multiple of {kib(grain)}: its content is lost"
        for array in (stack.device(name) for name in device.above):
            if array is not None and array.md is not None:
                about += f"; {array.id} rebuilds onto it, if it is still large enough: one member at a time"
                remove = shell("mdadm", array.path, "--fail", device.path, "--remove", device.path)
                anew = [remove, *anew, shell("mdadm", array.path, "--add", device.path)]
        return [Step(phase=Phase.REBUILD, about=about, commands=anew, needs=[Needs.BACKUP, Needs.OFFLINE])]
    if device.dm is not None and device.dm.owner == "LVM":
        about = f"recreate the physical volume {disk.path} so that its data begin at a multiple of {kib(grain)}"
        commands = [shell("pvcreate", "--dataalignment", f"{grain}b", disk.path)]
    elif device is disk:
        about = f"add {device.path} to its array again with an aligned data offset; one member at a time"
        commands = [shell("mdadm", "--examine", device.path)]
    else:
        about, commands = f"recreate {device.path} with a start that is a multiple of {kib(grain)}", []
    return [Step(phase=Phase.REBUILD, about=about, commands=commands, needs=[Needs.BACKUP, Needs.OFFLINE])]


def _moved(device: Device, disk: Device, start_bytes: int, grain: int) -> str:
    """Command that gives the partition a later start and the same end. sfdisk counts the disk's logical sectors."""
    sector = (disk.queue.logical_block_size if disk.queue is not None else None) or SECTOR
    unit = math.lcm(NEW_START_SECTOR * SECTOR, grain)
    start = -(-start_bytes // unit) * unit
    size = (device.size_bytes or 0) + start_bytes - start
    kept = f", size={size // sector}" if size > 0 else ""
    number = device.partition.number if device.partition is not None else None
    return f"echo 'start={start // sector}{kept}' | {shell('sfdisk', '-N', number or 1, disk.path)}"


RULE = Rule(
    "partition-alignment",
    "Partitions and volumes begin at a chunk or a physical sector.",
    _check,
    ("partition.start_sector", "dm.segments"),
)
