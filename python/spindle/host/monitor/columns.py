"""Every column of the monitor, in order, with its unit. Formulas and sources: docs/monitor.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    unit: str
    group: str = ""
    """What a heading puts in front where columns of several kinds stand in one row: `cpu`, `psi io`."""
    since: str = ""
    """What a kernel must count for it: 'discard' (4.18), 'flush' (5.5); '': every kernel does."""

    @property
    def heading(self) -> str:
        """For a file: `psi io some [%]`."""
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
"""Of a device, in the order of `iostat -x` (sysstat 12)."""

CPU = (
    Column("r", "tasks", "procs"),
    Column("b", "tasks", "procs"),
    *(Column(name, "%", "cpu") for name in ("us", "sy", "id", "wa", "st")),
)
"""Of the machine, as vmstat names them."""

PRESSURE = tuple(Column(name, "%", "psi io") for name in ("some10", "some", "full10", "full"))
"""Of the machine: pressure stall information."""

HOST = (*CPU, *PRESSURE)
"""All columns of the machine."""

CGROUP = tuple(Column(f"{letter}{kind}/s", unit) for letter in "rwd" for kind, unit in (("", "1/s"), ("kB", "KiB/s")))
"""Of a control group on a device."""
