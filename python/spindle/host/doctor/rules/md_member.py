"""A member of an array that is faulty or has had errors. See docs/doctor."""

from __future__ import annotations

from ...inspect.model import Device, MdMember
from ..finding import Finding, Needs, Phase, Severity, Step, shell
from ..rule import Case, Rule, Told


def _check(case: Case) -> Told:
    for device, md in case.stack.arrays():
        for member in md.members:
            if "faulty" in member.state or (member.errors or 0) > 0 or member.bad_blocks:
                yield _found(device, member)


def _found(array: Device, member: MdMember) -> Finding:
    faulty = "faulty" in member.state
    told = [f"{member.errors} read errors corrected" if member.errors else "", "faulty" if faulty else ""]
    told.append(f"{member.bad_blocks} ranges of bad blocks" if member.bad_blocks else "")
    lost = bool(member.bad_blocks)
    return Finding(
        rule=RULE.name,
        object=member.device,
        severity=Severity.CRITICAL if faulty or lost else Severity.WARN,
        summary=f"{member.device}, a member of {array.id}, {'is faulty' if faulty else 'has had errors'}",
        evidence=f"{member.device} in {array.id}: {', '.join(word for word in told if word)}",
        why="md wrote back what it could not read; the drive may have put a spare sector in its place, or not. The "
        "count outlives a restart with metadata 1.x."
        if not faulty
        else "A write to it failed, or its errors came too fast: md no longer uses it.",
        effect="Each such read took the drive's whole error recovery (seconds) and a read of the other members."
        if not faulty
        else "The array does without it.",
        numbers={"errors": float(member.errors or 0), "bad_ranges": float(member.bad_blocks or 0)},
        steps=[
            Step(
                phase=Phase.LOOK,
                about=f"see the drive's own view of {member.device}",
                commands=[shell("smartctl", "-x", f"/dev/{member.device}")],
            ),
            Step(
                phase=Phase.PROTECT,
                about=f"replace {member.device} (NEW in its place), keeping it until the new one is ready",
                commands=[
                    shell("mdadm", array.path, "--add", "/dev/NEW"),
                    shell("mdadm", array.path, "--replace", f"/dev/{member.device}"),
                ],
                needs=[Needs.HARDWARE],
            ),
        ]
        if not faulty
        else [],
    )


RULE = Rule("md-member", "No member of an array is faulty or has had errors.", _check)
