"""A faulty member of an array, or one with errors. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.inspect.model import Device, MdMember

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        for member in md.members:
            if "journal" in member.state and "faulty" in member.state:
                yield _journal(device, member)
            elif "faulty" in member.state or (member.errors or 0) > 0 or member.bad_blocks:
                yield _found(device, member)


def _found(array: Device, member: MdMember) -> Finding:
    faulty = "faulty" in member.state
    seen = [f"{member.errors} read errors corrected" if member.errors else "", "faulty" if faulty else ""]
    seen.append(f"{member.bad_blocks} ranges of bad blocks" if member.bad_blocks else "")
    lost = bool(member.bad_blocks)
    return Finding(
        rule=RULE.name,
        object=member.device,
        severity=Severity.CRITICAL if faulty or lost else Severity.WARN,
        summary=f"{member.device}, a member of {array.id}, {'is faulty' if faulty else 'has had errors'}",
        evidence=f"{member.device} in {array.id}: {', '.join(word for word in seen if word)}",
        why="md rewrote the sectors it could not read; the drive may have replaced them by spares, or not. The "
        "count survives a restart with metadata 1.x."
        if not faulty
        else "A write to it failed, or its errors came too fast: md no longer uses it.",
        effect="Each such read took the drive's whole error recovery (seconds) and a read of the other members."
        if not faulty
        else "The array runs without it.",
        numbers={"errors": float(member.errors or 0), "bad_ranges": float(member.bad_blocks or 0)},
        steps=[
            Step(
                phase=Phase.LOOK,
                about=f"see the drive's own report on {member.device}",
                commands=[shell("smartctl", "-n", "standby", "-x", f"/dev/{member.device}")],
            ),
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.REPLACE,
                on=[array.id],
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


def _journal(array: Device, member: MdMember) -> Finding:
    anew = ["mdadm", "--readonly", array.path], ["mdadm", array.path, "--add-journal", "/dev/NEW"]
    return Finding(
        rule=RULE.name,
        object=member.device,
        severity=Severity.CRITICAL,
        summary=f"{member.device}, the journal of {array.id}, is faulty",
        evidence=f"{member.device} in {array.id}: {', '.join(member.state)}",
        why="A parity array with a journal writes there first, so that a crash in the middle of a stripe loses "
        "nothing. Without the journal md stops writing.",
        effect="The array is read-only until it has a journal again, or is changed to run without one.",
        steps=[
            Step(
                phase=Phase.LOOK, about=f"see its state ({array.id})", commands=[shell("mdadm", "--detail", array.path)]
            ),
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about=f"stop all writers to {array.id}, then add a new journal (NEW); mdadm(8), --add-journal",
                commands=[shell(*words) for words in anew],
                needs=[Needs.OFFLINE, Needs.HARDWARE],
            ),
        ],
    )


RULE = Rule(
    "md-member", "No member of an array is faulty or has had errors.", _check, ("member.errors", "member.bad_blocks")
)
