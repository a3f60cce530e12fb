"""Every column of the monitor, in order, with its unit. Formulas and sources: docs/reference/monitor.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    unit: str
    group: str = ""
    """Prefix of a heading where one row has columns of several kinds: `cpu`, `psi io`."""
    since: str = ""
    """Counters it needs from the kernel: 'discard' (4.18), 'flush' (5.5); '': every kernel has them."""

    @property
    def heading(self) -> str:
        """Heading in a file: `psi io some [%]`."""
        return f"{self.group} {self.name} [{self.unit}]".strip()


def _direction(letter: str, since: str = "") -> tuple[Column, ...]:
    return (
        Column(f"{letter}/s", "1/s", since=since),
        Column(f"{letter}kB/s", "KiB/s", since=since),
        Column(f"{letter}rqm/s", "1/s", since=since),
        Column(f"%{letter}rqm", "%", since=since),
        Column(f"{letter}_await", "ms", since=since),
        Column(f"{letter}areq-sz", "KiB", since=since),
    )


DISK = (
    *_direction("r"),
    *_direction("w"),
    *_direction("d", "discard"),
    Column("f/s", "1/s", since="flush"),
    Column("f_await", "ms", since="flush"),
    Column("aqu-sz", "requests"),
    Column("%util", "%"),
)
"""Columns of a device, in the order of `iostat -x` (sysstat 12)."""

CPU = (
    Column("r", "tasks", "procs"),
    Column("b", "tasks", "procs"),
    *(Column(name, "%", "cpu") for name in ("us", "sy", "id", "wa", "st")),
)
"""CPU columns of the machine, with vmstat's names."""

PRESSURE = tuple(Column(name, "%", "psi io") for name in ("some10", "some", "full10", "full"))
"""Pressure stall information of the machine."""

HOST = (*CPU, *PRESSURE)
"""All columns of the machine."""

CGROUP = tuple(Column(f"{letter}{kind}/s", unit) for letter in "rwd" for kind, unit in (("", "1/s"), ("kB", "KiB/s")))
"""Columns of a control group on a device."""
