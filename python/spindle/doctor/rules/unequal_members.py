"""Members of an array that differ in speed or size. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.base.units import si_size
from spindle.inspect.model import Device, Drive, Md, MdMember

from ..arithmetic import pcie_bytes_per_s
from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, gigatransfers, rotates

SIZE_SPREAD = 0.05
"""Unused share of the largest member; drives of one class differ by less than 1 %."""
LINK_SPREAD = 0.75
"""A link with less than this share of the fastest is another generation."""
SIZED = ("raid1", "raid4", "raid5", "raid6", "raid10")
"""Levels that use only the size of the smallest member on each; raid0 makes zones, linear joins."""


def _check(case: RuleInput) -> Results:
    for array, md in case.stack.arrays():
        members = case.stack.active(md)
        drives = [(member, *found) for member, device in members if (found := case.stack.drive_of(device)) is not None]
        unequal = [words for words in (_kinds(md, drives), _speeds(drives), _links(case.stack, drives)) if words]
        if unequal:
            yield _slow(array, unequal)
        if md.level in SIZED and (sizes := _sizes(members)) is not None:
            yield _waste(array, *sizes)


Member = tuple[MdMember, Device, Drive]


def _kinds(md: Md, drives: list[Member]) -> tuple[str, float] | None:
    """Platters beside flash; a mirror that reads only from flash is intended so."""
    turning = [device.id for member, device, _ in drives if rotates(device) and "write_mostly" not in member.state]
    flash = [device.id for _, device, _ in drives if rotates(device) is False]
    if not turning or not flash:
        return None
    return f"{', '.join(turning)} rotate, {', '.join(flash)} do not", 0.0


def _speeds(drives: list[Member]) -> tuple[str, float] | None:
    turns = {device.id: drive.rotation_rpm for _, device, drive in drives if drive.rotation_rpm}
    if len(set(turns.values())) < 2:
        return None
    least, most = min(turns.values()), max(turns.values())
    slow = [name for name, rpm in turns.items() if rpm == least]
    return f"{', '.join(slow)} {least} rpm, the fastest {most}", least / most


def _links(stack: Stack, drives: list[Member]) -> tuple[str, float] | None:
    speeds = {device.id: speed for _, device, drive in drives if (speed := _link(stack, drive)) is not None}
    if not speeds or min(speeds.values()) >= LINK_SPREAD * max(speeds.values()):
        return None
    if all(rotates(device) for _, device, _ in drives) and min(speeds.values()) >= FAST_ENOUGH_FOR_PLATTERS:
        return None
    least, most = min(speeds.values()), max(speeds.values())
    slow = [name for name, speed in speeds.items() if speed == least]
    return f"{', '.join(slow)} on a link of {least / 1e6:.0f} MB/s, the fastest {most / 1e6:.0f}", least / most


FAST_ENOUGH_FOR_PLATTERS = 300e6
"""Bytes/s: SATA at 3 Gb/s; the outer tracks of the fastest drives give 290 MB/s."""


def _link(stack: Stack, drive: Drive) -> float | None:
    if drive.transport == "nvme":
        found = stack.inventory.controller(drive.controller) if drive.controller is not None else None
        speed = gigatransfers(found.link_speed) if found is not None else None
        lanes = found.link_width if found is not None else None
        return pcie_bytes_per_s(speed, lanes) if speed and lanes and 0 < lanes <= 32 else None
    return drive.link_gbps * 1e8 if drive.link_gbps and drive.link_gbps > 0 else None


def _slow(array: Device, unequal: list[tuple[str, float]]) -> Finding:
    ratios = [ratio for _, ratio in unequal if ratio]
    ratio = min(ratios) if ratios else None
    return Finding(
        rule=RULE.name,
        object=array.id,
        severity=Severity.WARN,
        summary=f"the members of {array.id} differ in speed",
        evidence="; ".join(words for words, _ in unequal),
        why="A request over several members is done when the last of them is: the array goes at the pace of its "
        "slowest.",
        effect=f"Up to {ratio:.2f} times the speed of members that are all like the fastest."
        if ratio is not None
        else "Random I/O at the speed of a rotating drive (100 to 200 per second each), where flash reaches tens of "
        "thousands.",
        numbers={"slowest_share": ratio} if ratio is not None else {},
        steps=[
            Step(
                phase=Phase.REBUILD,
                act=StepEffect.REPLACE,
                about=f"give {array.id} members of one kind: replace the slow ones (OLD by NEW), one at a time",
                commands=[
                    shell("mdadm", array.path, "--add", "/dev/NEW"),
                    shell("mdadm", array.path, "--replace", "/dev/OLD"),
                ],
                needs=[Needs.HARDWARE],
            )
        ],
    )


def _sizes(members: list[tuple[MdMember, Device]]) -> tuple[dict[str, int], int, int] | None:
    sizes = {device.id: device.size_bytes for _, device in members if device.size_bytes}
    if len(sizes) < 2 or len(sizes) != len(members):
        return None
    least, most = min(sizes.values()), max(sizes.values())
    return (sizes, least, most) if most - least > SIZE_SPREAD * most else None


def _waste(array: Device, sizes: dict[str, int], least: int, most: int) -> Finding:
    small = [name for name, count in sizes.items() if count == least]
    idle = sum(sizes.values()) - least * len(sizes)
    return Finding(
        rule=RULE.name,
        object=array.id,
        severity=Severity.NOTE,
        summary=f"the members of {array.id} differ in size",
        evidence=f"{', '.join(small)} {si_size(least)}, the largest {si_size(most)}",
        why="Each member is used only up to the size of the smallest.",
        effect=(
            f"{si_size(idle)} of {si_size(sum(sizes.values()))} are unused ({100 * idle / sum(sizes.values()):.0f} %)."
        ),
        numbers={"smallest_bytes": least, "largest_bytes": most, "idle_bytes": idle},
    )


RULE = Rule(
    "unequal-members",
    "The members of an array are equal in speed and size.",
    _check,
    ("drive.rotation_rpm", "drive.link_gbps"),
)
