"""A file system that is nearly full. See docs/doctor."""

from __future__ import annotations

from shlex import quote

from ...words import size
from ..finding import Finding, Phase, Severity, Step
from ..rule import Case, Rule, Told

LEAST_SHARE = 0.05
"""What mke2fs(8) reserves by default, to keep a file system from fragmenting."""
SMALLEST_BYTES = 1 << 30
"""Smaller ones (boot, EFI) are filled on purpose."""


def _check(case: Case) -> Told:
    for found in case.stack.inventory.file_systems:
        whole, free = found.size_bytes, found.available_bytes
        if whole is None or free is None or whole < SMALLEST_BYTES or free < 0 or "ro" in found.options:
            continue
        if free >= LEAST_SHARE * whole:
            continue
        yield Finding(
            rule=RULE.name,
            object=found.id,
            severity=Severity.WARN,
            summary=f"{found.mount_point} is nearly full",
            evidence=f"{size(free)} free of {size(whole)} ({100 * free / whole:.1f} %)",
            why="The last free blocks lie in small pieces, and near the end of the device, where platters are slowest.",
            effect="New files are scattered: sequential reads of them become seeks.",
            numbers={"free_bytes": free, "size_bytes": whole, "free_share": free / whole},
            steps=[
                Step(
                    phase=Phase.LOOK,
                    about="see what takes the room",
                    commands=[f"du -xh --max-depth=2 {quote(found.mount_point)} | sort -h | tail -20"],
                )
            ],
        )


RULE = Rule("space", "File systems have room left.", _check, ("fs.size_bytes",))
