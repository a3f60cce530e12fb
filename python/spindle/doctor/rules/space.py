"""A file system that is nearly full. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.base.units import si_size

from ..finding import Finding, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput

LEAST_SHARE = 0.05
"""Share that mke2fs(8) reserves by default, to limit fragmentation."""
SMALLEST_BYTES = 1 << 30
"""Smaller file systems (boot, EFI) are filled on purpose."""


def _check(case: RuleInput) -> Results:
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
            evidence=f"{si_size(free)} free of {si_size(whole)} ({100 * free / whole:.1f} %)",
            why="The last free blocks are in small pieces, and near the end of the device, where platters are slowest.",
            effect="New files are fragmented: sequential reads of them become seeks.",
            numbers={"free_bytes": free, "size_bytes": whole, "free_share": free / whole},
            steps=[
                Step(
                    phase=Phase.LOOK,
                    about="see what uses the space",
                    commands=[f"du -xh --max-depth=2 {quote(found.mount_point)} | sort -h | tail -20"],
                )
            ],
        )


RULE = Rule("space", "File systems have free space.", _check, ("fs.size_bytes",))
