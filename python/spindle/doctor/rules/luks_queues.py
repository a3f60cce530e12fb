"""Encryption that passes each request between threads, which flash does not need. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device

from ..crypt import refresh
from ..finding import Finding, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import kernel_version, rotates

WANTED = ("no_read_workqueue", "no_write_workqueue")
SINCE = (5, 9)


def _check(case: RuleInput) -> Results:
    for device in case.stack.inventory.devices:
        lacking = missing(case, device)
        if not lacking:
            continue
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.NOTE,
            summary=f"{device.id} encrypts through work queues, and is on flash",
            evidence=f"dm-crypt without {' and '.join(lacking)}",
            why="dm-crypt passes each request to a work queue, and writes to another thread that sorts them: that "
            "helped rotating drives. With AES instructions the switch takes longer than the encryption.",
            effect="Each step is a switch of threads; Cloudflare measured twice the throughput and half the "
            "latency without them (2020). On a CPU without AES instructions, or for one writer, they may help: "
            "measure.",
            steps=[
                Step(
                    phase=Phase.TUNE,
                    about=f"encrypt in the caller's thread, now and (LUKS2) from now on; {device.id} stays open",
                    commands=[refresh(device, WANTED)],
                )
            ],
        )


def missing(case: RuleInput, device: Device) -> list[str]:
    """Flags that a mapping over flash lacks."""
    version = kernel_version(case.stack.inventory)
    segments = device.dm.segments if device.dm is not None else []
    crypt = [segment for segment in segments if segment.target == "crypt"]
    flash = [rotates(found) is False for found, _ in case.stack.bottoms(device)]
    if not crypt or not flash or not all(flash) or version is None or version < SINCE:
        return []
    return [word for word in WANTED if any(word not in segment.options for segment in crypt)]


RULE = Rule("luks-queues", "Encryption over flash uses no work queues.", _check, ("dm.segments",))
