"""Flash whose endurance is nearly used up. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.inspect.model import Smart

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect, UnjudgedPart
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, rotates

WORN_PERCENT = 80
"""A replacement should be planned from here on."""
USED_UP_PERCENT = 100
"""The endurance that its maker guarantees is used up (NVMe, Percentage Used; it may go on)."""


def _check(case: RuleInput) -> Results:
    for name, smart, why in _flash(case.stack):
        used = smart.used_percent if smart is not None else None
        if smart is None or used is None:
            yield UnjudgedPart(rule=RULE.name, object=name, why=why)
            continue
        if used < WORN_PERCENT:
            continue
        rate = used / (smart.power_on_hours / 24) if smart.power_on_hours and smart.power_on_hours > 0 else None
        left = (USED_UP_PERCENT - used) / rate if rate and used < USED_UP_PERCENT else None
        pace = f"; {left:.0f} days left at its pace so far" if left is not None else ""
        yield Finding(
            rule=RULE.name,
            object=name,
            severity=Severity.WARN,
            summary=f"{name} has used up {'all' if used >= USED_UP_PERCENT else 'most'} of its endurance",
            evidence=f"{used} % used{pace}",
            why="A cell survives a limited number of writes; the maker guarantees that number, and provides spare "
            "blocks for cells that fail sooner. Drives of one array got the same writes: they wear out together.",
            effect="Retention shrinks, errors are corrected more often (slower reads), then blocks are lost; "
            "a drive may become read-only at the end.",
            numbers={"used_percent": used, **({"days_left": left} if left is not None else {})},
            steps=[
                Step(
                    phase=Phase.PROTECT,
                    act=StepEffect.REPLACE,
                    about=f"plan the replacement of {name}, in an array one member at a time",
                    needs=[Needs.HARDWARE],
                )
            ],
        )


def _flash(stack: Stack) -> Iterator[tuple[str, Smart | None, str]]:
    """Flash and possible flash, its health, and why its wear is not known."""
    silent = "the drive does not report its wear, or under an unknown name"
    for device, drive in stack.drives():
        hidden = drive.transport == "raid" and stack.raid_of(drive) is not None  # its drives are listed below
        if rotates(device) is not True and not hidden:
            yield device.id, drive.smart, drive.unknown.get("smart", silent)
    for controller, raid in stack.raids():
        for behind in raid.drives:
            if behind.medium == "SSD":
                yield f"{controller.id}/{behind.name}", behind.smart, behind.unknown.get("smart", silent)


RULE = Rule("wear", "Flash has endurance left.", _check)
