"""A SATA drive with unused native command queueing. See docs/reference/doctor."""

from __future__ import annotations

from ..finding import Finding, Severity, UnjudgedPart, knob
from ..rule import Results, Rule, RuleInput
from ..stack import rotates

MOST_TAGS = 31
"""libata reserves one of the 32 tags up to Linux 4.17; the driver lowers a larger value."""
MODELLED_GAIN = 1.20
"""Random reads, 32 outstanding, under mq-deadline: the simulator's HDS725050KLA360 (7200 rpm) with a queue of 31
compared with 1, 147.7 and 113.5 per second. docs/reference/doctor/ncq.md has the commands."""


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        if drive.transport != "sata" or drive.queue_depth != 1:
            continue
        if drive.ncq_supported is None:
            why = drive.unknown.get("ncq_supported", "not known whether the drive has NCQ")
            yield UnjudgedPart(rule=RULE.name, object=device.id, why=why)
            continue
        if not drive.ncq_supported:
            continue
        depth = min(drive.ncq_depth or MOST_TAGS, MOST_TAGS)
        turning = rotates(device)
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"{device.id} gets one command at a time though it can queue {drive.ncq_depth or 'many'}",
            evidence=f"queue_depth 1, NCQ depth {drive.ncq_depth or 'not known'}",
            why="With one command at a time the drive cannot choose the nearest request, and idles "
            "while the next command is on its way."
            if turning is not False
            else "With one command at a time only one of the drive's chips works.",
            effect=f"Random reads with many outstanding: a modelled 7200 rpm drive delivers {MODELLED_GAIN:.2f} times "
            "as many; one array measured 9 % more."
            if turning is not False
            else f"Random reads with many outstanding: up to {depth} chips can work instead of one.",
            numbers={"queue_depth": 1, "ncq_depth": float(drive.ncq_depth or 0)},
            steps=knob(device.id, queue_depth=depth),
        )


RULE = Rule("ncq", "SATA drives that can queue commands get more than one at a time.", _check)
