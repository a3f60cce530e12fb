"""Members of an array that share a link that is too narrow for them. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spindle.base.commands import shell
from spindle.inspect.model import Device, Drive

from ..arithmetic import link_bytes_per_s, pcie_bytes_per_s
from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, gigatransfers, rotates

PLATTERS_BYTES_PER_S = 100e6
"""Mean sequential read of a rotating drive (7200 rpm since 2008); less per drive is a bottleneck."""
FLASH_BYTES_PER_S = 300e6
"""SATA flash reads 500 MB/s and more."""


@dataclass(frozen=True)
class _Link:
    name: str
    bytes_per_s: float | None
    drives: tuple[Device, ...]
    one_at_a_time: bool = False


def _check(case: RuleInput) -> Results:
    for array, md in case.stack.arrays():
        members = [found for _, device in case.stack.active(md) if (found := case.stack.drive_of(device)) is not None]
        names = [device.id for device, _ in members]
        for name in sorted({name for name in names if names.count(name) > 1}):
            shared = [device.id for _, device in case.stack.active(md) if case.stack.disk(device).id == name]
            yield _one_drive(array, name, shared)
        if len(set(names)) < len(names):
            continue
        for link in _links(case.stack, members):
            needed = sum(
                FLASH_BYTES_PER_S if rotates(device) is False else PLATTERS_BYTES_PER_S for device in link.drives
            )
            if link.one_at_a_time or (link.bytes_per_s is not None and link.bytes_per_s < needed):
                yield _found(array, link, needed)


def _links(stack: Stack, members: list[tuple[Device, Drive]]) -> Iterator[_Link]:
    ports: dict[str, list[tuple[Device, Drive]]] = {}
    expanders: dict[str, list[tuple[Device, Drive]]] = {}
    controllers: dict[str, list[Device]] = {}
    for device, drive in members:
        if drive.port is not None:
            ports.setdefault(drive.port, []).append((device, drive))
        if drive.expander is not None:
            expanders.setdefault(drive.expander, []).append((device, drive))
        if drive.controller is not None:
            controllers.setdefault(drive.controller, []).append(device)
    for name, found in ports.items():
        if len(found) > 1:
            speed = _slowest(found)
            how = ", by a port multiplier" if name.startswith("ata") else ""
            yield _Link(f"port {name}{how}", speed, tuple(device for device, _ in found), True)
    for name, found in expanders.items():
        lanes, speed = found[0][1].uplink_lanes, _slowest(found)
        if len(found) > 1 and lanes and speed is not None:
            yield _Link(f"{name}, {lanes} lanes up", lanes * speed, tuple(device for device, _ in found))
    for address, devices in controllers.items():
        controller = stack.inventory.controller(address)
        speed = gigatransfers(controller.link_speed) if controller is not None else None
        lanes = controller.link_width if controller is not None else None
        if len(devices) > 1 and speed is not None and lanes and 0 < lanes <= 32:
            yield _Link(f"{address}, PCIe {speed:g} GT/s x{lanes}", pcie_bytes_per_s(speed, lanes), tuple(devices))


def _slowest(drives: list[tuple[Device, Drive]]) -> float | None:
    speeds = [drive.link_gbps for _, drive in drives if drive.link_gbps is not None and drive.link_gbps > 0]
    return link_bytes_per_s(min(speeds)) if speeds else None


def _found(array: Device, link: _Link, needed: float) -> Finding:
    count = len(link.drives)
    names = ", ".join(device.id for device in link.drives)
    seen = f"{count} members ({names}) on {link.name}"
    numbers = {"members": float(count), "needed_bytes_per_s": needed}
    effect = "The port serves one drive at a time: the others idle meanwhile."
    if link.bytes_per_s is not None:
        seen += f": {link.bytes_per_s / 1e6:.0f} MB/s, {link.bytes_per_s / 1e6 / count:.0f} for each"
        numbers["link_bytes_per_s"] = link.bytes_per_s
        if link.bytes_per_s < needed:
            effect = (
                f"Sequential I/O of the array: at most {link.bytes_per_s / needed:.2f} times the speed of its drives."
            )
    return Finding(
        rule=RULE.name,
        object=array.id,
        severity=Severity.WARN,
        summary=f"members of {array.id} share a link",
        evidence=seen,
        why="What goes to all members at once goes over one link; and if it fails, all of them are gone at once.",
        effect=effect,
        numbers=numbers,
        steps=[
            Step(
                phase=Phase.REBUILD,
                about=f"spread the members of {array.id} over more ports, or connect more lanes",
                needs=[Needs.OFFLINE, Needs.HARDWARE],
            )
        ],
    )


def _one_drive(array: Device, name: str, members: list[str]) -> Finding:
    return Finding(
        rule=RULE.name,
        object=array.id,
        severity=Severity.CRITICAL,
        summary=f"several members of {array.id} are on one drive",
        evidence=f"{', '.join(members) or 'several members'} on {name}",
        why="A drive that fails takes all its members with it, and its heads seek between them for each request.",
        effect=f"No redundancy against the failure of {name}; a seek between the members for every stripe.",
        numbers={"members": float(len(members))},
        steps=[
            Step(
                phase=Phase.REBUILD,
                act=StepEffect.REPLACE,
                about=f"move all but one of the members of {array.id} on {name} to drives of their own (NEW)",
                commands=[
                    shell("mdadm", array.path, "--add", "/dev/NEW"),
                    shell("mdadm", array.path, "--replace", f"/dev/{members[-1]}"),
                ]
                if members
                else [],
                needs=[Needs.HARDWARE],
            )
        ],
    )


RULE = Rule("shared-link", "The members of an array do not wait for one link.", _check, ("drive.controller",))
