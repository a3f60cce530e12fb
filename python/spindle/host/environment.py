"""The machine of a result: kernel, CPU, memory, block stack, versions."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from importlib import metadata

from .devices import HERE, Machine, text_of
from .memory import memory
from .mounts import swaps
from .settings import governors
from .stack import PathLike, stack_of

# Only options that influence speed: the rest of the command line may contain names and secrets, and results get shared.
_TELLING = re.compile(
    r"(mem|maxcpus|nr_cpus|nosmt|isolcpus|nohz|nohz_full|rcu_nocbs|mitigations|idle|cpuidle\.\w+|intel_idle\.\w+"
    r"|processor\.max_cstate|intel_pstate|amd_pstate|elevator|scsi_mod\.\w+|nvme(_core)?\.\w+|libata\.\w+|threadirqs"
    r"|preempt|clocksource|tsc|transparent_hugepage|numa|iommu|intel_iommu|amd_iommu|pci)(=|$)"
)


def environment(path: PathLike | None = None, machine: Machine = HERE) -> dict[str, object]:
    """The environment as JSON data. With a path (or descriptor), the block stack from its file system down to the
    drives."""
    found = memory(machine)
    cpuinfo = text_of(machine.proc / "cpuinfo") or ""  # slow to read on machines with many CPUs
    return {
        "kernel": dict(_kernel(machine)),
        "cpu": _cpu(cpuinfo, machine),
        "memory": {
            "total_bytes": found.get("MemTotal"),
            "available_bytes": found.get("MemAvailable"),
            "swap_total_bytes": found.get("SwapTotal"),
            "swap_used_bytes": sum(swap.used_bytes for swap in swaps(machine)),
        },
        "machine": {**_board(machine), "virtual": re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M) is not None},
        "versions": _versions(),
        "stack": [layer.to_dict() for layer in stack_of(path, machine)] if path is not None else [],
    }


@cache
def _kernel(machine: Machine) -> dict[str, object]:
    """The kernel and its parameters: they stay the same until the next boot."""
    return {
        "name": os.uname().sysname,
        "release": text_of(machine.proc / "sys/kernel/osrelease"),
        "version": text_of(machine.proc / "sys/kernel/version"),
        "architecture": os.uname().machine,
        "parameters": [word for word in (text_of(machine.proc / "cmdline") or "").split() if _TELLING.match(word)],
    }


def _cpu(text: str, machine: Machine) -> dict[str, object]:
    # 'model name' on x86, 'Processor' or 'cpu model' elsewhere; ARM names only its part number.
    named = re.search(r"^(?:model name|cpu model|Processor|cpu)\s*:\s*(.+)$", text, re.M)
    cores = set(re.findall(r"^physical id\s*:\s*(\d+)$[\s\S]*?^core id\s*:\s*(\d+)$", text, re.M))
    governor = sorted(set(governors(machine).values()))
    return {
        "model": named[1].strip() if named else None,
        "online": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        "cores": len(cores) or None,
        "sockets": len(set(re.findall(r"^physical id\s*:\s*(\d+)$", text, re.M))) or None,
        "governor": ", ".join(governor) or None,
        "turbo": _turbo(machine),
    }


def _turbo(machine: Machine) -> bool | None:
    """True if the clock may rise above its nominal rate; None if that is not known."""
    cpu = machine.sys / "devices/system/cpu"
    if (off := text_of(cpu / "intel_pstate/no_turbo")) is not None:
        return off == "0"
    boost = text_of(cpu / "cpufreq/boost")
    return None if boost is None else boost == "1"


@cache
def _board(machine: Machine) -> dict[str, object]:
    dmi = machine.sys / "class/dmi/id"
    return {"vendor": text_of(dmi / "sys_vendor"), "product": text_of(dmi / "product_name")}


@cache
def _versions() -> dict[str, object]:
    try:
        spindle = metadata.version("spindle")
    except metadata.PackageNotFoundError:
        spindle = None
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        system = None
    return {"spindle": spindle, "python": sys.version.split()[0], "system": system}
