"""The catalogue of all settings that can be changed while the machine runs.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/block/{queue-sysfs,deadline-iosched,bfq-iosched,
cfq-iosched,kyber-iosched}.rst, Documentation/admin-guide/sysctl/vm.rst, Documentation/admin-guide/md.rst,
Documentation/admin-guide/pm/cpufreq.rst, Documentation/core-api/irq/irq-affinity.rst of the Linux kernel; md(4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TypeVar

from spindle.base.suggestions import meant
from spindle.host import queue_files, settings

from .errors import KnobUsage
from .values import FLAG, Choice, Cpus, Number, Seconds, Speed, SwapState, Text, Values


class Scope(StrEnum):
    """The part of the machine that a knob belongs to; it is locked while the knob is changed."""

    DEVICE = "device"
    VM = "vm"
    RAID = "raid"
    CPU = "cpu"
    IRQ = "irq"
    SWAP = "swap"


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One setting that can be changed."""

    scope: Scope
    name: str
    where: tuple[str, ...]
    """Its file, relative to the scope's folder; the first that exists. `*` matches any one name."""
    values: Values
    unit: str
    about: str
    since: str
    """First kernel that has it; 'A-B' if it was removed again."""
    schedulers: tuple[str, ...] = ()
    """The elevators with this parameter."""
    moves: tuple[str, ...] = ()
    """Knobs of the same scope that the kernel resets with this one, because they depend on it (`iosched/*`: all of
    these). They keep the kernel's value until this knob is undone."""
    disturbs: tuple[str, ...] = ()
    """Knobs of the same scope that the kernel resets as a side effect. Their values are restored at once."""
    zero_of: str | None = None
    """0 here means that this other knob is in force; the kernel writes this 0, users cannot."""

    @property
    def id(self) -> str:
        """Name in the catalogue: 'scheduler', 'vm.swappiness'."""
        return self.name if self.scope is Scope.DEVICE else f"{self.scope}.{self.name}"

    @property
    def folder(self) -> str:
        """Folder of its scope's files, for people."""
        return {
            Scope.DEVICE: "/sys/block/DEVICE/",
            Scope.VM: "/proc/sys/vm/",
            Scope.RAID: "/proc/sys/dev/raid/",
            Scope.CPU: "/sys/devices/system/cpu/cpufreq/policyN/",
            Scope.IRQ: "/proc/irq/N/",
            Scope.SWAP: "/proc/swaps, ",
        }[self.scope]


SCHEDULER = "scheduler"
DEPTH = "nr_requests"
IOSCHED = "iosched/"
READ_AHEAD = "read_ahead_kb"
_LIMITS = (READ_AHEAD,)
"""Knobs that each write to a limit of the queue resets: the kernel computes the read-ahead again, at least twice
`max_sectors_kb` on a rotational queue, at least 128 on any (blk_apply_bdi_limits, block/blk-settings.c; measured on
6.18)."""

# Names of elevators of all kernels: the last four were removed with the single-queue block layer (5.0).
ELEVATORS = ("none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq", "anticipatory")
_DEADLINES, _CFQ, _BFQ, _KYBER, _AS = ("mq-deadline", "deadline"), ("cfq",), ("bfq",), ("kyber",), ("anticipatory",)


def _queue(
    name: str, values: Values, unit: str, since: str, about: str, *moves: str, disturbs: tuple[str, ...] = ()
) -> Knob:
    return Knob(
        scope=Scope.DEVICE,
        name=name,
        where=(queue_files.path_of(name),),
        values=values,
        unit=unit,
        about=about,
        since=since,
        moves=moves,
        disturbs=disturbs,
    )


def _limit(name: str, values: Values, unit: str, since: str, about: str) -> Knob:
    return _queue(name, values, unit, since, about, disturbs=_LIMITS)


def _elevator(
    name: str, schedulers: tuple[str, ...], values: Values, unit: str, since: str, about: str, *moves: str
) -> Knob:
    return Knob(
        scope=Scope.DEVICE,
        name=IOSCHED + name,
        where=(f"queue/iosched/{name}",),
        values=values,
        unit=unit,
        about=about,
        since=since,
        schedulers=schedulers,
        moves=tuple(IOSCHED + other for other in moves),
    )


def _device(name: str, where: tuple[str, ...], values: Values, unit: str, since: str, about: str, *moves: str) -> Knob:
    return Knob(
        scope=Scope.DEVICE,
        name=name,
        where=where,
        values=values,
        unit=unit,
        about=about,
        since=since,
        moves=moves,
    )


def _md(name: str, values: Values, unit: str, since: str, about: str) -> Knob:
    return _device(name, (f"md/{name}",), values, unit, since, about)


def _sysctl(
    scope: Scope,
    name: str,
    values: Values,
    unit: str,
    since: str,
    about: str,
    *moves: str,
    zero_of: str | None = None,
) -> Knob:
    return Knob(
        scope=scope,
        name=name,
        where=(name,),
        values=values,
        unit=unit,
        about=about,
        since=since,
        moves=moves,
        zero_of=zero_of,
    )


_MS = Number(0, 2**31 - 1, grain=11)  # the kernel keeps clock ticks: rounded up to at most 10 ms (HZ=100)
_ANY = Number(0, 2**31 - 1)

_QUEUE = (
    _queue(
        SCHEDULER,
        Choice(ELEVATORS),
        "",
        "2.6.10",
        "Elevator that orders the requests.",
        DEPTH,
        "wbt_lat_usec",
        "async_depth",
        f"{IOSCHED}*",
    ),
    _queue(
        DEPTH,
        Number(1, 65536, grain=4),
        "requests",
        "2.6",
        "Requests that the block layer queues for sorting and merging.",
        f"{IOSCHED}async_depth",
        "async_depth",
    ),
    _queue("read_ahead_kb", Number(0, 2**30, grain=64), "KiB", "2.6.6", "Read-ahead of buffered sequential reads."),
    _limit("max_sectors_kb", Number(1, 2**22), "KiB", "2.6.10", "Largest request that the block layer sends."),
    _queue("nomerges", Number(0, 2), "", "2.6.33", "Merging of neighbours: 0 all, 1 only with the last one, 2 none."),
    _queue(
        "rq_affinity", Number(0, 2), "", "2.6.27", "Completions: 1 in the CPU group of the submitter, 2 on its CPU."
    ),
    _queue(
        "wbt_lat_usec",
        Number(-1, 2**31 - 1),
        "µs",
        "4.10",
        "Read latency that write-back throttling aims at; 0 off, -1 default.",
    ),
    _limit(
        "write_cache",
        Choice(("write back", "write through")),
        "",
        "4.7",
        "Cache mode the kernel assumes; 'write through' stops flushes, the drive itself is not changed.",
    ),
    _limit("rotational", FLAG, "", "2.6.29", "1: the kernel treats it as a rotating disk."),
    _limit("add_random", FLAG, "", "2.6.36", "1: its interrupts feed the entropy pool."),
    _limit("iostats", FLAG, "", "2.6.29", "1: the kernel counts its I/O (/proc/diskstats)."),
    _limit("iostats_passthrough", FLAG, "", "6.12", "1: the kernel counts passthrough commands too."),
    _queue(
        "io_poll", FLAG, "", "4.4", "Polling for completions; newer kernels let the driver choose and ignore writes."
    ),
    _queue(
        "io_poll_delay",
        Number(-1, 2**31 - 1),
        "µs",
        "4.10",
        "Sleep before polling: -1 none, 0 adaptive; fixed to -1 since 6.5.",
    ),
    _queue(
        "io_timeout", Number(1, 2**31 - 1, grain=11), "ms", "5.0", "A request that takes longer is aborted or retried."
    ),
    _limit("stable_writes", FLAG, "", "5.10", "1: pages must not change while they are written."),
    _limit("discard_max_bytes", Number(0, 2**63 - 1, grain=4096), "bytes", "2.6.39", "Largest discard request."),
    _limit(
        "write_zeroes_unmap_max_bytes",
        Number(0, 2**63 - 1),
        "bytes",
        "6.17",
        "Largest request that zeroes by unmapping: 0 none, or the device's limit.",
    ),
    _queue("async_depth", Number(1, 65536), "requests", "6.20", "Asynchronous requests that the elevator admits."),
)

_ELEVATORS = (
    _elevator("read_expire", (*_DEADLINES, *_AS), _MS, "ms", "2.6.10", "Age at which a read is served first."),
    _elevator("write_expire", (*_DEADLINES, *_AS), _MS, "ms", "2.6.10", "Age at which a write is served first."),
    _elevator(
        "writes_starved", _DEADLINES, _ANY, "batches", "2.6.10", "Batches of reads before writes get their turn."
    ),
    _elevator("fifo_batch", _DEADLINES, _ANY, "requests", "2.6.10", "Requests per batch in sorted order."),
    _elevator("front_merges", _DEADLINES, FLAG, "", "2.6.10", "1: a request may be merged in front of another."),
    _elevator(
        "async_depth",
        ("mq-deadline",),
        Number(1, 65536),
        "requests",
        "5.11-6.19",
        "Asynchronous requests that may be queued.",
    ),
    _elevator(
        "prio_aging_expire",
        ("mq-deadline",),
        _MS,
        "ms",
        "5.18",
        "Longest wait of a request of lower priority.",
    ),
    _elevator("read_lat_nsec", _KYBER, Number(0, 2**63 - 1), "ns", "4.12", "Target latency of reads."),
    _elevator("write_lat_nsec", _KYBER, Number(0, 2**63 - 1), "ns", "4.12", "Target latency of synchronous writes."),
    _elevator(
        "slice_idle",
        (*_BFQ, *_CFQ),
        _MS,
        "ms",
        "2.6.18",
        "Wait for the next request of the same process; 0 for none.",
        "slice_idle_us",
    ),
    _elevator("slice_idle_us", (*_BFQ, *_CFQ), Number(0, 2**31 - 1), "µs", "4.8", "The same, finer.", "slice_idle"),
    _elevator(
        "fifo_expire_sync", (*_BFQ, *_CFQ), _MS, "ms", "2.6.18", "Age at which a synchronous request goes first."
    ),
    _elevator(
        "fifo_expire_async", (*_BFQ, *_CFQ), _MS, "ms", "2.6.18", "Age at which an asynchronous request goes first."
    ),
    _elevator("back_seek_max", (*_BFQ, *_CFQ), _ANY, "KiB", "2.6.18", "Longest backward seek."),
    _elevator(
        "back_seek_penalty",
        (*_BFQ, *_CFQ),
        Number(1, 2**31 - 1),
        "",
        "2.6.18",
        "Cost of a backward seek, in forward seeks.",
    ),
    _elevator("low_latency", (*_BFQ, *_CFQ), FLAG, "", "2.6.32", "Favour interactive and soft real-time processes."),
    _elevator("max_budget", _BFQ, _ANY, "sectors", "4.12", "Service per turn of a queue; 0 lets bfq choose."),
    _elevator("timeout_sync", _BFQ, _MS, "ms", "4.12", "Longest turn of a queue."),
    _elevator(
        "strict_guarantees",
        _BFQ,
        FLAG,
        "",
        "4.12",
        "Idle for each queue, one request at a time: fair and slow.",
        "slice_idle",
        "slice_idle_us",
    ),
    _elevator(
        "quantum", _CFQ, Number(1, 2**31 - 1), "requests", "2.6.18-4.20", "Requests sent to the drive at a time."
    ),
    _elevator("slice_sync", _CFQ, _MS, "ms", "2.6.18-4.20", "Time slice of a process's synchronous requests."),
    _elevator("slice_async", _CFQ, _MS, "ms", "2.6.18-4.20", "Time slice of asynchronous requests."),
    _elevator(
        "slice_async_rq", _CFQ, Number(1, 2**31 - 1), "requests", "2.6.18-4.20", "Asynchronous requests in a slice."
    ),
    _elevator("group_idle", _CFQ, _MS, "ms", "2.6.36-4.20", "Wait for the next request of the same group."),
    _elevator("target_latency", _CFQ, _MS, "ms", "3.2-4.20", "Time in which each process gets a slice."),
    _elevator("read_batch_expire", _AS, _MS, "ms", "2.6.10-2.6.32", "Longest batch of reads."),
    _elevator("write_batch_expire", _AS, _MS, "ms", "2.6.10-2.6.32", "Longest batch of writes."),
    _elevator("antic_expire", _AS, _MS, "ms", "2.6.10-2.6.32", "Wait for a read nearby."),
)

_DEVICE = (
    _device(
        "queue_depth",
        ("device/queue_depth",),
        Number(1, 65536),
        "commands",
        "2.6",
        "Commands the drive gets at a time (NCQ, TCQ); 1 turns queueing off.",
    ),
    _device(
        "ncq_prio_enable", ("device/ncq_prio_enable",), FLAG, "", "4.10", "Pass I/O priorities to the drive (NCQ)."
    ),
    _device(
        "cache_type",
        ("device/scsi_disk/*/cache_type", "cache_type"),
        Choice(("write back", "write through", "none", "write back, no read (daft)")),
        "",
        "2.6.18",
        "Write cache of the drive itself (SCSI, ATA; virtio asks its host); some drives keep it after power-off.",
    ),
    _device(
        "timeout", ("device/timeout",), Number(1, 2**31 - 1), "s", "2.6", "A SCSI command that takes longer is aborted."
    ),
    _device(
        "bdi/min_ratio",
        ("bdi/min_ratio",),
        Number(0, 100),
        "%",
        "2.6.24",
        "Smallest share of the dirty page limit.",
        "bdi/min_ratio_fine",
    ),
    _device(
        "bdi/min_ratio_fine",
        ("bdi/min_ratio_fine",),
        Number(0, 1_000_000),
        "1/1000000",
        "6.2",
        "The same, finer.",
        "bdi/min_ratio",
    ),
    _device(
        "bdi/max_ratio",
        ("bdi/max_ratio",),
        Number(0, 100),
        "%",
        "2.6.24",
        "Largest share of the dirty page limit.",
        "bdi/max_ratio_fine",
    ),
    _device(
        "bdi/max_ratio_fine",
        ("bdi/max_ratio_fine",),
        Number(0, 1_000_000),
        "1/1000000",
        "6.2",
        "The same, finer.",
        "bdi/max_ratio",
    ),
    _device(
        "bdi/strict_limit", ("bdi/strict_limit",), FLAG, "", "6.2", "Enforce its share even with plenty of memory."
    ),
)

_MD = (
    _md("stripe_cache_size", Number(17, 32768), "pages a member", "2.6.17", "Stripes that RAID4/5/6 keeps in memory."),
    _md(
        "preread_bypass_threshold",
        Number(0, 32768),
        "stripes",
        "2.6.25",
        "Full stripes served before one that must read first.",
    ),
    _md("group_thread_cnt", Number(0, 8192), "threads", "3.12", "Parity threads per NUMA node; 0: one for all."),
    _md("skip_copy", FLAG, "", "3.16", "Write from the caller's pages without a copy."),
    _md("rmw_level", Number(0, 2), "", "4.1", "Small writes: 0 reconstruct, 1 and 2 also read-modify-write."),
    _md("sync_speed_min", Speed(), "KiB/s", "2.6.17", "Minimum resync speed of this array, beside other I/O."),
    _md("sync_speed_max", Speed(), "KiB/s", "2.6.17", "Maximum resync speed of this array."),
    _md("safe_mode_delay", Seconds(), "s", "2.6.18", "Quiet time after which an array is marked clean."),
)

_VM = (
    _sysctl(
        Scope.VM,
        "dirty_ratio",
        Number(0, 100),
        "% of free and cached memory",
        "2.6",
        "Dirty pages at which writers must wait.",
        "dirty_bytes",
        zero_of="dirty_bytes",
    ),
    _sysctl(
        Scope.VM,
        "dirty_bytes",
        Number(8192, 2**63 - 1),
        "bytes",
        "2.6.29",
        "The same in bytes; either is 0.",
        "dirty_ratio",
        zero_of="dirty_ratio",
    ),
    _sysctl(
        Scope.VM,
        "dirty_background_ratio",
        Number(0, 100),
        "% of free and cached memory",
        "2.6",
        "Dirty pages at which write-back starts.",
        "dirty_background_bytes",
        zero_of="dirty_background_bytes",
    ),
    _sysctl(
        Scope.VM,
        "dirty_background_bytes",
        Number(1, 2**63 - 1),
        "bytes",
        "2.6.29",
        "The same in bytes; either is 0.",
        "dirty_background_ratio",
        zero_of="dirty_background_ratio",
    ),
    _sysctl(
        Scope.VM,
        "dirty_expire_centisecs",
        Number(0, 2**31 - 1),
        "1/100 s",
        "2.6",
        "Age at which a dirty page is written.",
    ),
    _sysctl(
        Scope.VM,
        "dirty_writeback_centisecs",
        Number(0, 2**31 - 1),
        "1/100 s",
        "2.6",
        "Interval of write-back; 0 never.",
    ),
    _sysctl(
        Scope.VM,
        "dirtytime_expire_seconds",
        Number(0, 2**31 - 1),
        "s",
        "4.0",
        "Longest wait of lazy time stamps (lazytime).",
    ),
    _sysctl(
        Scope.VM,
        "swappiness",
        Number(0, 200),
        "",
        "2.6",
        "Preference for swapping over dropping cache; over 100 since 5.8.",
    ),
    _sysctl(
        Scope.VM,
        "page-cluster",
        Number(0, 31),
        "log2 pages",
        "2.6",
        "Pages read from swap at a time, as a power of two.",
    ),
    _sysctl(Scope.VM, "min_free_kbytes", Number(0, 2**40), "KiB", "2.6", "Memory kept free."),
    _sysctl(
        Scope.VM,
        "watermark_scale_factor",
        Number(1, 3000),
        "1/10000 of memory",
        "4.6",
        "Free memory that starts reclaim.",
    ),
    _sysctl(
        Scope.VM,
        "vfs_cache_pressure",
        Number(0, 2**31 - 1),
        "%",
        "2.6",
        "Preference for dropping inodes and names over pages.",
    ),
    _sysctl(
        Scope.VM, "laptop_mode", Number(0, 2**31 - 1), "s", "2.6.6", "Delay from a read to writing everything; 0 off."
    ),
    _sysctl(Scope.VM, "zone_reclaim_mode", Number(0, 7), "", "2.6.15", "Reclaim in the own NUMA node first (bits)."),
)

_MACHINE = (
    _sysctl(
        Scope.RAID,
        "speed_limit_min",
        Number(0, 2**31 - 1),
        "KiB/s",
        "2.6",
        "Minimum resync speed of all arrays.",
    ),
    _sysctl(Scope.RAID, "speed_limit_max", Number(0, 2**31 - 1), "KiB/s", "2.6", "Maximum resync speed of all arrays."),
    Knob(
        scope=Scope.CPU,
        name="governor",
        where=("scaling_governor",),
        values=Choice(("performance", "powersave", "schedutil", "ondemand", "conservative", "userspace")),
        unit="",
        about="Policy that chooses the clock frequency.",
        since="2.6",
        moves=("energy_performance_preference",),
    ),
    Knob(
        scope=Scope.CPU,
        name="energy_performance_preference",
        where=("energy_performance_preference",),
        values=Choice(("default", "performance", "balance_performance", "balance_power", "power")),
        unit="",
        about="Hint to processors that choose their own clock.",
        since="4.10",
    ),
    Knob(
        scope=Scope.IRQ,
        name="smp_affinity_list",
        where=("smp_affinity_list",),
        values=Cpus(),
        unit="CPUs",
        about="CPUs that may serve this interrupt; interrupts that the kernel manages refuse.",
        since="2.6.39",
    ),
)

KNOBS: tuple[Knob, ...] = (*_QUEUE, *_ELEVATORS, *_DEVICE, *_MD, *_VM, *_MACHINE)
"""All of them, in the order they are shown."""

SYNC_ACTION = _md(
    "sync_action",
    Choice(("idle", "check", "repair")),
    "",
    "2.6.17",
    "Activity of an array by itself. An interrupted check continues from its position when it is requested again.",
)
SWAP_AREA = Knob(
    scope=Scope.SWAP,
    name="priority",
    where=("",),
    values=SwapState(),
    unit="",
    about="State of a swap area: off, or in use with a priority.",
    since="2.6",
)
TEMPORARY = (SYNC_ACTION, SWAP_AREA)
"""States, not settings: `quiet_machine=` changes and restores them like knobs, but they are not offered as knobs."""

_BY_ID = {knob.id: knob for knob in KNOBS}
_TEMPORARY = {knob.id: knob for knob in TEMPORARY}
READ_ONLY = {*settings.QUEUE, *settings.DEVICE, *settings.MD, *settings.OTHER} - {
    path.removeprefix("queue/").removeprefix("device/").removeprefix("md/") for knob in KNOBS for path in knob.where
}
"""Settings that are shown but cannot be changed."""


def knob(name: str) -> Knob:
    """The knob with this name in the catalogue, this bare name if it is unique, or this path:
    `md/stripe_cache_size`."""
    plain = name.replace("iosched.", IOSCHED)
    if plain in _BY_ID:
        return _BY_ID[plain]
    same = [one for one in KNOBS if plain in (one.name, one.name.rpartition("/")[2], *one.where)]
    if len(same) == 1:
        return same[0]
    if len(same) > 1:
        raise KnobUsage(f"{name}: could be {' or '.join(one.id for one in same)}; write which")
    if plain.removeprefix("queue/").removeprefix("device/").removeprefix("md/") in READ_ONLY:
        raise KnobUsage(f"{name} can only be read; `spindle knobs list` shows what can be changed")
    names = [*_BY_ID, *(one.name for one in KNOBS)]
    hint = meant(plain, names, "`spindle knobs list` shows them all", cutoff=0.5)
    raise KnobUsage(f"no knob `{name}`; {hint}")


def known(scope: Scope, name: str) -> Knob | None:
    """The knob that a journal or iosched/ names: from the catalogue, or a parameter of a newer elevator."""
    address = name if scope is Scope.DEVICE else f"{scope}.{name}"
    found = _BY_ID.get(address) or _TEMPORARY.get(address)
    if found is None and scope is Scope.DEVICE and re.fullmatch(r"iosched/[A-Za-z0-9_]{1,64}", name):
        parameter = name.removeprefix(IOSCHED)
        return _elevator(parameter, (), Text(), "", "", "A parameter of the elevator.")
    return found


def may_move(mover: Knob, name: str) -> bool:
    """True if the kernel may reset the knob of this name (of the same scope) when `mover` is changed."""
    if mover.name == name:
        return False
    return any(
        name.startswith(one[:-1]) if one.endswith("*") else name == one for one in (*mover.moves, *mover.disturbs)
    )


_Any = TypeVar("_Any")


def movers_first(items: Iterable[_Any], knob_of: Callable[[_Any], Knob | None]) -> list[_Any]:
    """Sort knobs that move others before these, and knobs that many others may move (above all the read-ahead) last.
    The order is otherwise kept, also for two that move each other."""
    left = [(one, knob_of(one)) for one in items]
    scopes = [one.scope for _, one in left if one is not None]
    left.sort(key=lambda pair: (scopes.index(pair[1].scope), _rank(pair[1])) if pair[1] is not None else (-1, (0, 0)))
    found: list[_Any] = []
    while left:
        at = next((at for at, (_, one) in enumerate(left) if not any(_is_before(other, one) for _, other in left)), 0)
        found.append(left.pop(at)[0])
    return found


@cache
def _rank(one: Knob) -> tuple[int, int]:
    """Sort key: number of knobs that may move it; number it may move, the largest first."""
    return sum(_is_before(other, one) for other in KNOBS), -sum(_is_before(one, other) for other in KNOBS)


def _is_before(mover: Knob | None, one: Knob | None) -> bool:
    if mover is None or one is None:
        return False
    return mover.scope is one.scope and may_move(mover, one.name) and not may_move(one, mover.name)
