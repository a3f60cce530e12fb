"""An array without a write-intent bitmap: a crash causes a full resync. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.base.units import si_size

from ..finding import Finding, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput

LARGE_BYTES = 100e9
"""mdadm makes a bitmap by default from this size of a member on (mdadm(8), --bitmap)."""
READ_BYTES_PER_S = 150e6
"""Mean sequential read of a rotating drive over all tracks."""
WITHOUT_NEED = ("journal", "ppl")
"""Policies that need no resync after a crash."""


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        whole = md.component_bytes
        if md.level in ("raid0", "linear", None) or md.bitmap != "none" or whole is None or whole < LARGE_BYTES:
            continue
        if md.consistency_policy in WITHOUT_NEED or device.read_only:
            continue
        hours = whole / READ_BYTES_PER_S / 3600
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"{device.id} has no write-intent bitmap",
            evidence=(
                f"bitmap none, consistency by {md.consistency_policy or 'resync'}, {si_size(whole)} of each member"
            ),
            why="Without a bitmap md does not know which blocks were being written when the power failed, or while "
            "a member was away for a moment, and resyncs everything.",
            effect=f"At least {hours:.2g} hours at {READ_BYTES_PER_S / 1e6:.0f} MB/s after each crash and each "
            "returning member, instead of minutes; meanwhile the resync competes with all reads and writes.",
            numbers={"member_bytes": whole, "resync_hours": hours},
            steps=[
                Step(
                    phase=Phase.PROTECT,
                    act=StepEffect.METADATA,
                    about=f"add one to {device.id}; it costs a small write for each newly written place",
                    commands=[shell("mdadm", "--grow", device.path, "--bitmap=internal", "--bitmap-chunk=64M")],
                )
            ],
        )


RULE = Rule("md-no-bitmap", "Large arrays have a write-intent bitmap.", _check, ("md.bitmap", "md.component_bytes"))
