"""Whether the machine is quiet enough to be measured: what else uses the device, the CPUs and the memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from .devices import HERE, Device, Machine, int_of, text_of
from .diskstats import DiskDelta, delta, snapshot
from .stack import above
from .words import size

# Limits of the idle check. They are about the least that shows in a figure of 1 % accuracy on one disk (some 100
# requests or 100 MB a second); a busier system is reported with its numbers either way.
OTHER_REQUESTS_PER_S = 5.0
OTHER_BYTES_PER_S = 1_000_000.0
CPU_BUSY = 0.20
CPU_IOWAIT = 0.10
CPU_STEAL = 0.02
DIRTY_BYTES = 64 << 20
SWAP_PAGES_PER_S = 1.0

_REBUILDING = ("resync", "recover", "check", "repair", "reshape")


@dataclass(frozen=True)
class Finding:
    """One check: its verdict ('ok', 'warn', 'invalid'), a line for people, and the evidence in numbers."""

    check: str
    level: str
    text: str
    evidence: dict[str, float] = field(default_factory=dict)


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
        """Sum."""
        return self.user + self.system + self.idle + self.iowait + self.steal


@dataclass(frozen=True)
class Idle:
    """What went on during the window."""

    seconds: float
    findings: list[Finding]
    devices: dict[str, DiskDelta]

    @property
    def level(self) -> str:
        """The worst verdict."""
        levels = [finding.level for finding in self.findings]
        return next((level for level in ("invalid", "warn") if level in levels), "ok")

    def to_dict(self) -> dict[str, object]:
        """For the result record."""
        return {
            "seconds": self.seconds,
            "level": self.level,
            "findings": [asdict(finding) for finding in self.findings],
            "devices": {name: found.to_dict() for name, found in self.devices.items()},
        }


def idle_check(devices: Sequence[Device], window_s: float = 1.0, machine: Machine = HERE) -> Idle:
    """Watch the devices, and all below them, for `window_s` seconds before a run."""
    cpu_before, swap_before, disks_before = cpu_times(machine), _swapped_pages(machine), snapshot(devices, machine)
    time.sleep(window_s)
    disks_after, swap_after, cpu_after = snapshot(devices, machine), _swapped_pages(machine), cpu_times(machine)
    seconds = (disks_after.at_ns - disks_before.at_ns) / 1e9
    changes = delta(disks_before, disks_after)
    findings = [
        *_other_io(changes),
        *_cpu(cpu_before, cpu_after),
        *array_activity(devices, machine),
        _swap((swap_after - swap_before) / seconds, machine),
        _dirty(machine),
    ]
    return Idle(seconds, findings, changes)


def _other_io(changes: dict[str, DiskDelta]) -> list[Finding]:
    findings = []
    for name, change in changes.items():
        moved = change.read_bytes + change.write_bytes + change.discard_bytes
        requests = (change.reads + change.writes + change.discards) / change.seconds
        rate = moved / change.seconds
        util = change.iostat()["%util"]
        busy = requests > OTHER_REQUESTS_PER_S or rate > OTHER_BYTES_PER_S
        text = f"{name} is in use by others: {requests:.0f} requests/s, {rate / 1e6:.1f} MB/s, {util:.0f} % busy"
        findings.append(
            Finding(
                "other_io",
                "warn" if busy else "ok",
                text if busy else f"{name} is idle",
                {"requests_per_s": requests, "bytes_per_s": rate, "util_percent": util},
            )
        )
    return findings


def cpu_times(machine: Machine = HERE) -> CpuTimes:
    """Of all CPUs."""
    line = (text_of(machine.proc / "stat") or "").partition("\n")[0].split()
    values = [int(value) for value in line[1:9]] + [0] * 8
    user, nice, system, idle, iowait, irq, softirq, steal = values[:8]
    return CpuTimes(user + nice, system + irq + softirq, idle, iowait, steal)


def _cpu(before: CpuTimes, after: CpuTimes) -> list[Finding]:
    total = after.total - before.total
    if total <= 0:
        return []
    busy = (after.user + after.system - before.user - before.system) / total
    iowait = max(0, after.iowait - before.iowait) / total
    steal = (after.steal - before.steal) / total
    loud = [
        f"{name} {share * 100:.0f} %"
        for name, share, limit in (
            ("busy", busy, CPU_BUSY),
            ("waiting for I/O", iowait, CPU_IOWAIT),
            ("taken by the hypervisor", steal, CPU_STEAL),
        )
        if share > limit
    ]
    text = f"CPU {', '.join(loud)} before the run" if loud else f"CPU {busy * 100:.0f} % busy"
    evidence = {"busy": busy, "iowait": iowait, "steal": steal}
    return [Finding("cpu", "warn" if loud else "ok", text, evidence)]


def array_activity(devices: Iterable[Device], machine: Machine = HERE) -> list[Finding]:
    """Arrays among the devices, or built on one of them, that are resyncing, rebuilding, checking or degraded."""
    arrays = {device.name: device for device in devices if device.kind == "md"}
    for device in devices:
        arrays.update({upper.name: upper for upper in above(device, machine) if upper.kind == "md"})
    findings = []
    for array in arrays.values():
        action = text_of(array.sysfs / "md/sync_action") or "idle"
        degraded = int_of(array.sysfs / "md/degraded") or 0
        evidence: dict[str, float] = {"degraded": degraded}
        if action in _REBUILDING:
            done, _, of = (text_of(array.sysfs / "md/sync_completed") or "").partition(" / ")
            if done.isdigit() and of.isdigit():
                evidence["done"] = int(done) / int(of)
            findings.append(Finding("array_sync", "invalid", f"{array.name} is busy with its {action}", evidence))
        elif degraded:
            text = f"{array.name} is degraded: {degraded} member{'s' if degraded > 1 else ''} missing"
            findings.append(Finding("array_sync", "warn", text, evidence))
        else:
            findings.append(Finding("array_sync", "ok", f"{array.name} is complete and quiet", evidence))
    return findings


def _swapped_pages(machine: Machine) -> int:
    counters = dict(line.split(" ", 1) for line in (text_of(machine.proc / "vmstat") or "").splitlines() if " " in line)
    return int(counters.get("pswpin", 0)) + int(counters.get("pswpout", 0))


def memory(machine: Machine = HERE) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    found = {}
    for line in (text_of(machine.proc / "meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        parts = rest.split()
        if parts and parts[0].isdigit():
            found[name] = int(parts[0]) * (1024 if parts[1:] == ["kB"] else 1)
    return found


def _swap(pages_per_s: float, machine: Machine) -> Finding:
    found = memory(machine)
    used = found.get("SwapTotal", 0) - found.get("SwapFree", 0)
    evidence = {"used_bytes": float(used), "pages_per_s": pages_per_s}
    if pages_per_s > SWAP_PAGES_PER_S:
        return Finding("swap", "warn", f"the machine is swapping: {pages_per_s:.0f} pages/s", evidence)
    return Finding("swap", "ok", f"{size(used)} of swap in use, none moved" if used else "no swap in use", evidence)


def _dirty(machine: Machine) -> Finding:
    found = memory(machine)
    dirty = found.get("Dirty", 0) + found.get("Writeback", 0)
    if dirty > DIRTY_BYTES:
        text = f"{size(dirty)} wait to be written from before the run; sync first"
        return Finding("dirty_pages", "warn", text, {"bytes": dirty})
    return Finding("dirty_pages", "ok", f"{size(dirty)} wait to be written", {"bytes": dirty})


def throttle_events(machine: Machine = HERE) -> int | None:
    """How often CPUs were slowed down for heat since boot; None where the hardware does not say."""
    counts = [
        int_of(path)
        for name in ("core_throttle_count", "package_throttle_count")
        for path in (machine.sys / "devices/system/cpu").glob(f"cpu[0-9]*/thermal_throttle/{name}")
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
