"""A resync or rebuild that a speed limit or the load slows down, now or in future. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device, Md

from ..finding import Finding, Severity, StepEffect, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, rotates

AT_THE_LIMIT = 0.9
"""Share of sync_speed_max above which the limit, not the drives, sets the speed."""
NEAR_THE_FLOOR = 2.0
"""Multiple of sync_speed_min below which the load slows the resync down."""
SLOW_KB = 50_000
"""A lower limit slows down any drive made since 2005."""
USUAL_KB = 200_000
"""The kernel's default limit (SYNC_RAID_SPEED max in drivers/md/md.c)."""
FLOOR_KB = 50_000
"""A third of the speed of a rotating drive: the rebuild continues, and the load gets the rest."""
HELD_BACK = ("resync", "recover", "reshape", "repair", "check")


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        limit, floor, speed = md.sync_speed_max_kb, md.sync_speed_min_kb, md.sync_speed_kb
        if limit is None or limit <= 0 or md.level in ("raid0", "linear"):
            continue
        busy = md.sync_action in HELD_BACK and bool(speed)
        if busy and speed and speed >= AT_THE_LIMIT * limit:
            wanted = max(2 * limit, USUAL_KB)
            yield _found(
                case.stack, device, md, f"runs at {_mb(speed)}, its limit is {_mb(limit)}", limit, "max", wanted
            )
        elif busy and speed and floor and speed <= NEAR_THE_FLOOR * floor and speed < SLOW_KB:
            seen = f"runs at {_mb(speed)} beside the load; its minimum is {_mb(floor)}"
            yield _found(case.stack, device, md, seen, speed, "min", FLOOR_KB)
        elif limit < SLOW_KB:
            yield _found(case.stack, device, md, f"its limit is {_mb(limit)}", limit, "max", USUAL_KB)


def _mb(kb: int) -> str:
    return f"{kb * 1.024 / 1000:.3g} MB/s"


def _found(stack: Stack, device: Device, md: Md, seen: str, pace: int, which: str, wanted: int) -> Finding:
    flash = [rotates(found) is False for found, _ in stack.bottoms(device)]
    left = md.component_bytes
    if md.sync_total_sectors and md.sync_done_sectors is not None:
        left = max(md.sync_total_sectors - md.sync_done_sectors, 0) * 512
    hours = left / (pace * 1024) / 3600 if left else None
    why = (
        "md reads or writes every member completely, and the limit slows it down though the drives could do more."
        if which == "max"
        else "md yields to other I/O down to sync_speed_min, which is 1 MB/s by default."
    )
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"the resync of {device.id} "
        f"{'is slowed down' if md.sync_action in HELD_BACK else 'would be slowed down'}",
        evidence=f"{seen}, for each member",
        why=why,
        effect=(f"The rest takes {_hours(hours)}" if hours is not None else "It takes longer")
        + "; until it has finished, redundancy may be incomplete."
        + (" Flash could do several times the kernel's default limit." if flash and all(flash) else ""),
        numbers={"pace_kb": pace, **({"hours_left": hours} if hours is not None else {})},
        steps=knob(device.id, StepEffect.PACE, **{f"sync_speed_{which}": wanted}),
    )


def _hours(hours: float) -> str:
    return f"{hours:.3g} hours" if hours < 72 else f"{hours / 24:.3g} days"


RULE = Rule("md-sync-speed", "A resync is not slowed down.", _check, ("md.sync_speed_max_kb", "md.sync_speed_min_kb"))
