"""The check before a run: looks for everything that could disturb it, over a window."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from spindle.host.devices import HERE, Device, Machine
from spindle.host.diskstats import DiskDelta, delta, snapshot
from spindle.host.memory import swapped_pages

from . import jobs as programs
from .arrays import array_activity
from .disks import is_busy, other_io
from .finding import ConditionFinding
from .memory import dirty, swap
from .own import OwnLoad
from .processors import clock, cpu, cpu_times, heat, throttle_events
from .selftest import self_tests


@dataclass(frozen=True)
class IdleCheck:
    """The machine's activity during the window."""

    seconds: float
    findings: list[ConditionFinding]
    devices: dict[str, DiskDelta]
    unchecked: list[str] = field(default_factory=list)
    """Checks that were not possible, each with its reason."""
    jobs: list[programs.Job] = field(default_factory=list)

    @property
    def level(self) -> str:
        """The worst level of all findings."""
        levels = [finding.level for finding in self.findings]
        return next((level for level in ("invalid", "warn") if level in levels), "ok")

    @property
    def bad(self) -> list[ConditionFinding]:
        """Findings that are not ok."""
        return [finding for finding in self.findings if finding.level != "ok"]

    def to_dict(self) -> dict[str, object]:
        """The JSON of the result record."""
        return {
            "seconds": self.seconds,
            "level": self.level,
            "findings": [asdict(finding) for finding in self.findings],
            "devices": {name: found.to_dict() for name, found in self.devices.items()},
            "unchecked": self.unchecked,
            "jobs": programs.to_dicts(self.jobs),
        }


def idle_check(
    devices: Sequence[Device], window_s: float = 1.0, machine: Machine = HERE, own: OwnLoad | None = None
) -> IdleCheck:
    """Watch the devices, and all below them, for `window_s` seconds before a run. `own`: a load that already runs.
    Counters of devices and dirty pages then include its work, so only the counters of processes show I/O of others."""
    testing, unchecked = self_tests(devices, machine)
    processes_before = programs.processes(machine)
    cpu_before, swap_before, heat_before = cpu_times(machine), swapped_pages(machine), throttle_events(machine)
    own_before = own.user_ticks(machine) if own is not None else 0
    disks_before = snapshot(devices, machine)
    time.sleep(window_s)
    disks_after = snapshot(devices, machine)
    cpu_after, swap_after, heat_after = cpu_times(machine), swapped_pages(machine), throttle_events(machine)
    own_ticks = max(0, own.user_ticks(machine) - own_before) if own is not None else None
    processes_after = programs.processes(machine)
    seconds = (disks_after.at_ns - disks_before.at_ns) / 1e9
    changes = delta(disks_before, disks_after)
    running = programs.between(processes_before, processes_after, seconds, devices, machine)
    if own is not None:
        pids = set(own.pids())
        running = [job for job in running if job.pid not in pids]
    swapping = None if swap_before is None or swap_after is None else (swap_after - swap_before) / seconds
    found = [
        *(other_io(changes, programs.suspects(running)) if own is None else []),
        programs.jobs(running, only_known=own is None and any(is_busy(change) for change in changes.values())),
        *cpu(cpu_before, cpu_after, own_ticks),
        clock(machine),
        heat(heat_before, heat_after),
        *array_activity(devices, machine),
        *testing,
        swap(swapping or 0.0, machine),
        dirty(machine) if own is None else None,
    ]
    lacking = {
        "CPU time: /proc/stat cannot be understood": cpu_before is None or cpu_after is None,
        "heat of CPUs: this machine does not count it": heat_after is None,
        "swapping: /proc/vmstat does not count it": swapping is None,
        f"I/O of other processes: no right to read that of {processes_after.hidden}": processes_after.hidden > 0,
    }
    unchecked += [text for text, lacks in lacking.items() if lacks]
    unchecked += [
        f"I/O on {device.name}: the kernel does not count it"
        for device in devices
        if device.name.replace("!", "/") not in changes
    ]
    return IdleCheck(seconds, [finding for finding in found if finding is not None], changes, unchecked, running)
