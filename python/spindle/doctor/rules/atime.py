"""Mounts where every read causes a write. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from ..finding import Finding, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput

WITHOUT = ("vfat", "msdos", "exfat", "ntfs", "ntfs3", "iso9660", "udf", "squashfs", "erofs", "swap")
"""File systems without access times, with times to the day, or that are never written."""


def _check(case: RuleInput) -> Results:
    for found in case.stack.inventory.file_systems:
        options = {*found.options, *found.super_options}
        if found.atime != "strictatime" or found.type in WITHOUT or options & {"ro", "lazytime"}:
            continue
        yield Finding(
            rule=RULE.name,
            object=found.id,
            severity=Severity.WARN,
            summary=f"{found.mount_point} writes the access time of every read",
            evidence=f"mounted without relatime and noatime ({', '.join(found.options)[:80]})",
            why="Each read of a file or folder updates its inode, which is then written, with the journal, like any "
            "change. relatime writes it at most once a day, or after the file changed.",
            effect="A load of reads also writes: up to one inode for each file read, every commit (5 s on "
            "ext4, 30 s on XFS); on parity RAID each random write is four requests.",
            steps=[
                Step(
                    phase=Phase.TUNE,
                    about="write access times at most once a day; `noatime`: never (put it in /etc/fstab as well)",
                    commands=[f"mount -o remount,relatime {quote(found.mount_point)}"],
                )
            ],
        )


RULE = Rule("atime", "Reading a file does not cause writes.", _check)
