"""PCI Express links of NVMe drives that sleep between requests. See docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.inspect.model import Controller

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect, UnjudgedPart
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

SAVING = ("powersave", "powersupersave")
"""Policies that enable states which firmware left off (drivers/pci/pcie/aspm.c)."""


def _check(case: RuleInput) -> Results:
    policy = case.stack.inventory.link_power_policy
    for controller in case.stack.inventory.controllers:
        if not _carries_nvme(case.stack, controller):
            continue
        deep = [name for name in controller.link_power_states if name.startswith("l1")]
        if not deep and policy not in SAVING:
            if why := controller.unknown.get("link_power_states"):
                yield UnjudgedPart(rule=RULE.name, object=controller.id, why=why)
            continue
        yield Finding(
            rule=RULE.name,
            object=controller.id,
            severity=Severity.WARN if policy in SAVING else Severity.NOTE,
            summary=f"the link of {controller.id}, an NVMe drive's, sleeps between requests",
            evidence=", ".join([f"{', '.join(deep)} on"] * bool(deep) + [f"policy {policy}"] * bool(policy)),
            why="Between requests the link enters L1 and its substates, and must wake up for the next one.",
            effect="Up to 64 µs and more to leave L1, as the device reports it; L1.2 adds the time to power up.",
            steps=[
                *(_awake(controller, name) for name in deep),
                Step(
                    phase=Phase.REBUILD,
                    act=StepEffect.SETTING,
                    about="keep all links awake: add this to the kernel's command line",
                    commands=["pcie_aspm.policy=performance"],
                    needs=[Needs.OFFLINE],
                ),
            ],
        )


def _carries_nvme(stack: Stack, controller: Controller) -> bool:
    found = (stack.device(name) for name in controller.drives)
    return any(device is not None and device.drive is not None and device.drive.transport == "nvme" for device in found)


def _awake(controller: Controller, name: str) -> Step:
    path = f"/sys/bus/pci/devices/{controller.id}/link/{name}_aspm"
    return Step(phase=Phase.TUNE, about=f"switch {name} off for {controller.id}", commands=[f"echo 0 > {quote(path)}"])


RULE = Rule("pcie-power", "Links of NVMe drives do not sleep between requests.", _check)
