"""Members of an array with sectors of different sizes. See docs/reference/doctor."""

from __future__ import annotations

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import DriveGroup


def _check(case: RuleInput) -> Results:
    for team in case.stack.teams():
        logical = _sizes(team, "logical_block_size")
        physical = _sizes(team, "physical_block_size")
        if len(set(logical.values())) > 1:
            yield _found(team, "logical", logical, Severity.WARN)
        elif len(set(physical.values())) > 1:
            yield _found(team, "physical", physical, Severity.NOTE)


def _sizes(team: DriveGroup, field: str) -> dict[str, int]:
    reported = {device.id: getattr(device.queue, field, None) for device, _ in team.drives}
    return {name: size for name, size in reported.items() if size and size > 0}


def _found(team: DriveGroup, which: str, sizes: dict[str, int], severity: Severity) -> Finding:
    least, most = min(sizes.values()), max(sizes.values())
    few = sorted(name for name, size in sizes.items() if size == least)
    many = sorted(name for name, size in sizes.items() if size == most)
    return Finding(
        rule=RULE.name,
        object=team.name,
        severity=severity,
        summary=f"the members of {team.name} have {which} sectors of {least} and {most} bytes",
        evidence=f"{', '.join(few)}: {least}; {', '.join(many)}: {most}",
        why="The array takes the largest logical sector of its members: a file system made for smaller ones cannot be "
        "mounted any more, and a drive with larger sectors cannot be added to an array of smaller ones."
        if which == "logical"
        else "A write smaller than a member's physical sector is read there first, and written a turn later; "
        "partitions and file systems that are aligned for the old drives may not be for the new one.",
        effect="A replacement that does not fit, which shows on the day of the failure."
        if which == "logical"
        else "Some members are slower at small writes, and the array is as slow as they are.",
        numbers={"smallest_bytes": least, "largest_bytes": most},
        steps=[
            Step(
                phase=Phase.REBUILD,
                act=StepEffect.REPLACE,
                about=f"give {team.name} members of one kind; many drives can be formatted to the other size, which "
                "erases them (sg_format, hdparm --set-sector-size, nvme format)",
                needs=[Needs.BACKUP, Needs.HARDWARE],
            )
        ],
    )


RULE = Rule(
    "sector-sizes",
    "The members of an array have sectors of one size.",
    _check,
    ("queue.logical_block_size", "queue.physical_block_size"),
)
