"""Flash that the kernel treats as a rotating drive, or the other way round. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device, Drive

from ..finding import Finding, Severity, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, named_flash


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        flag = device.queue.rotational if device.queue is not None else None
        turns, words = _truth(case.stack, device, drive)
        if flag not in (0, 1) or turns is None or turns == bool(flag):
            continue
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"the kernel treats {device.id} as {'flash' if turns else 'a rotating drive'}, which it is not",
            evidence=f"rotational {flag}; {words}",
            why="This flag controls schedulers, read-ahead of swap, md's read balancing, btrfs and XFS: whether to "
            "idle for the next request near by, how to spread reads, how to lay out files.",
            effect="RAID1 and RAID10 send reads to the member with the fewest requests instead of the nearest head, "
            "and allocators spread data that should be together."
            if turns
            else "Schedulers wait for neighbouring requests without a gain: bfq and cfq idle up to 8 ms after each "
            "synchronous request; its interrupts feed the entropy pool.",
            numbers={"rotational": float(flag)},
            steps=knob(device.id, rotational=int(turns)),
        )


def _truth(stack: Stack, device: Device, drive: Drive) -> tuple[bool | None, str]:
    """The drive's own report; for a RAID unit the type of all its drives."""
    if drive.rotation_rpm is not None:
        said = f"it turns at {drive.rotation_rpm} rpm" if drive.rotation_rpm else "it reports that it does not rotate"
        return drive.rotation_rpm > 0, said
    if named_flash(drive):
        return False, f"its model is {drive.model}"
    mediums = {behind.medium for behind in stack.unit_drives(device, drive)} if drive.transport == "raid" else set()
    if len(mediums) == 1 and (medium := mediums.pop()) in ("HDD", "SSD"):
        return medium == "HDD", f"all drives of the unit are {medium}"
    return None, ""


RULE = Rule("rotational", "The kernel knows which drives rotate.", _check, ("queue.rotational", "drive.rotation_rpm"))
