"""A drive or controller on a slower link than it supports. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Controller, Device, Drive

from ..arithmetic import link_bytes_per_s, pcie_bytes_per_s
from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import gigatransfers, rotates

PLATTERS_ENOUGH_GBPS = 3.0
"""300 MB/s: no rotating drive reads faster."""
SAME = 0.99


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        now, most = drive.link_gbps, drive.link_max_gbps
        if now is None or most is None or not 0 < now < most:
            continue
        slow = now < PLATTERS_ENOUGH_GBPS or rotates(device) is False
        if slow or (drive.port_max_gbps is not None and drive.port_max_gbps >= most):
            yield _of_drive(device, drive, now, most, Severity.WARN if slow else Severity.NOTE)
    for controller in case.stack.inventory.controllers:
        yield from _of_controller(controller)
        yield from _of_fibre_channel(controller)


def _of_drive(device: Device, drive: Drive, now: float, most: float, severity: Severity) -> Finding:
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=severity,
        summary=f"the link of {device.id} is slower than the drive's",
        evidence=f"{now:g} Gb/s, the drive supports {most:g}"
        + (f", its port {drive.port_max_gbps:g}" if drive.port_max_gbps is not None else "")
        + (
            f"; {drive.smart.crc_errors} errors on the cable"
            if drive.smart is not None and drive.smart.crc_errors
            else ""
        ),
        why="Drive and port agree on the fastest speed that both support and that the cable allows; after errors the "
        "kernel lowers it.",
        effect=f"At most {link_bytes_per_s(now) / 1e6:.0f} MB/s instead of {link_bytes_per_s(most) / 1e6:.0f}."
        + (
            "" if severity is Severity.WARN else " Platters need no more, but a lowered speed is a sign of link errors."
        ),
        numbers={"link_gbps": now, "link_max_gbps": most},
        steps=[Step(phase=Phase.REBUILD, about=f"try another cable or port for {device.id}", needs=[Needs.HARDWARE])],
    )


def _of_controller(controller: Controller) -> Results:
    now, most = gigatransfers(controller.link_speed), gigatransfers(controller.link_max_speed)
    lanes, most_lanes = controller.link_width, controller.link_max_width
    if now is None or most is None or not lanes or not most_lanes or not 0 < lanes <= 32 or not 0 < most_lanes <= 32:
        return
    has, could = pcie_bytes_per_s(now, lanes), pcie_bytes_per_s(most, most_lanes)
    if has >= SAME * could:
        return
    yield Finding(
        rule=RULE.name,
        object=controller.id,
        severity=Severity.WARN if lanes < most_lanes else Severity.NOTE,
        summary=f"{controller.id} has a narrower or slower PCI Express link than it supports",
        evidence=f"{now:g} GT/s x{lanes}, it supports {most:g} GT/s x{most_lanes}",
        why="The slot has fewer lanes or is of an older generation, or a contact fails.",
        effect=f"At most {has / 1e6:.0f} MB/s instead of {could / 1e6:.0f} for all its drives together.",
        numbers={"link_bytes_per_s": has, "link_max_bytes_per_s": could},
        steps=[Step(phase=Phase.REBUILD, about=f"try another slot for {controller.id}", needs=[Needs.HARDWARE])],
    )


def _of_fibre_channel(controller: Controller) -> Results:
    now, most = controller.fc_gbps, controller.fc_max_gbps
    if now is None or most is None or not 0 < now < most:
        return
    yield Finding(
        rule=RULE.name,
        object=controller.id,
        severity=Severity.WARN,
        summary=f"the Fibre Channel link of {controller.id} is slower than the adapter's",
        evidence=f"{now:g} Gb/s, the adapter supports {most:g}",
        why="Adapter and switch port agree on the fastest speed that both support; a transceiver (SFP) of an older "
        "generation, a bad fibre or a fixed speed on the switch limits them.",
        effect=f"About {100 * now:.0f} MB/s each way instead of {100 * most:.0f}, for all LUNs behind it.",
        numbers={"link_gbps": now, "link_max_gbps": most},
        steps=[
            Step(
                phase=Phase.REBUILD,
                about=f"check the switch port, its transceiver and the fibre of {controller.id}; one path at a time",
                needs=[Needs.HARDWARE],
            )
        ],
    )


RULE = Rule(
    "drive-link",
    "Drives and controllers have the fastest link they support.",
    _check,
    ("drive.link_gbps", "drive.link_max_gbps", "controller.link_speed", "controller.fc_gbps"),
)
