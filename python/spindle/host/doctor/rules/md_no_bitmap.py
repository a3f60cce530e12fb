"""An array without a write-intent bitmap: a crash means a whole resync. See docs/doctor."""

from __future__ import annotations

from ...words import size
from ..finding import Act, Finding, Phase, Severity, Step, shell
from ..rule import Case, Rule, Told

LARGE_BYTES = 100e9
"""From this size of a member on mdadm makes a bitmap by itself (mdadm(8), --bitmap)."""
READ_BYTES_PER_S = 150e6
"""What a drive that turns reads in the mean of its tracks."""
WITHOUT_NEED = ("journal", "ppl")
"""Policies that resync nothing after a crash."""


def _check(case: Case) -> Told:
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
            evidence=f"bitmap none, consistency by {md.consistency_policy or 'resync'}, {size(whole)} of each member",
            why="Without a bitmap md cannot know what was being written when the power failed, or while a member was "
            "away for a moment, and resyncs everything.",
            effect=f"At least {hours:.2g} hours at {READ_BYTES_PER_S / 1e6:.0f} MB/s after each crash and each member "
            "that comes back, instead of minutes; meanwhile reads and writes share the heads with it.",
            numbers={"member_bytes": whole, "resync_hours": hours},
            steps=[
                Step(
                    phase=Phase.PROTECT,
                    act=Act.METADATA,
                    about=f"add one to {device.id}; it costs a small write for each place that is newly written",
                    commands=[shell("mdadm", "--grow", device.path, "--bitmap=internal", "--bitmap-chunk=64M")],
                )
            ],
        )


RULE = Rule("md-no-bitmap", "Large arrays have a write-intent bitmap.", _check, ("md.bitmap", "md.component_bytes"))
