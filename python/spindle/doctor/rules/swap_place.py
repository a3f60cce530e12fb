"""Swap on rotating drives that also have data, or without the redundancy of the data. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.units import si_size
from spindle.inspect.model import Device, Swap

from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, rotates

USED_SHARE = 0.1
"""Share of swap in use that counts as a load."""


def _check(case: RuleInput) -> Results:
    for swap in case.stack.inventory.swaps:
        drives = _drives(case.stack, swap)
        others = _data_on(case.stack, swap, {device.id for device in drives})
        turning = [device.id for device in drives if rotates(device)]
        if turning and others:
            yield _beside(swap, turning, others)


def _drives(stack: Stack, swap: Swap) -> list[Device]:
    if swap.part is None:
        return []
    found = stack.inventory.file_system(swap.part)
    names = found.below if found is not None else [swap.part]
    return [drive for name in names if (device := stack.device(name)) for drive, _ in stack.bottoms(device)]


def _data_on(stack: Stack, swap: Swap, drives: set[str]) -> list[str]:
    """Mounted file systems on the same drives."""
    found = []
    for one in stack.inventory.file_systems:
        below = {drive.id for name in one.below if (device := stack.device(name)) for drive, _ in stack.bottoms(device)}
        if below & drives and one.size_bytes != 0:
            found.append(one.mount_point)
    return found


def _beside(swap: Swap, turning: list[str], others: list[str]) -> Finding:
    used = swap.used_bytes >= USED_SHARE * swap.size_bytes
    return Finding(
        rule=RULE.name,
        object=swap.part or swap.path,
        severity=Severity.WARN if used else Severity.NOTE,
        summary=f"swap shares {', '.join(turning)} with data",
        evidence=f"{swap.path}, {si_size(swap.used_bytes)} of {si_size(swap.size_bytes)} used; beside it: "
        f"{', '.join(others)}",
        why="When memory runs short, pages go out and come in one by one, and each costs a seek away from the "
        "data and back: the machine runs short of memory and of its drives at the same time.",
        effect="Each page takes one of the 100 to 200 seeks per second; a GiB that comes back page by page takes up "
        "to half an hour.",
        numbers={"used_bytes": swap.used_bytes, "size_bytes": swap.size_bytes},
        steps=[
            Step(phase=Phase.LOOK, about="see if it is in use now", commands=["vmstat 1 5"]),
            Step(
                phase=Phase.REBUILD,
                about="put swap on flash, on drives of its own, or in zram; then remove this one from /etc/fstab",
                needs=[Needs.OFFLINE],
            ),
        ],
    )


RULE = Rule("swap-place", "Swap does not share rotating drives with data.", _check, ("machine.swaps",))
