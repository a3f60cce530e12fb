"""A USB disk in an array or pool. See docs/doctor."""

from __future__ import annotations

from ..finding import Finding, Needs, Phase, Severity, Step, shell
from ..rule import Case, Rule, Told


def _check(case: Case) -> Told:
    for device, drive in case.stack.drives():
        teams = case.stack.teams_of(device) if drive.transport == "usb" else []
        if not teams:
            continue
        names = " and ".join(team.name for team in teams)
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"{device.id}, a member of {names}, hangs on USB",
            evidence=f"transport usb{f', {drive.model}' if drive.model else ''}; in {names}",
            why="A USB bridge resets when a command takes long or the voltage dips, and the disk comes back as another "
            "one: the array throws it out. Many bridges drop flushes, hide SMART and error recovery control.",
            effect="A rebuild for each reset, over a link that the bus shares; and a drive that fails without a sign.",
            steps=[
                Step(
                    phase=Phase.LOOK,
                    about=f"see whether its bridge lets SMART through ({device.id})",
                    commands=[shell("smartctl", "-n", "standby", "-d", "sat", "-x", device.path)],
                ),
                Step(
                    phase=Phase.REBUILD,
                    about=f"attach {device.id} to SATA or SAS; some bridges change sector size or hide the last "
                    "sectors, "
                    f"so look at the member's superblock before {names} is started again",
                    needs=[Needs.OFFLINE, Needs.HARDWARE],
                ),
            ],
        )


RULE = Rule("usb-member", "No member of an array or pool hangs on USB.", _check, ("drive.transport",))
