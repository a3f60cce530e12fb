"""Errors that a file system has counted. See docs/doctor."""

from __future__ import annotations

from shlex import quote

from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Case, Rule, Told


def _check(case: Case) -> Told:
    for found in case.stack.inventory.file_systems:
        if not found.errors or found.errors < 0:
            continue
        point = quote(found.mount_point)
        steps = [
            Step(
                phase=Phase.LOOK,
                about="see which, and whether files are hit",
                commands=[f"btrfs device stats {point}", f"btrfs scrub start -B -r {point}"]
                if found.type == "btrfs"
                else [f"dumpe2fs -h {quote(found.source)} | grep -i error"],
            )
        ]
        if found.type != "btrfs":
            about = f"mend {found.mount_point}; take a backup first, what is damaged may go to lost+found"
            check = [f"umount {point}", f"e2fsck -f {quote(found.source)}"]
            steps.append(Step(phase=Phase.REBUILD, about=about, commands=check, needs=[Needs.BACKUP, Needs.OFFLINE]))
        yield Finding(
            rule=RULE.name,
            object=found.id,
            severity=Severity.CRITICAL,
            summary=f"{found.mount_point}: {found.type} has met errors in itself",
            evidence=f"{found.errors} counted",
            why="The file system found blocks that are not what they should be: a drive, cable, memory or its own "
            "code.",
            effect="Files may be damaged; it may turn read-only at the next one.",
            numbers={"errors": found.errors},
            steps=steps,
        )


RULE = Rule("file-system-errors", "File systems have counted no errors.", _check)
