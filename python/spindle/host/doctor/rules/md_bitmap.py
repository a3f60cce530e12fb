"""A write-intent bitmap whose chunk is tiny. See docs/doctor."""

from __future__ import annotations

from ...words import kib
from ..finding import Act, Finding, Needs, Phase, Severity, Step, shell
from ..rule import Case, Rule, Told

TINY_BYTES = 8 << 20
"""An eighth of what mdadm(8) takes by default; smaller ones come from hand or from long ago."""
DEFAULT_BYTES = 64 << 20


def _check(case: Case) -> Told:
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
            why="The first write to a chunk waits until its bit is on all members. The smaller the chunk, the more "
            "often that happens.",
            effect=f"Writing a GiB in sequence sets {now:.0f} bits instead of {then:.0f}, each a synchronous write "
            "with a seek there and back on all members, unless several fall together. A larger chunk costs little: "
            f"after a crash at least {kib(DEFAULT_BYTES)} are resynced for each place that was being written.",
            numbers={"bitmap_chunk_bytes": chunk, "bits_per_gib": now},
            steps=[
                Step(
                    phase=Phase.TUNE,
                    act=Act.METADATA,
                    about=f"make the bitmap of {device.id} anew with larger chunks; a crash between the two commands "
                    "means a whole resync",
                    commands=[
                        shell("mdadm", "--grow", device.path, "--bitmap=none"),
                        shell("mdadm", "--grow", device.path, "--bitmap=internal", "--bitmap-chunk=64M"),
                    ],
                )
            ]
            if md.bitmap in (None, "internal")
            else [
                Step(phase=Phase.REBUILD, about="make the bitmap file anew with larger chunks", needs=[Needs.OFFLINE])
            ],
        )


RULE = Rule(
    "md-bitmap", "Write-intent bitmaps have chunks large enough.", _check, ("md.bitmap", "md.bitmap_chunk_bytes")
)
