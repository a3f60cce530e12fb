"""An array with missing members, with too many to run, or that does not run. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.inspect.model import Device, DmRaid, Md

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import PARITY
from ..states import container, lost

DEAD = "D-"
"""Letters in dm-raid's status for a failed or missing member (dm-raid.rst)."""


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        if container(md):
            continue
        if lost(md) or md.array_state == "inactive":
            yield _down(device, md)
        elif md.degraded and md.degraded > 0:
            yield _degraded(device, md, md.degraded)
    for device in case.stack.inventory.devices:
        raid = device.dm.raid if device.dm is not None else None
        if raid is not None and set(raid.health) & set(DEAD):
            yield _of_lvm(device, raid)


def _degraded(device: Device, md: Md, missing: int) -> Finding:
    faulty = [member.device for member in md.members if "faulty" in member.state]
    rebuilding = [member.device for member in md.members if "spare" in member.state and member.slot is not None]
    left = _spare_failures(md, missing)
    seen = f"{missing} of {md.raid_disks if md.raid_disks is not None else 'its'} members missing"
    if faulty:
        seen += f"; faulty: {', '.join(faulty)}"
    if rebuilding:
        seen += f"; being rebuilt onto: {', '.join(rebuilding)}"
    tolerated = {
        None: "How many more failures it tolerates depends on which drive fails.",
        0: "The next failure loses all data.",
    }
    more = tolerated.get(left, f"It tolerates {left} more failure{'s' if left != 1 else ''}.")
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.CRITICAL,
        summary=f"{device.id} is degraded",
        evidence=seen,
        why="Data of the missing members exists only as redundancy, and must be computed for each read that wants it.",
        effect=f"{more} {_cost(md, missing)}".strip(),
        numbers={"missing": missing, **({"failures_left": left} if left is not None else {})},
        steps=_steps(device, faulty, len(rebuilding) >= missing),
    )


def _spare_failures(md: Md, missing: int) -> int | None:
    """Number of members that may still fail in any combination."""
    if md.level in PARITY:
        return max((2 if md.level == "raid6" else 1) - missing, 0)
    if md.level == "raid1" and md.raid_disks:
        return max(md.raid_disks - missing - 1, 0)
    return None


def _cost(md: Md, missing: int) -> str:
    if md.level not in PARITY or not md.raid_disks or md.raid_disks <= missing:
        return ""
    share = missing / md.raid_disks
    others = md.data_disks or md.raid_disks - 1
    reads = 1 - share + share * others
    return (
        f"{100 * share:.3g} % of random reads become {others}: {reads:.2f} requests for each on average, so at best "
        f"{(1 - share) / reads:.2f} times the random reads of the whole array."
    )


def _steps(device: Device, faulty: list[str], rebuilding: bool) -> list[Step]:
    remove = [shell("mdadm", device.path, "--remove", f"/dev/{name}") for name in faulty]
    steps = [_look(device)]
    if remove:
        about = f"remove the faulty members from {device.id}"
        steps.append(Step(phase=Phase.PROTECT, act=StepEffect.DROP, about=about, commands=remove))
    if not rebuilding:
        about = f"install a new drive and add it to {device.id} (in place of NEW)"
        add = shell("mdadm", device.path, "--add", "/dev/NEW")
        steps.append(Step(phase=Phase.PROTECT, act=StepEffect.ADD, about=about, commands=[add], needs=[Needs.HARDWARE]))
    return steps


def _look(device: Device) -> Step:
    about = f"list the missing members of {device.id}"
    return Step(phase=Phase.LOOK, about=about, commands=[shell("mdadm", "--detail", device.path)])


def _down(device: Device, md: Md) -> Finding:
    """Finding with read-only steps: the members have the only copy of the data."""
    members = [f"/dev/{member.device}" for member in md.members]
    missing = f"; {md.degraded} of {md.raid_disks} members missing" if md.degraded and md.raid_disks else ""
    states = "; ".join(f"{member.device} {' '.join(member.state) or 'without a state'}" for member in md.members)
    examine = [shell("mdadm", "--examine", *members)] if members else []
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.CRITICAL,
        summary=f"{device.id} has lost more members than it tolerates" if lost(md) else f"{device.id} does not run",
        evidence=f"array_state {md.array_state or 'not known'}{missing}{f'; {states}' if states else ''}",
        why="md does not start an array, or serves errors, if members were dropped, not found in time, or disagree "
        "on how often they were written.",
        effect="Its data cannot be reached, or only in part. Writes to a member now may make that permanent.",
        numbers={"missing": md.degraded or 0},
        steps=[
            Step(
                phase=Phase.LOOK,
                about=f"see the state of {device.id} and its members: event counts that differ only a little are "
                "good news",
                commands=[shell("mdadm", "--detail", device.path), *examine],
            ),
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about=f"copy every member of {device.id} to a new drive first (ddrescue), and work on the copies: "
                "assemble those with the newest events by force, read-only",
                commands=[
                    shell("mdadm", "--stop", device.path),
                    shell("mdadm", "--assemble", "--force", "--readonly", device.path, "/dev/NEW"),
                ],
                needs=[Needs.BACKUP, Needs.OFFLINE, Needs.HARDWARE],
            ),
        ],
    )


def _of_lvm(device: Device, raid: DmRaid) -> Finding:
    missing = sum(letter in DEAD for letter in raid.health)
    dm = device.dm
    known = dm is not None and dm.volume_group is not None and dm.logical_volume is not None
    name = f"{dm.volume_group}/{dm.logical_volume}" if dm is not None and known else "VG/LV"
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.CRITICAL,
        summary=f"{device.id} is degraded",
        evidence=f"{missing} of {len(raid.health)} members of LVM's RAID failed or missing ({raid.health})",
        why="Data of the missing members exists only as redundancy, and must be computed for each read that wants it.",
        effect="The number of further failures it tolerates depends on its level.",
        numbers={"missing": missing},
        steps=[
            Step(
                phase=Phase.LOOK,
                about=f"list the missing members of {device.id}",
                commands=["lvs -a -o +devices,lv_health_status,raid_sync_action"],
            ),
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about=f"add a new physical volume (NEW) to the group, and let LVM rebuild {device.id} onto it",
                commands=[
                    shell("vgextend", name.partition("/")[0], "/dev/NEW"),
                    shell("lvconvert", "--repair", name),
                ],
                needs=[Needs.HARDWARE],
            ),
        ],
    )


RULE = Rule("md-degraded", "md arrays have all their members.", _check, ("md.degraded", "md.array_state", "dm.raid"))
