"""A file system whose stripe geometry differs from the array below. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.base.units import kib
from spindle.inspect.model import FileSystem

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect, UnjudgedPart
from ..rule import Results, Rule, RuleInput
from ..stack import Stripe

KNOWN = ("xfs", "ext4", "ext3")
"""File systems that store a geometry and use it."""
BLOCK_TO_SECTOR = 8
"""Blocks of 4 KiB compared with sectors of 512 bytes: the factor of a mixed-up unit."""


def _check(case: RuleInput) -> Results:
    for found in case.stack.inventory.file_systems:
        device = case.stack.data_device(found)
        if found.type not in KNOWN or device is None:
            continue
        unit, width = _geometry(found)
        stripe = case.stack.stripe_below(device)
        if stripe is None:
            if unit and width and width % unit:
                yield _uneven(found, unit, width)
            continue
        if unit is None or width is None:
            why = found.unknown.get("stripe_unit_bytes") or found.unknown.get("stripe_width_bytes") or "not known"
            yield UnjudgedPart(rule=RULE.name, object=found.id, why=why)
        elif not _fits(unit, width, stripe):
            yield _mismatch(found, unit, width, stripe)


def _geometry(found: FileSystem) -> tuple[int | None, int | None]:
    """Unit and width in bytes; on ext4 the mount option `stripe` overrides the stored width."""
    width = found.stripe_width_bytes
    if found.mount_stripe_blocks is not None and found.block_bytes:
        width = found.mount_stripe_blocks * found.block_bytes
    return found.stripe_unit_bytes, width


def _fits(unit: int, width: int, stripe: Stripe) -> bool:
    """Check the geometry. A unit of several chunks that adds up to the stripe is a choice, not an error."""
    if unit <= 0 or unit % stripe.chunk_bytes or width % unit:
        return False
    return width in stripe.widths if stripe.widths else unit == stripe.chunk_bytes


def _mismatch(found: FileSystem, unit: int, width: int, stripe: Stripe) -> Finding:
    none = not unit and not width
    names = ("su", "swidth") if found.type == "xfs" else ("stride", "stripe-width")
    has = "none" if none else f"{names[0]} {kib(unit)}, {names[1]} {kib(width)}"
    should = f"{names[0]} {kib(stripe.chunk_bytes)}"
    if stripe.bytes is not None:
        should += f", {names[1]} {kib(stripe.bytes)}"
    return Finding(
        rule=RULE.name,
        object=found.id,
        severity=Severity.WARN if stripe.parity or not none else Severity.NOTE,
        summary=f"{found.mount_point}: {found.type} does not know the stripe below it"
        if none
        else f"{found.mount_point}: {found.type} assumes another stripe than the one below it",
        evidence=f"it has {has}; {stripe.device} is {stripe.source} with a chunk of {kib(stripe.chunk_bytes)}, "
        f"so it should have {should}{_mixed_up(unit, width, stripe)}",
        why=_WHY_PARITY if stripe.parity else _WHY_STRIPED,
        effect=_effect(stripe),
        numbers={
            "unit_bytes": unit,
            "width_bytes": width,
            "chunk_bytes": stripe.chunk_bytes,
            **({"stripe_bytes": float(stripe.bytes)} if stripe.bytes is not None else {}),
        },
        steps=_steps(found, stripe),
    )


_WHY_PARITY = (
    "The allocator begins files and places large writes where it assumes a stripe to begin. Off the true stripe, a "
    "write that could have filled one covers parts of two, and each part reads old data to update the parity."
)
_WHY_STRIPED = (
    "The allocator begins files, inodes and bitmaps where it assumes a chunk to begin. With a wrong unit, requests "
    "cross chunks, and data that should be spread gathers on some of the drives."
)


def _effect(stripe: Stripe) -> str:
    if not stripe.parity or stripe.data_disks is None:
        return "Requests of a chunk's size need two drives; inode tables and bitmaps may all be on one."
    parities = 2 if "6" in stripe.source else 1
    data = stripe.data_disks
    whole = f"Writing a stripe of {kib(stripe.bytes)} as a whole takes {data + parities} writes and no read."
    if data < 2:
        return whole
    reads = min(_reads(part, data, parities) + _reads(data - part, data, parities) for part in range(1, data))
    return (
        f"{whole} As two parts it takes {data + 2 * parities} writes and at least {reads} reads, "
        "which must come back first."
    )


def _reads(chunks: int, data: int, parities: int) -> int:
    """Reads needed before some chunks of a stripe can be written: the old ones and the parity, or all the others."""
    return min(chunks + parities, data - chunks)


def _mixed_up(unit: int, width: int, stripe: Stripe) -> str:
    factors = {BLOCK_TO_SECTOR: "blocks were given where sectors of 512 bytes are meant, or the other way round"}
    for factor, words in factors.items():
        if unit and (unit == stripe.chunk_bytes * factor or unit * factor == stripe.chunk_bytes):
            return f" (a factor of {factor}: {words})"
    if stripe.bytes and unit == stripe.chunk_bytes and width > stripe.bytes:
        return " (the drives of parity or copies were counted)"
    return ""


def _steps(found: FileSystem, stripe: Stripe) -> list[Step]:
    width = stripe.bytes
    if width is None or (not found.block_bytes and found.type != "xfs"):
        return []
    if found.type != "xfs":
        block = found.block_bytes or 4096
        geometry = f"stride={stripe.chunk_bytes // block},stripe_width={width // block}"
        return [
            Step(
                phase=Phase.TUNE,
                act=StepEffect.METADATA,
                about=f"write the geometry to the superblock; new files of {found.mount_point} use it from the next "
                "mount on, old ones stay where they are",
                commands=[f"tune2fs -E {geometry} {quote(found.source)}"],
            )
        ]
    sectors = f"sunit={stripe.chunk_bytes // 512},swidth={width // 512}"
    about = (
        f"mount {found.mount_point} with the geometry in sectors of 512 bytes (in /etc/fstab too); XFS accepts it "
        "where its allocation groups allow, and then stores it"
    )
    commands = [
        f"umount {quote(found.mount_point)}",
        f"mount -o {sectors} {quote(found.source)} {quote(found.mount_point)}",
    ]
    again = f"mkfs.xfs -f -d su={stripe.chunk_bytes},sw={width // stripe.chunk_bytes} {quote(found.source)}"
    return [
        Step(phase=Phase.REBUILD, about=about, commands=commands, needs=[Needs.OFFLINE]),
        Step(
            phase=Phase.REBUILD,
            about=f"or recreate {found.mount_point}, which also aligns its allocation groups to the stripe",
            commands=[again],
            needs=[Needs.BACKUP, Needs.OFFLINE],
        ),
    ]


def _uneven(found: FileSystem, unit: int, width: int) -> Finding:
    return Finding(
        rule=RULE.name,
        object=found.id,
        severity=Severity.WARN,
        summary=f"{found.mount_point}: the stripe width is not a multiple of its unit",
        evidence=f"unit {kib(unit)}, width {kib(width)}: {width / unit:.3g} units",
        why="A stripe is a whole number of units: no array has such a shape.",
        effect="The allocator places files by a stripe that does not exist; no geometry would be better.",
        numbers={"unit_bytes": unit, "width_bytes": width},
        steps=[
            Step(
                phase=Phase.TUNE,
                act=StepEffect.METADATA,
                about=f"remove the geometry of {found.mount_point}; nothing below is striped",
                commands=[f"tune2fs -E stride=0,stripe_width=0 {quote(found.source)}"],
            )
        ]
        if found.type != "xfs"
        else [],
    )


RULE = Rule("stripe-geometry", "XFS and ext4 know the chunk and the stripe of the array below them.", _check)
