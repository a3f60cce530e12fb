"""The control groups of this process and their limits on I/O, memory and CPU time (cgroup v1 and v2).

Limits of v2 apply to a group and all groups below it; so do limits of v1 on memory and CPU time. Limits of v1 on I/O
apply to the group alone (Documentation/admin-guide/cgroup-v1/blkio-controller.rst: they reach further only with
sane_behavior).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from spindle.base.plain import Plain

from .devices import HERE, Device, DevNumber, Machine, int_of, text_of, whole
from .mounts import parse_mountinfo
from .number import signed_number, whole_number

NO_LIMIT = 1 << 60
"""v1 prints a number of about 2^63 if there is no limit."""
_V1_IO = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}

_FILES = {
    "blkio": {1: tuple(_V1_IO.values()), 2: ("io.max",)},
    "memory": {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")},
    "cpu": {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)},
}
"""Controller -> version of its group -> the files with its limits."""

Read = Callable[[Path], str | None]
"""Gives the text of a kernel file; None if it is missing or not readable."""


@dataclass(frozen=True)
class IoLimit:
    """Limit of one group on one device."""

    group: str
    """Its path below the root of its hierarchy."""
    device: str
    kind: str
    """`rbps`, `wbps` (bytes/s), `riops`, `wiops` (requests/s)."""
    value: int


@dataclass(frozen=True)
class Limits(Plain):
    """Limits of the control groups on this process; None: no limit."""

    io: tuple[IoLimit, ...] = ()
    memory_bytes: int | None = None
    memory_group: str | None = None
    cpus: float | None = None
    """CPU seconds per second."""
    cpu_group: str | None = None

    def usable_cpus(self, asked: Collection[int] | None = None) -> float:
        """CPU time that this process may use, in CPUs: those it may run on (of `asked`, if given), or the limit."""
        return min(float(len(runnable_cpus(asked))), math.inf if self.cpus is None else self.cpus)


@dataclass(frozen=True)
class Throttling:
    """How often the groups slowed this process down since they were made; None: not counted."""

    cpu_throttled_ns: int | None
    memory_full: int | None
    """Number of times that memory beyond the limit was requested."""


@dataclass(frozen=True)
class _Group:
    path: str
    version: int
    folder: Path

    def files(self, controller: str) -> list[Path]:
        """Those with the limits of a controller."""
        return [self.folder / name for name in _FILES[controller][self.version]]


class _Membership(NamedTuple):
    """The kernel's texts that say which groups this process is in. They take longer to read than any limit."""

    own: str
    mounts: str
    machine: Machine

    @classmethod
    def of(cls, machine: Machine) -> _Membership:
        own, mounts = (text_of(machine.proc / "self" / name) or "" for name in ("cgroup", "mountinfo"))
        return cls(own, mounts, machine)


def limits(devices: Iterable[Device], machine: Machine = HERE, read: Read = text_of) -> Limits:
    """The tightest limits of memory and CPU time, and all limits of I/O on these devices."""
    member = _Membership.of(machine)
    memory = min(_memory(member, read), default=None)
    cpu = min(_cpus(member, read), default=None)
    return Limits(
        io=tuple(_io(devices, member, read)),
        memory_bytes=None if memory is None else memory[0],
        memory_group=None if memory is None else memory[1],
        cpus=None if cpu is None else cpu[0],
        cpu_group=None if cpu is None else cpu[1],
    )


def pressure(machine: Machine = HERE) -> Throttling:
    """The counters at this moment."""
    throttled, full = [], []
    member = _Membership.of(machine)
    for group in _groups("cpu", *member):
        stat = _pairs(group.folder / "cpu.stat")
        if (value := stat.get("throttled_time")) is not None:
            throttled.append(value)
        elif (value := stat.get("throttled_usec")) is not None:
            throttled.append(value * 1000)
    for group in _groups("memory", *member):
        count = (
            int_of(group.folder / "memory.failcnt")
            if group.version == 1
            else _pairs(group.folder / "memory.events").get("max")
        )
        full += [] if count is None else [count]
    return Throttling(max(throttled, default=None), sum(full) if full else None)


def runnable_cpus(asked: Collection[int] | None = None) -> set[int]:
    """CPUs that this process may run on; only those in `asked`, if given."""
    allowed = os.sched_getaffinity(0)
    return (allowed & set(asked) if asked else allowed) or allowed


def settings(devices: Iterable[Device], machine: Machine = HERE, read: Read = text_of) -> dict[str, str]:
    """The limits as settings: `cgroup.io.rbps:/group:sda`."""
    found = limits(devices, machine, read)
    named = {f"cgroup.io.{one.kind}:{one.group}:{one.device}": str(one.value) for one in found.io}
    if found.memory_bytes is not None:
        named[f"cgroup.memory:{found.memory_group}"] = str(found.memory_bytes)
    if found.cpus is not None:
        named[f"cgroup.cpus:{found.cpu_group}"] = f"{found.cpus:g}"
    return named


def files_of(machine: Machine = HERE) -> tuple[Path, ...]:
    """All files with a limit of this process's groups; some may not exist."""
    return _files_of(_Membership.of(machine))


@lru_cache(maxsize=8)
def _files_of(member: _Membership) -> tuple[Path, ...]:
    return tuple(
        path for controller in _FILES for group in _groups(controller, *member) for path in group.files(controller)
    )


def memory_limit(machine: Machine = HERE) -> int | None:
    """The tightest limit of memory in bytes; None without one."""
    return min((value for value, _ in _memory(_Membership.of(machine))), default=None)


def _memory(member: _Membership, read: Read = text_of) -> Iterator[tuple[int, str]]:
    for group in _groups("memory", *member):
        for file in group.files("memory"):
            if (value := _number_in(file, read)) is not None and value < NO_LIMIT:
                yield value, group.path


def _cpus(member: _Membership, read: Read) -> Iterator[tuple[float, str]]:
    """Parse cpu.max, which is `QUOTA PERIOD` (v2); v1 has a file for each. `max` and -1: no limit."""
    for group in _groups("cpu", *member):
        words = [word for file in group.files("cpu") for word in (read(file) or "").split(maxsplit=2)]
        quota, period = map(signed_number, words) if len(words) == 2 else (None, None)
        if quota is not None and period and quota > 0:
            yield quota / period, group.path


def _io(devices: Iterable[Device], member: _Membership, read: Read) -> Iterator[IoLimit]:
    """Limits of I/O, which are set on whole disks."""
    names = {disk.dev: disk.name for disk in map(whole, devices)}
    if not names:
        return
    own: set[int] = set()
    for group in _groups("blkio", *member):
        if group.version == 1:
            if 1 not in own:
                yield from _v1_limits(group, names, read)
        else:
            yield from _v2_limits(group, names, read)
        own.add(group.version)


def _v1_limits(group: _Group, names: dict[DevNumber, str], read: Read) -> Iterator[IoLimit]:
    for kind, file in _V1_IO.items():
        for line in (read(group.folder / file) or "").splitlines():
            place, _, text = line.partition(" ")
            number, value = _number(place), whole_number(text.strip())
            if number in names and value:
                yield IoLimit(group.path, names[number], kind, value)


def _v2_limits(group: _Group, names: dict[DevNumber, str], read: Read) -> Iterator[IoLimit]:
    """Parse `8:0 rbps=1048576 wbps=max riops=max wiops=max`."""
    lines = [line for file in group.files("blkio") for line in (read(file) or "").splitlines()]
    for words in map(str.split, lines):
        number = _number(words[0]) if words else None
        if number not in names:
            continue
        for word in words[1:]:
            kind, _, text = word.partition("=")
            if kind in _V1_IO and (value := whole_number(text)):
                yield IoLimit(group.path, names[number], kind, value)


def _number_in(file: Path, read: Read) -> int | None:
    return signed_number((read(file) or "").strip())


def _number(text: str) -> DevNumber | None:
    try:
        return DevNumber.parse(text)
    except ValueError:
        return None


def _pairs(path: Path) -> dict[str, int]:
    found = {}
    for line in (text_of(path) or "").splitlines():
        name, _, text = line.partition(" ")
        if (value := whole_number(text.strip())) is not None:
            found[name] = value
    return found


@lru_cache(maxsize=32)
def _groups(controller: str, own: str, mounts: str, machine: Machine) -> tuple[_Group, ...]:
    """This process's group of a controller and the groups above it, in both versions, the innermost first.

    Cached: the texts are often read and seldom change.
    """
    return tuple(_each_group(controller, own, _places(mounts, machine), machine))


def _each_group(controller: str, own: str, places: dict[str, tuple[str, Path]], machine: Machine) -> Iterator[_Group]:
    for line in own.splitlines():
        parts = line.split(":", 2)
        if len(parts) < 3 or (parts[1] and controller not in parts[1].split(",")):
            continue
        version = 1 if parts[1] else 2
        root, base = places.get(controller if version == 1 else "", ("/", None))
        if base is None:
            base = machine.sys / "fs/cgroup" / (controller if version == 1 else "")
        below = os.path.relpath(parts[2], root) if parts[2].startswith(root) else "."
        folder = base if below == "." else base / below
        while True:
            path = "/" + os.path.relpath(folder, base).removeprefix(".")
            yield _Group(path, version, folder)
            if folder == base or base not in folder.parents:
                break
            folder = folder.parent


def _places(mounts: str, machine: Machine) -> dict[str, tuple[str, Path]]:
    """Controller (empty: version 2) -> the mounted group, and its folder."""
    found: dict[str, tuple[str, Path]] = {}
    for mount in parse_mountinfo(mounts):
        point = (
            machine.sys / mount.point.removeprefix("/sys/") if mount.point.startswith("/sys/") else Path(mount.point)
        )
        if mount.fs_type == "cgroup2":
            found.setdefault("", (mount.root, point))
        elif mount.fs_type == "cgroup":
            for controller in mount.super_options.split(","):
                found.setdefault(controller, (mount.root, point))
    return found
