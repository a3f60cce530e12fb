"""A USB disk in an array or pool. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell

from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        teams = case.stack.teams_of(device) if drive.transport == "usb" else []
        if not teams:
            continue
        names = " and ".join(team.name for team in teams)
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"{device.id}, a member of {names}, is connected by USB",
            evidence=f"transport usb{f', {drive.model}' if drive.model else ''}; in {names}",
            why="A USB bridge resets when a command takes long or the voltage drops, and the disk comes back as "
            "another one: the array drops it. Many bridges drop flushes, and hide SMART and error recovery control.",
            effect="A rebuild after each reset, over a shared bus; and a drive that fails without warning.",
            steps=[
                Step(
                    phase=Phase.LOOK,
                    about=f"see if its bridge lets SMART through ({device.id})",
                    commands=[shell("smartctl", "-n", "standby", "-d", "sat", "-x", device.path)],
                ),
                Step(
                    phase=Phase.REBUILD,
                    about=f"attach {device.id} to SATA or SAS; some bridges change sector size or hide the last "
                    f"sectors, so check the member's superblock before {names} is started again",
                    needs=[Needs.OFFLINE, Needs.HARDWARE],
                ),
            ],
        )


RULE = Rule("usb-member", "No member of an array or pool is connected by USB.", _check, ("drive.transport",))
