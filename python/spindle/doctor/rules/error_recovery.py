"""A member whose error recovery takes longer than the kernel's timeout. See docs/reference/doctor."""

from __future__ import annotations

import re

from spindle.base.commands import shell
from spindle.inspect.model import Device, Drive

from ..finding import Finding, Phase, Severity, Step, UnjudgedPart, knob
from ..rule import Results, Rule, RuleInput

PATIENT_SECONDS = 180
"""Drives without a limit give up after two to three minutes (Linux RAID wiki, Timeout Mismatch)."""
WANTED_DECISECONDS = 70
"""Setting of drives made for RAID: 7 s."""


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        teams = [team.name for team in case.stack.teams_of(device) if team.redundant]
        waits = drive.command_timeout_seconds
        if not teams or drive.transport not in ("sata", "usb") or waits is None or waits <= 0:
            continue
        limit = drive.error_recovery_deciseconds
        if limit is None and drive.error_recovery_supported is not False:
            why = drive.unknown.get("smart", "smartctl does not report its SCT ERC setting")
            yield UnjudgedPart(rule=RULE.name, object=device.id, why=why)
            continue
        if limit is None and drive.error_recovery_supported is False:
            limit = 0
        if limit == 0 and waits < PATIENT_SECONDS:
            yield _found(
                device, drive, teams, waits, "no limit" if drive.error_recovery_supported is not False else None
            )
        elif limit is not None and limit >= 10 * waits:
            yield _found(device, drive, teams, waits, f"{limit / 10:g} s")


def _found(device: Device, drive: Drive, teams: list[str], waits: int, limit: str | None) -> Finding:
    has = f"its error recovery has {limit}" if limit == "no limit" else f"its error recovery takes up to {limit}"
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"{device.id} may take longer to read a bad sector than the kernel waits",
        evidence=f"{has if limit else 'it has no error recovery control'}, the kernel waits {waits} s; a member of "
        f"{' and '.join(teams)}",
        why="A sector that is hard to read keeps a desktop drive busy for two minutes and more. The kernel gives up "
        "earlier, resets the link, gets no answer, and the array drops a drive that had one bad sector. With a "
        "limit the drive reports the error in time, and the array computes the sector and writes it again.",
        effect="The first bad sector costs the member; the second, during the rebuild, the array.",
        numbers={"command_timeout_seconds": waits},
        steps=_limited(device) if limit else _patient(device),
    )


def _limited(device: Device) -> list[Step]:
    limits = f"scterc,{WANTED_DECISECONDS},{WANTED_DECISECONDS}"
    command = shell("smartctl", "-q", "errorsonly", "-l", limits, device.path)
    serial = device.drive.serial if device.drive is not None else None
    lasting = serial is not None and re.fullmatch(r"[A-Za-z0-9_-]{4,40}", serial)  # sda may be another drive tomorrow
    match = f'ENV{{DEVTYPE}}=="disk", ENV{{ID_SERIAL_SHORT}}=="{serial}"' if lasting else f'KERNEL=="{device.id}"'
    rule = f'ACTION=="add|change", {match}, RUN+="/usr/sbin/smartctl -q errorsonly -l {limits} %N"'
    file = f"/etc/udev/rules.d/60-scterc-{serial if lasting else device.id}.rules"
    return [
        Step(phase=Phase.TUNE, about=f"make {device.id} give up after 7 s", commands=[command]),
        Step(
            phase=Phase.KEEP,
            about="the drive forgets it at power-off: set it at every boot, by a udev rule",
            commands=[f"echo {shell(rule)} > {shell(file)}"],
        ),
    ]


def _patient(device: Device) -> list[Step]:
    return knob(device.id, timeout=PATIENT_SECONDS)


RULE = Rule(
    "error-recovery",
    "Members of an array give up on a bad sector before the kernel gives up on them.",
    _check,
    ("drive.command_timeout_seconds",),
)
