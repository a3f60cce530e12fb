"""A ZFS pool whose smallest block is smaller than its drives' sectors. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell

from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import rotates

LEAST_SHIFT = 12
"""4 KiB: the sector inside nearly all drives, whatever they report."""


def _check(case: RuleInput) -> Results:
    teams = {team.name: team for team in case.stack.teams()}
    for pool in case.stack.inventory.pools:
        team = teams.get(pool.id)
        if not pool.ashifts or team is None or not team.drives:
            continue
        reported = {
            device.id: device.queue.physical_block_size or 0 for device, _ in team.drives if device.queue is not None
        }
        shift = min(pool.ashifts)
        needed = max((size.bit_length() - 1 for size in reported.values() if size > 0), default=0)
        flash = any(rotates(device) is False for device, _ in team.drives)
        if shift >= needed and (shift >= LEAST_SHIFT or not flash):
            continue
        wanted = max(needed, LEAST_SHIFT)
        large = ", ".join(name for name, size in reported.items() if size > 1 << shift)
        yield Finding(
            rule=RULE.name,
            object=pool.id,
            severity=Severity.WARN,
            summary=f"{pool.name} writes blocks smaller than its drives' sectors",
            evidence=f"ashift {shift} ({1 << shift} bytes); "
            + (f"physical sectors of {1 << needed} bytes: {large}" if large else "flash is written in pages of 4 KiB"),
            why="ashift is log2 of the smallest block that a vdev writes, and can never be changed. A block smaller "
            "than the sector is written by reading the sector, changing it, and writing it.",
            effect="Each small write costs the drive a read and a turn, or flash a page; a new drive with 4 KiB "
            "sectors cannot replace an old one.",
            numbers={"ashift": shift, "wanted": wanted},
            steps=[
                Step(
                    phase=Phase.REBUILD,
                    about=f"recreate {pool.name} with ashift={wanted} and send its datasets there: a vdev "
                    "keeps its ashift",
                    commands=[shell("zpool", "create", "-o", f"ashift={wanted}", "NEW")],
                    needs=[Needs.BACKUP, Needs.OFFLINE],
                )
            ],
        )


RULE = Rule("zfs-ashift", "ZFS writes no blocks smaller than its drives' sectors.", _check, ("pool.ashifts",))
