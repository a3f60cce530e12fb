"""Copies or parity that do not match. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell

from ..finding import Finding, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import PARITY


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        count = md.mismatches
        if not count or count < 0 or md.sync_action in ("resync", "recover", "repair"):
            continue
        parity = md.level in PARITY
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN if parity else Severity.NOTE,
            summary=f"{'parity and data' if parity else 'copies'} of {device.id} do not match",
            evidence=f"mismatch_cnt {count} sectors ({count * 512 // 1024} KiB) at the last check",
            why="Wrong parity gives wrong data when a drive fails."
            if parity
            else "md(4): on RAID1 and RAID10, memory that changes while it is written (swap, mapped files) leaves "
            "different copies where nothing reads them; a failing cable or memory looks the same.",
            effect="The array alone cannot show which block is wrong; after a drive fails it would be "
            "computed from the others."
            if parity
            else "A read may return either copy.",
            numbers={"mismatch_sectors": count},
            steps=[
                Step(
                    phase=Phase.PROTECT,
                    act=StepEffect.READ_ALL,
                    about=f"check {device.id} again: a count that stays does not come from writes in flight",
                    commands=[f"echo check > {shell(f'/sys/block/{device.id}/md/sync_action')}"],
                )
            ],
        )


RULE = Rule("md-mismatch", "Copies and parity matched at the last check.", _check, ("md.mismatches",))
