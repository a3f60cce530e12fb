"""CPUs: time that others take, clock, heat."""

from __future__ import annotations

import re

from spindle.base.words import listed
from spindle.host.cputimes import CpuTimes, of_all
from spindle.host.devices import HERE, Machine, int_of, text_of
from spindle.host.settings import cpu_folders, governors

from .finding import ConditionFinding

CPU_BUSY = 0.20
CPU_IOWAIT = 0.10
CPU_STEAL = 0.02

_OWN_CLOCK = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers that choose the clock themselves under `powersave`; `energy_performance_preference` says how."""
_EAGER = ("performance", "balance_performance")


def cpu_times(machine: Machine = HERE) -> CpuTimes | None:
    """Times of all CPUs together; None: not known."""
    return of_all(text_of(machine.proc / "stat") or "")


def cpu(before: CpuTimes | None, after: CpuTimes | None, own_user_ticks: int | None = None) -> list[ConditionFinding]:
    """Check the CPUs between two moments. Beside a running load (`own_user_ticks`), only user time of others counts:
    kernel time and waiting may be the load's."""
    if before is None or after is None or (total := after.total - before.total) <= 0:
        return []
    busy = max(0, after.user + after.system - before.user - before.system) / total
    iowait = max(0, after.iowait - before.iowait) / total
    if own_user_ticks is not None:
        busy, iowait = max(0, after.user - before.user - own_user_ticks) / total, 0.0
    steal = max(0, after.steal - before.steal) / total
    loud = [
        f"{name} {share * 100:.0f} %"
        for name, share, limit in (
            ("busy", busy, CPU_BUSY),
            ("waiting for I/O", iowait, CPU_IOWAIT),
            ("taken by the hypervisor", steal, CPU_STEAL),
        )
        if share > limit
    ]
    whose = "" if own_user_ticks is None else " with other programs"
    text = f"CPU {', '.join(loud)}{whose} before the run" if loud else f"CPU {busy * 100:.0f} % busy{whose}"
    evidence = {"busy": busy, "iowait": iowait, "steal": steal}
    return [ConditionFinding("cpu", "warn" if loud else "ok", text, evidence)]


def clock(machine: Machine = HERE) -> ConditionFinding | None:
    """Check that the clock does not follow the load, as short requests would find a slow CPU. None where the kernel
    does not set the clock (most virtual machines)."""
    found = {cpu: governor for cpu, governor in governors(machine).items() if re.fullmatch(r"[a-z_]{1,32}", governor)}
    if not found:
        return None
    slow: dict[str, int] = {}
    for name, governor in found.items():
        if governor != "performance" and not _chooses_eagerly(machine, name.partition(".")[0]):
            slow[governor] = slow.get(governor, 0) + 1
    evidence = {"cpus": float(len(found)), "not_performance": float(sum(slow.values()))}
    if slow:
        named = listed([f"{governor} on {count} of {len(found)} CPUs" for governor, count in sorted(slow.items())])
        text = f"the CPU clock follows the load (governor {named}): short requests find a slow CPU"
        return ConditionFinding("governor", "warn", text, evidence)
    return ConditionFinding("governor", "ok", f"governor {', '.join(sorted(set(found.values())))}", evidence)


def _chooses_eagerly(machine: Machine, cpu_name: str) -> bool:
    folder = machine.sys / "devices/system/cpu" / cpu_name / "cpufreq"
    return (
        text_of(folder / "scaling_driver") in _OWN_CLOCK and text_of(folder / "energy_performance_preference") in _EAGER
    )


def throttle_events(machine: Machine = HERE) -> int | None:
    """Number of times that CPUs were slowed down for heat since boot; None where the hardware does not count it.

    Every thread repeats its core's counter, and every core its package's: the largest of each counts once.
    """
    cores: dict[str, int] = {}
    packages: dict[str, int] = {}
    for folder in cpu_folders(machine):
        if not (folder / "thermal_throttle").is_dir():
            continue
        package = text_of(folder / "topology/physical_package_id") or folder.name
        core = f"{package}/{text_of(folder / 'topology/core_id') or folder.name}"
        for counts, place, name in (
            (cores, core, "core_throttle_count"),
            (packages, package, "package_throttle_count"),
        ):
            if (count := int_of(folder / "thermal_throttle" / name)) is not None:
                counts[place] = max(counts.get(place, 0), count)
    return sum([*cores.values(), *packages.values()]) if cores or packages else None


def heat(before: int | None, after: int | None) -> ConditionFinding | None:
    """Check if CPUs were slowed down for heat in between."""
    if before is None or after is None:
        return None
    events = max(0, after - before)
    text = (
        f"CPUs were slowed down for heat {events} times before the run" if events else "no CPU was slowed down for heat"
    )
    return ConditionFinding("throttling", "warn" if events else "ok", text, {"events": float(events)})
