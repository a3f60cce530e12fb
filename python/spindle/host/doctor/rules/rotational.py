"""The kernel takes flash for a drive that turns, or the other way round. See docs/doctor."""

from __future__ import annotations

from ...inspect.model import Device, Drive
from ..finding import Finding, Severity, knob
from ..rule import Case, Rule, Told
from ..stack import Stack, named_flash


def _check(case: Case) -> Told:
    for device, drive in case.stack.drives():
        flag = device.queue.rotational if device.queue is not None else None
        turns, words = _truth(case.stack, device, drive)
        if flag not in (0, 1) or turns is None or turns == bool(flag):
            continue
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"the kernel takes {device.id} for {'flash' if turns else 'a drive that turns'}, which it is not",
            evidence=f"rotational {flag}; {words}",
            why="Schedulers, read-ahead of swap, md's read balancing, btrfs and XFS decide by this flag: whether to "
            "idle for the next request near by, how to spread reads, how to lay out files.",
            effect="RAID1 and RAID10 send reads to the member with the fewest requests instead of the nearest head, "
            "and allocators spread what should lie together."
            if turns
            else "Schedulers wait for neighbours that cost nothing to reach: bfq and cfq idle up to 8 ms after each "
            "synchronous request; its interrupts feed the entropy pool.",
            numbers={"rotational": float(flag)},
            steps=knob(device.id, rotational=int(turns)),
        )


def _truth(stack: Stack, device: Device, drive: Drive) -> tuple[bool | None, str]:
    """What the drive itself says; of a RAID unit what all its drives are."""
    if drive.rotation_rpm is not None:
        said = f"it turns at {drive.rotation_rpm} rpm" if drive.rotation_rpm else "it says it does not turn"
        return drive.rotation_rpm > 0, said
    if named_flash(drive):
        return False, f"its model is {drive.model}"
    mediums = {behind.medium for behind in stack.unit_drives(device, drive)} if drive.transport == "raid" else set()
    if len(mediums) == 1 and (medium := mediums.pop()) in ("HDD", "SSD"):
        return medium == "HDD", f"all drives of the unit are {medium}"
    return None, ""


RULE = Rule("rotational", "The kernel knows which drives turn.", _check, ("queue.rotational", "drive.rotation_rpm"))
