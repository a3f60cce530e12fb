"""SATA links that sleep between requests. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.inspect.model import Device, Drive

from ..finding import Finding, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput

DEEP = ("min_power", "min_power_with_partial")
LIGHT = ("medium_power", "med_power_with_dipm")
"""Names from ata_lpm_policy_names in drivers/ata/libata-sata.c."""


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        policy = drive.link_power_policy
        team = bool(case.stack.teams_of(device))
        if policy in DEEP or (policy in LIGHT and team):
            yield _found(device, drive, policy or "", Severity.WARN if policy in DEEP else Severity.NOTE)


def _found(device: Device, drive: Drive, policy: str, severity: Severity) -> Finding:
    host = f"host{drive.scsi_address.split(':')[0]}" if drive.scsi_address is not None else None
    path = f"/sys/class/scsi_host/{host}/link_power_management_policy"
    setting = 'ATTR{link_power_management_policy}="max_performance"'
    rule = f'ACTION=="add", SUBSYSTEM=="scsi_host", KERNEL=="{host}", {setting}'
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=severity,
        summary=f"the link of {device.id} sleeps between requests",
        evidence=f"link_power_management_policy {policy}",
        why="A link that saves power must wake up for the next request; with some drives and controllers it fails then "
        "and is reset. With min_power hot plugging does not work either.",
        effect="Up to 10 µs to leave partial, up to 10 ms to leave slumber (Serial ATA), for each request after "
        "a pause.",
        steps=[
            Step(
                phase=Phase.TUNE,
                about=f"keep the link of {device.id} awake",
                commands=[f"echo max_performance > {quote(path)}"],
            ),
            Step(
                phase=Phase.KEEP,
                about="keep it awake at every boot, by a udev rule; tuned and TLP may also set it",
                commands=[f"echo {quote(rule)} > {quote(f'/etc/udev/rules.d/60-sata-power-{host}.rules')}"],
            ),
        ]
        if host is not None
        else [],
    )


RULE = Rule("sata-power", "SATA links do not sleep between requests.", _check, ("drive.link_power_policy",))
