"""Parser for the settings that a user writes: `loop3.scheduler`, `nr_requests=64`, `cpu.governor=performance`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spindle.host.devices import HERE, Machine

from .catalogue import Knob, Scope, knob
from .errors import KnobUsage
from .places import KnobFolder, every_cpu, interrupts_of, named
from .session import Setting


def settings(device: KnobFolder | None, words: Sequence[str], machine: Machine = HERE) -> list[Setting]:
    """Parse words NAME=VALUE."""
    found: list[Setting] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise KnobUsage(f"{word!r} is not KNOB=VALUE; write for example read_ahead_kb=4096")
        for place, one in meant(device, name.strip(), machine):
            found.append(Setting(place, one, value_of(one, value.strip(), word)))
    return found


def value_of(one: Knob, text: str, word: str) -> str:
    """The text that is written to the kernel. Raises KnobUsage."""
    value = one.values.parse(text)
    if value is not None:
        return value
    if text == "0" and one.zero_of is not None:
        raise KnobUsage(f"{word}: 0 means that {one.zero_of} is in force; set that instead")
    unit = f" {one.unit}" if one.unit else ""
    raise KnobUsage(f"{word}: not a value of {one.name}; it takes {one.values.range}{unit}")


def meant(device: KnobFolder | None, name: str, machine: Machine = HERE) -> list[tuple[KnobFolder, Knob]]:
    """The knob and the places it names: one, or each CPU, or each interrupt of the device."""
    name = name.removeprefix("dev.") if name.startswith("dev.raid.") else name
    prefix, dot, rest = name.partition(".")
    if not dot or prefix == "iosched":
        one = knob(name)
        return [(place, one) for place in _places(device, one, machine)]
    if re.fullmatch(r"vm|raid|cpu|irq", prefix):
        one = knob(f"{prefix}.{rest}")
        return [(place, one) for place in _places(device, one, machine)]
    if found := re.fullmatch(r"(cpu|irq)[0-9]+", prefix):
        return [(named(prefix, machine), knob(f"{found[1]}.{rest}"))]
    one = knob(rest)
    if one.scope is not Scope.DEVICE:
        raise KnobUsage(f"{name}: {one.id} does not belong to a device; write {one.id}")
    return [(named(prefix, machine), one)]


def _places(device: KnobFolder | None, one: Knob, machine: Machine) -> list[KnobFolder]:
    match one.scope:
        case Scope.VM | Scope.RAID:
            return [named(one.scope, machine)]
        case Scope.CPU:
            if cpus := every_cpu(machine):
                return cpus
            raise KnobUsage(f"{one.id}: the kernel does not set the clock frequency of CPUs here")
        case Scope.IRQ:
            if device is None:
                raise KnobUsage(f"{one.id}: which interrupt? write irq35.{one.name}, or name a device before it")
            if interrupts := interrupts_of(device, machine):
                return interrupts
            raise KnobUsage(f"{one.id}: {device.label} has no interrupts of its own that the kernel shows")
        case Scope.SWAP:
            raise KnobUsage(f"{one.id}: swap is switched with swapon and swapoff, or by `quiet_machine=` for a run")
        case Scope.DEVICE:
            if device is None:
                raise KnobUsage(f"{one.name}: which device? write it first: DEVICE {one.name}=VALUE")
            return [device]
