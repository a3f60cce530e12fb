"""The machine's state at both ends of a load, and its change in between."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from spindle import conditions
from spindle.conditions import jobs
from spindle.host import groups
from spindle.host.cputimes import CpuTimes, of_all, of_cpus
from spindle.host.devices import HERE, Device, text_of
from spindle.host.groups import Limits
from spindle.host.memory import swapped_pages
from spindle.result.record import MachineActivity

DURING = "during the run"


@dataclass(frozen=True)
class MachineState:
    """CPU times, heat, swapping and processes at one moment."""

    at_s: float
    cpu: CpuTimes | None
    throttle_events: int | None
    swapped_pages: int | None
    processes: jobs.Processes | None
    """None: the load is on no storage that others could use."""
    asked_cpus: tuple[int, ...] | None
    own_cpus: CpuTimes | None
    """Times of the CPUs that the load may run on."""
    groups: groups.Throttling

    @classmethod
    def now(cls, cpus: tuple[int, ...] | None, *, with_processes: bool = True) -> MachineState:
        # Processes are read closest to the load: reading them takes some milliseconds.
        seen = jobs.processes() if with_processes else None
        stat = text_of(HERE.proc / "stat") or ""
        return cls(
            time.monotonic(),
            of_all(stat),
            conditions.throttle_events(),
            swapped_pages(),
            seen,
            cpus,
            of_cpus(stat, groups.runnable_cpus(cpus)),
            groups.pressure(),
        )

    def until_now(
        self,
        own_user_ns: int,
        devices: Sequence[Device],
        sampler: conditions.Sampler,
        limits: Limits,
        own_pids: Collection[int] = (),
    ) -> MachineActivity:
        """Changes since then, without the load's own: its user time, and its processes if they are not this one.

        `limits`: those of this process's groups when the load began.
        """
        after = self.now(self.asked_cpus, with_processes=self.processes is not None)
        others = iowait = steal = None
        if self.cpu is not None and after.cpu is not None:
            ticks = max(1, after.cpu.total - self.cpu.total)
            # User time only: interrupts and kernel threads serve the load itself.
            own = own_user_ns / 1e9 * os.sysconf("SC_CLK_TCK") / ticks
            others = max(0.0, (after.cpu.user - self.cpu.user) / ticks - own)
            iowait = max(0, after.cpu.iowait - self.cpu.iowait) / ticks
            steal = max(0, after.cpu.steal - self.cpu.steal) / ticks
        seconds = max(after.at_s - self.at_s, 1e-9)
        seen = self._others(after, seconds, devices, own_pids)
        throttled = _increase(self.groups.cpu_throttled_ns, after.groups.cpu_throttled_ns)
        found = conditions.array_activity(devices)
        if self.processes is not None:
            found = [*found, jobs.jobs(seen, DURING, only_known=not own_pids)]
        return MachineActivity(
            cpu_others=others,
            cpu_iowait=iowait,
            cpu_steal=steal,
            throttle_events=_increase(self.throttle_events, after.throttle_events),
            swapped_pages=_increase(self.swapped_pages, after.swapped_pages),
            cpus=limits.usable_cpus(self.asked_cpus),
            cpus_idle=_idle_share(self.own_cpus, after.own_cpus),
            group_throttled_s=None if throttled is None else throttled / 1e9,
            group_memory_full=_increase(self.groups.memory_full, after.groups.memory_full),
            findings=[asdict(finding) for finding in found],
            samples=sampler.samples,
            temperature_limits=sampler.limits,
            jobs=jobs.to_dicts([job for job in seen if job.on_target]),
        )

    def _others(
        self, after: MachineState, seconds: float, devices: Sequence[Device], own_pids: Collection[int]
    ) -> list[jobs.Job]:
        """Processes that moved data meanwhile, or are known to disturb disks."""
        if self.processes is None or after.processes is None:
            return []
        moved = jobs.between(self.processes, after.processes, seconds, devices)
        return [job for job in moved if job.pid not in own_pids]


def _idle_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    if before is None or after is None or (ticks := after.total - before.total) <= 0:
        return None
    return max(0, after.idle + after.iowait - before.idle - before.iowait) / ticks


def _increase(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)
