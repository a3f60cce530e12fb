"""Checks if a control group's limit, rather than the target, determined the figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spindle.base import units
from spindle.result.record import DeviceCounters, Level, RunRecord, Verdict

REACHED = 0.90
"""Share of a limit from which on the limit was measured: the kernel grants it in slices of a tenth of a second."""
THROTTLED = 0.02
"""Share of the run in which the quota kept the load from the CPUs."""
_KINDS = {
    "rbps": ("read", "bytes"),
    "wbps": ("write", "bytes"),
    "riops": ("read", "requests"),
    "wiops": ("write", "requests"),
}


def group_limits(record: RunRecord) -> list[Verdict]:
    """Limits of I/O, memory and CPU time, as read before the run."""
    found = [*io_reached(record), *_memory(record), *_cpu(record)]
    if found:
        return found
    named = [_named(limit) for limit in _io(record)]
    if not named:
        return []
    evidence = f"not reached: {', '.join(named)}"
    return [Verdict(check="group-limit", level=Level.OK, evidence=evidence, numbers={"limits": float(len(named))})]


def io_reached(record: RunRecord) -> list[Verdict]:
    """I/O limits that the load reached."""
    found = []
    for limit in _io(record):
        direction, what = _KINDS[limit["kind"]]
        rate = _rate(record, limit["device"], direction, what)
        if rate < REACHED * limit["value"]:
            continue
        seen = units.rate(rate) if what == "bytes" else f"{units.count(rate)} {direction}s/s"
        found.append(
            Verdict(
                check="group-limit",
                level=Level.WARN,
                evidence=f"{_named(limit)}, and {seen} were measured: the limit, not the device, determines the figure",
                advice="raise or remove the limit (io.max, blkio.throttle.*), or run outside that group",
                numbers={"limit": float(limit["value"]), "rate": rate},
            )
        )
    return found


def _io(record: RunRecord) -> list[dict[str, Any]]:
    limits = record.target.detail.get("limits") or {}
    return [limit for limit in limits.get("io") or [] if limit.get("kind") in _KINDS]


def _named(limit: dict[str, Any]) -> str:
    direction, what = _KINDS[limit["kind"]]
    most = units.rate(limit["value"]) if what == "bytes" else f"{units.count(limit['value'])}/s"
    return f"control group {limit['group']} limits {direction}s of {limit['device']} to {most}"


def _rate(record: RunRecord, device: str, direction: str, what: str) -> float:
    """The larger of the load's rate and the device's: the kernel counts before it merges, and below the page cache."""
    figures = record.figures
    seconds = max(figures.measured_s, 1e-9)
    ops = [op for stream in figures.streams for name, op in stream.ops() if name == direction]
    direct = all(stream.direct for stream in record.workload.streams)
    own = sum(op.bytes if what == "bytes" else op.requests for op in ops) / seconds if direct else 0.0
    counted = next((one for one in record.devices if one.name == device), None)
    return max(own, _counted(counted, direction, what))


def _counted(device: DeviceCounters | None, direction: str, what: str) -> float:
    if device is None or device.seconds <= 0:
        return 0.0
    name = f"{direction}_bytes" if what == "bytes" else f"{direction}s"
    return device.delta.get(name, 0.0) / device.seconds


def _memory(record: RunRecord) -> Iterator[Verdict]:
    """A page cache without room is that of a smaller machine; direct I/O does not use it."""
    limits = record.target.detail.get("limits") or {}
    full, most = record.activity.group_memory_full, limits.get("memory_bytes")
    if not full or most is None or all(stream.direct for stream in record.workload.streams):
        return
    yield Verdict(
        check="group-limit",
        level=Level.WARN,
        evidence=f"control group {limits.get('memory_group')} allows {units.size(most)} of memory, page cache "
        f"included, and was at this limit {units.count(full)} times during the run",
        advice="this is the figure of a machine with so little memory: raise the limit (memory.max), or use "
        "`direct=True`",
        numbers={"limit_bytes": float(most), "times": float(full)},
    )


def _cpu(record: RunRecord) -> Iterator[Verdict]:
    throttled, seconds = record.activity.group_throttled_s, record.figures.elapsed_ns / 1e9
    if throttled is None or seconds <= 0 or throttled <= THROTTLED * seconds:
        return
    cpus = record.activity.cpus
    allows = f" allows {units.significant(cpus)} CPUs and" if cpus is not None else ""
    yield Verdict(
        check="group-limit",
        level=Level.WARN,
        evidence=f"a control group{allows} kept the load from running for {units.seconds(round(throttled, 1))}, "
        f"summed up over its CPUs, in {units.seconds(round(seconds, 1))}",
        advice="raise the quota (cpu.max, cpu.cfs_quota_us), or use fewer `workers=`",
        numbers={"throttled_s": throttled, "seconds": seconds},
    )
