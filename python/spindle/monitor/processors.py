"""/proc/stat: the source of vmstat's columns r, b, us, sy, id, wa and st (proc(5))."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.host.cputimes import CpuTimes, times_of
from spindle.host.number import whole_number


@dataclass(frozen=True)
class Processors:
    """All CPUs together, and the tasks at this moment. None: not known."""

    times: CpuTimes | None
    running: int | None
    """Tasks that run or wait for a CPU; includes the reader."""
    blocked: int | None
    """Tasks in uninterruptible sleep that wait for I/O."""


def parse(text: str) -> Processors:
    """Parse the text of /proc/stat."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name in ("cpu", "procs_running", "procs_blocked") and name not in lines:
            lines[name] = rest.split(maxsplit=10)
    return Processors(
        times_of(lines.get("cpu", [])), _one(lines.get("procs_running", [])), _one(lines.get("procs_blocked", []))
    )


def _one(parts: list[str]) -> int | None:
    return whole_number(parts[0]) if parts else None


def shares(before: CpuTimes | None, after: CpuTimes | None) -> dict[str, float | None]:
    """Percent of all CPU time in between. idle and iowait can go back a little (proc(5)); that counts as 0, as in
    vmstat."""
    names = {"us": "user", "sy": "system", "id": "idle", "wa": "iowait", "st": "steal"}
    if before is None or after is None:
        return dict.fromkeys(names)
    spent = {short: max(0, getattr(after, name) - getattr(before, name)) for short, name in names.items()}
    total = sum(spent.values())
    return {short: 100 * ticks / total if total else None for short, ticks in spent.items()}
