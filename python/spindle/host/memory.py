"""The kernel's report on memory."""

from __future__ import annotations

import re

from .devices import HERE, Machine, text_of
from .number import whole_number

_SWAPPED = re.compile(r"^(pswpin|pswpout) +(\S+)", re.MULTILINE)


def memory(machine: Machine = HERE) -> dict[str, int]:
    """/proc/meminfo in bytes; lines that cannot be parsed are left out."""
    found = {}
    for line in (text_of(machine.proc / "meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        parts = rest.split(maxsplit=2)
        if parts and (value := whole_number(parts[0])) is not None:
            found[name] = value * (1024 if parts[1:] == ["kB"] else 1)
    return found


def swapped_pages(machine: Machine = HERE) -> int | None:
    """Pages written to and read from swap since boot (/proc/vmstat); None: not known."""
    counters = dict(_SWAPPED.findall(text_of(machine.proc / "vmstat") or ""))
    pages_in, pages_out = (whole_number(counters.get(name, "")) for name in ("pswpin", "pswpout"))
    return None if pages_in is None or pages_out is None else pages_in + pages_out
