"""CPU times since boot (proc(5), /proc/stat)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

from .number import whole_number

_LEAST = 4
"""user, nice, system and idle: in every kernel; iowait, irq, softirq and steal came later."""


@dataclass(frozen=True)
class CpuTimes:
    """All CPUs together since boot, in clock ticks (proc(5))."""

    user: int
    system: int
    idle: int
    iowait: int
    steal: int

    @property
    def total(self) -> int:
        """Sum of all times."""
        return self.user + self.system + self.idle + self.iowait + self.steal


def of_all(stat: str) -> CpuTimes | None:
    """Times of all CPUs together, from the text of /proc/stat; None: not known."""
    line = stat.partition("\n")[0].split(maxsplit=11)
    return times_of(line[1:]) if line[:1] == ["cpu"] else None


def of_cpus(stat: str, cpus: Collection[int]) -> CpuTimes | None:
    """Times of these CPUs together, from the text of /proc/stat; None if one of them is missing."""
    found = []
    for line in stat.splitlines():
        name, _, rest = line.partition(" ")
        if name.startswith("cpu") and whole_number(name[3:]) in cpus and (times := times_of(rest.split())) is not None:
            found.append(times)
    if len(found) < len(cpus):
        return None
    return CpuTimes(*(sum(getattr(one, field.name) for one in found) for field in fields(CpuTimes)))


def times_of(parts: Sequence[str]) -> CpuTimes | None:
    """Times from the numbers of the `cpu` line; None if they are not numbers."""
    values = [whole_number(part) for part in parts[:8]]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len(known) < _LEAST:
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = [*known, 0, 0, 0, 0][:8]
    return CpuTimes(user + nice, system + irq + softirq, idle, iowait, steal)
