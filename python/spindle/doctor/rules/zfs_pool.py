"""A ZFS pool that is unhealthy, nearly full, or has had errors. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.base.units import si_size
from spindle.inspect.model import Pool

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput

DOWN = ("FAULTED", "UNAVAIL", "SUSPENDED", "REMOVED")
FULL_SHARE = 0.1
"""Below this free space comes in pieces too small for a record (zpoolconcepts(7); OpenZFS workload tuning)."""


def _check(case: RuleInput) -> Results:
    for pool in case.stack.inventory.pools:
        bad = [f"{one.path} {one.state}" for one in pool.members if one.state not in ("ONLINE", "AVAIL", "INUSE")]
        errors = [f"{one.path} {one.errors} errors" for one in pool.members if one.errors]
        if pool.state not in ("ONLINE", None) or bad or errors or pool.errors is not None:
            yield _unwell(pool, bad, errors)
        if pool.size_bytes and pool.free_bytes is not None and pool.free_bytes < FULL_SHARE * pool.size_bytes:
            yield _full(pool, pool.size_bytes, pool.free_bytes)


def _unwell(pool: Pool, bad: list[str], errors: list[str]) -> Finding:
    seen = [f"state {pool.state}", *bad, *errors, *([pool.errors] if pool.errors else [])]
    lost = pool.state in DOWN or pool.errors is not None
    busy = pool.scanning == "resilver"
    steps = [
        Step(
            phase=Phase.LOOK,
            about=f"list the damaged files and drives of {pool.name}",
            commands=[shell("zpool", "status", "-v", pool.name)],
        )
    ]
    if bad and not lost and not busy:
        steps.append(
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about=f"replace the failed parts of {pool.name} (OLD by NEW); a drive that was only unplugged comes "
                "back by `zpool online`",
                commands=[shell("zpool", "replace", pool.name, "OLD", "NEW")],
                needs=[Needs.HARDWARE],
            )
        )
    elif errors and not bad and not lost:
        steps.append(
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.READ_ALL,
                about=f"read all of {pool.name}: this repairs what it can, and the counts show which drive has "
                "errors again",
                commands=[shell("zpool", "scrub", pool.name)],
            )
        )
    return Finding(
        rule=RULE.name,
        object=pool.id,
        severity=Severity.CRITICAL if lost or bad else Severity.WARN,
        summary=f"{pool.name} {'has lost data' if pool.errors else 'is not healthy'}",
        evidence="; ".join(seen) + (f"; {pool.scan}" if busy and pool.scan else ""),
        why=pool.status or "ZFS counts every failed read, write and checksum, also those that redundancy repaired.",
        effect="Files cannot be read, or the pool has stopped."
        if lost
        else "Less or no redundancy; the next failure may lose data."
        if bad
        else "A drive, cable or memory that fails intermittently.",
        numbers={"bad_devices": len(bad), "devices_with_errors": len(errors)},
        steps=steps,
    )


def _full(pool: Pool, whole: int, free: int) -> Finding:
    fragmented = f", {pool.fragmentation_percent} % fragmented" if pool.fragmentation_percent is not None else ""
    return Finding(
        rule=RULE.name,
        object=pool.id,
        severity=Severity.WARN,
        summary=f"{pool.name} is nearly full",
        evidence=f"{si_size(free)} free of {si_size(whole)} ({100 * free / whole:.1f} %){fragmented}",
        why="ZFS never writes in place: it must find free space for each record, and in the end there are only "
        "small pieces (gang blocks, first-fit search by CPU).",
        effect="Writes slow down several times, and stay slow until space is free again.",
        numbers={"free_bytes": free, "size_bytes": whole, "free_share": free / whole},
        steps=[
            Step(
                phase=Phase.LOOK,
                about="see what uses the space, snapshots included",
                commands=[shell("zfs", "list", "-o", "space", "-r", pool.name)],
            )
        ],
    )


RULE = Rule(
    "zfs-pool", "ZFS pools are online, without errors, and have room left.", _check, ("pool.state", "pool.members")
)
