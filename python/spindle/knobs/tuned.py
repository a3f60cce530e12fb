"""Ranges within which a search moves a knob of the catalogue, and what a change trades.

Ranges are those in which an effect on storage is plausible, from the kernel's defaults and its documentation (the
sources of `catalogue`); the catalogue's own ranges are what the kernel takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from spindle.knobs.catalogue import ELEVATORS, Knob


class Scale(StrEnum):
    """Spacing of the levels."""

    LOG = "log"
    LINEAR = "linear"
    CHOICE = "choice"


class Trade(StrEnum):
    """The cost that a change may have besides speed."""

    PERFORMANCE = "performance"
    """Nothing."""
    DURABILITY = "durability"
    """More data is lost by a crash or a power cut."""
    MEMORY = "memory"
    """Memory that others could use."""


@dataclass(frozen=True)
class TuneRange:
    """The range of one knob."""

    scale: Scale
    low: int = 0
    high: int = 0
    values: tuple[str, ...] = ()
    """The values of a choice."""
    trade: Trade = Trade.PERFORMANCE
    on_request: bool = False
    """True if only a search that names it moves it: it concerns few loads, or the whole machine."""


def _log(low: int, high: int, trade: Trade = Trade.PERFORMANCE, on_request: bool = False) -> TuneRange:
    return TuneRange(Scale.LOG, low, high, trade=trade, on_request=on_request)


def _linear(low: int, high: int, trade: Trade = Trade.PERFORMANCE, on_request: bool = False) -> TuneRange:
    return TuneRange(Scale.LINEAR, low, high, trade=trade, on_request=on_request)


def _choice(*values: str, trade: Trade = Trade.PERFORMANCE, on_request: bool = False) -> TuneRange:
    return TuneRange(Scale.CHOICE, values=values, trade=trade, on_request=on_request)


RANGES: Mapping[str, TuneRange] = {
    "scheduler": _choice(*ELEVATORS),
    "nr_requests": _log(16, 1024),
    "read_ahead_kb": _log(16, 16384),
    "max_sectors_kb": _log(64, 4096),
    "nomerges": _choice("0", "1", "2", on_request=True),
    "rq_affinity": _choice("0", "1", "2", on_request=True),
    "wbt_lat_usec": _choice("0", "2000", "10000", "75000", on_request=True),
    "write_cache": _choice("write back", "write through", trade=Trade.DURABILITY),
    "add_random": _choice("0", "1", on_request=True),
    "iostats": _choice("0", "1", on_request=True),
    "queue_depth": _log(1, 32),
    "cache_type": _choice("write back", "write through", trade=Trade.DURABILITY, on_request=True),
    "iosched/read_expire": _log(16, 2048),
    "iosched/write_expire": _log(256, 16384),
    "iosched/writes_starved": _log(1, 16),
    "iosched/fifo_batch": _log(1, 128),
    "iosched/front_merges": _choice("0", "1", on_request=True),
    "iosched/read_lat_nsec": _log(100_000, 50_000_000),
    "iosched/write_lat_nsec": _log(1_000_000, 200_000_000),
    "iosched/slice_idle": _choice("0", "2", "8", "16"),
    "iosched/low_latency": _choice("0", "1"),
    "iosched/quantum": _log(1, 64),
    "iosched/slice_sync": _log(16, 512),
    "iosched/timeout_sync": _log(16, 512, on_request=True),
    "stripe_cache_size": _log(128, 16384, Trade.MEMORY),
    "group_thread_cnt": _choice("0", "1", "2", "4", "8"),
    "preread_bypass_threshold": _choice("0", "1", "4", "16", on_request=True),
    "skip_copy": _choice("0", "1", on_request=True),
    "rmw_level": _choice("0", "1", on_request=True),
    "vm.dirty_ratio": _linear(5, 80, Trade.DURABILITY, on_request=True),
    "vm.dirty_background_ratio": _linear(1, 50, Trade.DURABILITY, on_request=True),
    "vm.dirty_expire_centisecs": _log(256, 16384, Trade.DURABILITY, on_request=True),
    "vm.dirty_writeback_centisecs": _log(64, 4096, Trade.DURABILITY, on_request=True),
    "vm.swappiness": _choice("0", "10", "60", "100", on_request=True),
    "vm.vfs_cache_pressure": _log(16, 512, Trade.MEMORY, on_request=True),
    "vm.min_free_kbytes": _log(16384, 1048576, Trade.MEMORY, on_request=True),
}
"""Knob of the catalogue -> its range. The others are never moved by a search."""

_ELEVATOR_KERNELS: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "none": ((4, 11), (99, 0)),
    "mq-deadline": ((4, 11), (99, 0)),
    "kyber": ((4, 12), (99, 0)),
    "bfq": ((4, 12), (99, 0)),
    "noop": ((2, 6), (4, 20)),
    "deadline": ((2, 6), (4, 20)),
    "cfq": ((2, 6), (4, 20)),
    "anticipatory": ((2, 6), (2, 6)),
}
"""First and last kernel of each elevator: the single-queue ones were removed with 5.0."""


def elevators_of(kernel: str) -> list[str]:
    """Elevators of a kernel version such as `2.6.25` or `6.1`, in the order of the catalogue."""
    version = _version(kernel)[:2]
    return [name for name in ELEVATORS if _ELEVATOR_KERNELS[name][0] <= version <= _ELEVATOR_KERNELS[name][1]]


def has_knob(kernel: str, one: Knob) -> bool:
    """True if a kernel version has the knob."""
    first, _, last = one.since.partition("-")
    version = _version(kernel)
    return _version(first) <= version and (not last or version[: len(_version(last))] <= _version(last))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-")[0].split(".") if part.isdigit())
