"""Errors that a file system has counted. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput


def _check(case: RuleInput) -> Results:
    for found in case.stack.inventory.file_systems:
        if not found.errors or found.errors < 0:
            continue
        point = quote(found.mount_point)
        btrfs = found.type == "btrfs"
        stats = f"btrfs device stats {point}" if btrfs else f"dumpe2fs -h {quote(found.source)} | grep -i error"
        steps = [Step(phase=Phase.LOOK, about="see which", commands=[stats])]
        if btrfs:
            about = f"read all of {found.mount_point}, to find damaged files"
            scrub = [f"btrfs scrub start -B -r {point}"]
            steps.append(Step(phase=Phase.PROTECT, act=StepEffect.READ_ALL, about=about, commands=scrub))
        else:
            about = f"repair {found.mount_point}; take a backup first, damaged parts may go to lost+found"
            check = [f"umount {point}", f"e2fsck -f {quote(found.source)}"]
            steps.append(Step(phase=Phase.REBUILD, about=about, commands=check, needs=[Needs.BACKUP, Needs.OFFLINE]))
        yield Finding(
            rule=RULE.name,
            object=found.id,
            severity=Severity.CRITICAL,
            summary=f"{found.mount_point}: {found.type} has counted errors",
            evidence=f"{found.errors} counted",
            why="The file system found blocks that are not what they should be: a drive, cable, memory or its own "
            "code.",
            effect="Files may be damaged; it may become read-only at the next error.",
            numbers={"errors": found.errors},
            steps=steps,
        )


RULE = Rule("file-system-errors", "File systems have counted no errors.", _check, ("fs.errors",))
