"""Settings of the whole machine that matter to its drives: swap, clock and sleep of the CPUs, power saving of links."""

from __future__ import annotations

import re
from collections.abc import Callable

from spindle.host.mounts import unescape
from spindle.host.settings import chosen

from .model import IdleState, Inventory, Swap
from .reading import Reading, number, value
from .tree import Tree, natural

_CPUS = "sys/devices/system/cpu"
_MOST_STATES = 32


def machine_settings(inventory: Inventory, tree: Tree, part_of: Callable[[str], str | None]) -> None:
    """Fill them in. `part_of`: the device, or the file system, that a path means or is on."""
    read = Reading(tree, inventory.unknown)
    _swaps(inventory, read, part_of)
    _clocks(inventory, read)
    _idle(inventory, read)
    policy = value(tree, "sys/module/pcie_aspm/parameters/policy")
    inventory.link_power_policy = chosen(policy) if policy is not None else None


def _swaps(inventory: Inventory, read: Reading, part_of: Callable[[str], str | None]) -> None:
    text = read.table("proc/swaps")
    if text is None:
        read.lack("swaps", "proc/swaps: not there")
    for line in (text or "").splitlines()[1:]:
        words = line.split()
        if len(words) == 5 and re.fullmatch(r"[0-9]{1,15} [0-9]{1,15} -?[0-9]{1,6}", " ".join(words[2:])):
            path = unescape(words[0])
            size, used, priority = (int(word) for word in words[2:])
            part = part_of(path)
            swap = Swap(path=path, part=part, size_bytes=size * 1024, used_bytes=used * 1024, priority=priority)
            inventory.swaps.append(swap)


def _clocks(inventory: Inventory, read: Reading) -> None:
    for cpu in _cpus(read.tree):
        governor = value(read.tree, f"{_CPUS}/{cpu}/cpufreq/scaling_governor")
        if governor is not None:
            inventory.governors[governor] = inventory.governors.get(governor, 0) + 1
            inventory.frequency_driver = value(read.tree, f"{_CPUS}/{cpu}/cpufreq/scaling_driver")
    if not inventory.governors:
        read.lack("governors", f"{_CPUS}: no cpufreq; a virtual machine, or its firmware keeps the clock")


def _idle(inventory: Inventory, read: Reading) -> None:
    first = next(iter(_cpus(read.tree)), "cpu0")
    place = f"{_CPUS}/{first}/cpuidle"
    for name in read.tree.names(place)[:_MOST_STATES]:
        latency = number(read.tree, f"{place}/{name}/latency")
        label = value(read.tree, f"{place}/{name}/name")
        if latency is not None and label is not None:
            disabled = number(read.tree, f"{place}/{name}/disable") not in (0, None)
            inventory.idle_states.append(IdleState(name=label, latency_us=latency, disabled=disabled))
    if not inventory.idle_states:
        read.lack("idle_states", f"{place}: not there; a virtual machine, or no driver for it")


def _cpus(tree: Tree) -> list[str]:
    return sorted((name for name in tree.names(_CPUS) if re.fullmatch(r"cpu[0-9]{1,5}", name)), key=natural)
