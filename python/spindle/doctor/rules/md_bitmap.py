"""A write-intent bitmap with tiny chunks. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.base.units import kib

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput

TINY_BYTES = 8 << 20
"""An eighth of mdadm(8)'s default; smaller ones were set by hand or are very old."""
DEFAULT_BYTES = 64 << 20


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        chunk = md.bitmap_chunk_bytes
        if not chunk or chunk < 0 or chunk >= TINY_BYTES or md.bitmap == "none":
            continue
        now, then = (1 << 30) / chunk, (1 << 30) / DEFAULT_BYTES
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"the write-intent bitmap of {device.id} has tiny chunks",
            evidence=f"bitmap chunk {kib(chunk)}, usual {kib(DEFAULT_BYTES)}",
            why="The first write to a chunk waits until its bit is on all members. Smaller chunks make that more "
            "frequent.",
            effect=f"Writing a GiB in sequence sets {now:.0f} bits instead of {then:.0f}, each a synchronous write "
            "with a seek to it and back on all members, unless several coincide. A larger chunk costs little: "
            f"after a crash at least {kib(DEFAULT_BYTES)} are resynced for each place that was being written.",
            numbers={"bitmap_chunk_bytes": chunk, "bits_per_gib": now},
            steps=[
                Step(
                    phase=Phase.TUNE,
                    act=StepEffect.METADATA,
                    about=f"recreate the bitmap of {device.id} with larger chunks; a crash between the two commands "
                    "means a whole resync",
                    commands=[
                        shell("mdadm", "--grow", device.path, "--bitmap=none"),
                        shell("mdadm", "--grow", device.path, "--bitmap=internal", "--bitmap-chunk=64M"),
                    ],
                )
            ]
            if md.bitmap in (None, "internal")
            else [
                Step(phase=Phase.REBUILD, about="recreate the bitmap file with larger chunks", needs=[Needs.OFFLINE])
            ],
        )


RULE = Rule(
    "md-bitmap", "Write-intent bitmaps have large enough chunks.", _check, ("md.bitmap", "md.bitmap_chunk_bytes")
)
