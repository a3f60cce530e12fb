"""The use of paths by multipath, and its behaviour without any path left. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base.commands import shell
from spindle.inspect.model import Device, Dm, PathGroup

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

BEST = "active/optimized"
WORSE = ("active/non-optimized", "standby", "unavailable")
"""ALUA access states (SPC-4 5.15.2.4; drivers/scsi/device_handler/scsi_dh_alua.c)."""
BLIND = "round-robin"
"""Selector that gives each path the same number of requests, even if requests already wait there."""


def _check(case: RuleInput) -> Results:
    for device in case.stack.inventory.devices:
        if device.dm is not None and device.dm.owner == "mpath":
            for severity, summary, evidence, why, effect, key, value in _faults(case.stack, device, device.dm):
                yield Finding(
                    rule=RULE.name,
                    object=device.id,
                    severity=severity,
                    summary=summary,
                    evidence=evidence,
                    why=why,
                    effect=effect,
                    steps=_steps(device, device.dm, f"{key} {value}"),
                )


Fault = tuple[Severity, str, str, str, str, str, str]


def _faults(stack: Stack, device: Device, dm: Dm) -> Iterator[Fault]:
    groups = [group for segment in dm.segments for group in segment.groups]
    states = [_states(stack, group) for group in groups]
    mixed = [at for at, found in enumerate(states) if BEST in found and set(found) & set(WORSE)]
    alike = (
        len(groups) > 1 and sum(found == [BEST] for found in states) > 1 and all(len(g.devices) == 1 for g in groups)
    )
    if mixed:
        yield (
            Severity.WARN,
            f"{device.id} treats its good and its bad paths alike",
            f"group {mixed[0] + 1} of {len(groups)}: {_described(groups[mixed[0]], states[mixed[0]])}",
            "Paths through the controller that does not own the LUN are forwarded to the other one. GroupedCommand by "
            "priority they are used only when the good ones fail.",
            "Part of the requests crosses between the controllers, and the path's latency becomes the worse one; some "
            "arrays move the LUN to and fro.",
            "path_grouping_policy",
            "group_by_prio",
        )
    elif alike:
        yield (
            Severity.WARN,
            f"{device.id} uses one path of {len(groups)} that are equally good",
            f"{len(groups)} groups of one path each, all {BEST}",
            "Only one group is used, until it fails. Equal paths in one group share the load.",
            f"The throughput of one link instead of {len(groups)}.",
            "path_grouping_policy",
            "group_by_prio",
        )
    blind = [group for group in groups if group.selector == BLIND and len(group.devices) > 1]
    if blind:
        yield (
            Severity.NOTE,
            f"{device.id} distributes requests evenly, however busy its paths are",
            f"selector {BLIND} over {', '.join(blind[0].devices)}",
            "A path behind a busy port or a slower link gets as many requests as the others, and they wait there. "
            "service-time and queue-length consider the requests in flight.",
            "Throughput and latency of the slowest path, times the number of paths.",
            "path_selector",
            '"service-time 0"',
        )
    yield from _when_none_is_left(device, dm)


def _when_none_is_left(device: Device, dm: Dm) -> Iterator[Fault]:
    if dm.queueing == "on":
        yield (
            Severity.WARN,
            f"{device.id} queues for ever when no path is left",
            "no_path_retry queue (multipathd: queueing on)",
            "Every process that uses it hangs until a path comes back, and cannot be killed; memory fills with "
            "dirty data, and the machine cannot be shut down.",
            "A storage outage becomes a hung machine; a cluster cannot fail over.",
            "no_path_retry",
            "12",
        )
    elif dm.queueing in ("off", "-"):
        yield (
            Severity.WARN,
            f"{device.id} fails at once when no path is left",
            f"no_path_retry fail (multipathd: queueing {dm.queueing})",
            "A controller that takes over, or a switch that restarts, leaves no path for some seconds.",
            "I/O errors in those seconds: the file system becomes read-only. Right for clusters that fail over "
            "themselves.",
            "no_path_retry",
            "12",
        )


def _states(stack: Stack, group: PathGroup) -> list[str]:
    found = (stack.device(name) for name in group.devices)
    return [device.drive.access_state or "" for device in found if device is not None and device.drive is not None]


def _described(group: PathGroup, states: list[str]) -> str:
    return ", ".join(f"{name} {state}" for name, state in zip(group.devices, states, strict=False))


def _steps(device: Device, dm: Dm, setting: str) -> list[Step]:
    return [
        Step(
            phase=Phase.LOOK,
            about=f"see the paths to {device.id} and its settings",
            commands=[shell("multipath", "-ll", dm.name or device.path)],
        ),
        Step(
            phase=Phase.REBUILD,
            act=StepEffect.SETTING,
            about=f"write `{setting}` to the device's section of /etc/multipath.conf, unless the storage array's maker "
            "advises otherwise, then reload it; every map follows at once",
            commands=["multipathd reconfigure"],
            needs=[Needs.EDIT],
        ),
    ]


RULE = Rule(
    "multipath-policy",
    "Multipath uses equal paths together, worse ones later, and waits a while when none is left.",
    _check,
    ("dm.segments", "dm.queueing"),
)
