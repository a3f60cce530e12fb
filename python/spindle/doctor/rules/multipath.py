"""A failed path to a drive. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.inspect.model import Device, Dm, Drive

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

NVME_DOWN = ("resetting", "connecting", "deleting", "deleting (no IO)", "dead")
"""States in which an NVMe controller does not serve requests (nvme_sysfs_show_state in drivers/nvme/host/sysfs.c)."""
ANA_DOWN = ("inaccessible", "persistent-loss")
"""ANA states in which a path does not serve requests (NVMe Base 2.0, 8.1)."""
SCSI_DOWN = ("offline", "transport-offline", "deleted")
"""From sdev_states in drivers/scsi/scsi_sysfs.c."""


def _check(case: RuleInput) -> Results:
    for device in case.stack.inventory.devices:
        if device.dm is not None and device.dm.paths:
            yield from _of_dm(case.stack, device, device.dm)
        elif device.drive is not None and device.drive.paths:
            yield from _of_nvme(device, device.drive)


def _of_dm(stack: Stack, device: Device, dm: Dm) -> Results:
    failed = []
    for path in dm.paths:
        below = stack.device(path.device)
        state = below.drive.state if below is not None and below.drive is not None else None
        if not path.active or state in SCSI_DOWN:
            words = f"{path.device} failed" + (f" {path.failures} times" if path.failures else "")
            failed.append(words + (f", {state}" if state not in (None, "running") else ""))
    if failed or len(dm.paths) == 1:
        check = [
            shell("multipath", "-ll", dm.name or device.path),
            *(shell("cat", f"/sys/block/{word.split()[0]}/device/state") for word in failed),
        ]
        yield _found(device, failed, len(dm.paths), check)


def _of_nvme(device: Device, drive: Drive) -> Results:
    failed = []
    for path in drive.paths:
        if path.state in NVME_DOWN or path.ana_state in ANA_DOWN:
            words = ", ".join(word for word in (path.state, path.ana_state) if word)
            failed.append(f"{path.name} by {path.controller} ({words})")
    if failed:
        yield _found(device, failed, len(drive.paths), ["nvme list-subsys"])


def _found(device: Device, failed: list[str], ways: int, check: list[str]) -> Finding:
    left = ways - len(failed)
    if failed:
        summary, seen = f"{len(failed)} of {ways} paths to {device.id} failed", "; ".join(failed)
    else:
        summary, seen = f"{device.id} has only one path", "one path"
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.CRITICAL if left <= 1 else Severity.WARN,
        summary=summary,
        evidence=f"{seen}; {left} of {ways} paths left",
        why="Several paths exist so that one may fail. Each failed path takes away its share of the links.",
        effect="The next failure loses the device."
        if left <= 1
        else f"At most {left / ways:.2f} times the links' throughput.",
        numbers={"paths": ways, "failed": len(failed)},
        steps=[
            Step(phase=Phase.LOOK, about=f"see the paths to {device.id}", commands=check),
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about="repair the cable, switch port or adapter; a path that works again is used automatically",
                needs=[Needs.HARDWARE],
            ),
        ],
    )


RULE = Rule("multipath", "Every path to a drive works.", _check, ("dm.paths", "drive.paths"))
