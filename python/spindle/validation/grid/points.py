"""The points of the grid: levels x schedulers, and for each of these pairs four loads."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

LEVELS = ("single", "raid0", "raid1", "raid10n2", "raid10f2", "raid10o2", "raid5", "raid6")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
SIZES_KIB = (4, 16, 64, 256, 1024)
DEPTHS = (1, 2, 4, 8, 16, 32)
OPERATIONS = {
    "randread": "pattern = 'uniform'\nwrite_fraction = 0",
    "randwrite": "pattern = 'uniform'\nwrite_fraction = 1",
    "mix": "pattern = 'uniform'\nwrite_fraction = 0.3",
    "read": "pattern = 'sequential'\nwrite_fraction = 0",
    "write": "pattern = 'sequential'\nwrite_fraction = 1",
}
"""Names as in fio; the mix writes 30 % of its requests."""
DRIVES = {
    "plain": "service = '100us'\ntransfer_rate = '200 MB/s'\nflush = '100us'\nqueue_depth = 32\ncapacity = '4GiB'",
    "disk": "model = 'HDS725050KLA360'\nqueue_depth = 31",
    "flash": "model = '860-EVO-1TB'",
}
"""A plain service time, a disk of 7200 rpm, a flash drive; the last two on SATA."""
CHUNK_KIB = 64
LOADS_OF_A_PAIR = 4
MOST_REQUESTS = 3000
LEAST_REQUESTS = 600
MOST_BYTES = 256 * 2**20
"""A load ends after `MOST_REQUESTS`, or sooner with long requests."""
T = TypeVar("T")
_SEED = 61
"""Seed of the order in which the values are dealt out to the points."""


class Point(Struct, frozen=True, kw_only=True):
    """A machine and a load."""

    level: str
    """`single`, or md's level with RAID10's layout: `raid10f2`."""
    scheduler: str
    drive: str
    """A key of `DRIVES`."""
    operation: str
    """A key of `OPERATIONS`."""
    size_kib: int
    outstanding: int
    threads: bool
    """As many threads with one request each; otherwise one thread has all of them."""

    @property
    def name(self) -> str:
        """For people: `raid10f2 disk bfq mix 64K x8t` (8 threads)."""
        load = f"{self.operation} {self.size_kib}K x{self.outstanding}{'t' if self.threads else ''}"
        return f"{self.level} {self.drive} {self.scheduler} {load}"

    @property
    def drives(self) -> int:
        """Drives of the machine."""
        return {"single": 1, "raid1": 2}.get(self.level, 4)

    @property
    def requests(self) -> int:
        """Requests of the load."""
        return max(LEAST_REQUESTS, min(MOST_REQUESTS, MOST_BYTES // (self.size_kib * 1024)))

    def machine_text(self) -> str:
        """The machine file."""
        lines = ["[queue]", f"scheduler = '{self.scheduler}'"]
        if self.level != "single":
            level, _, layout = self.level.partition("raid10")
            lines += ["[array]", f"level = '{level or 'raid10'}'", "data_offset = '1MiB'"]
            lines += [f"layout = '{layout}'"] if layout else []
            lines += [f"chunk = '{CHUNK_KIB}KiB'"] if self.level != "raid1" else []
        return "\n".join([*lines, "[[drive]]", f"count = {self.drives}", DRIVES[self.drive]]) + "\n"

    def workload_text(self) -> str:
        """The workload file."""
        workers, depth = (self.outstanding, 1) if self.threads else (1, self.outstanding)
        lines = ["direct = true", "seconds = 'none'", f"requests = {self.requests}", OPERATIONS[self.operation]]
        return "\n".join([*lines, f"size = '{self.size_kib}KiB'", f"workers = {workers}", f"depth = {depth}"]) + "\n"


def points() -> list[Point]:
    """The grid, the same each time. Every value of a factor occurs equally often, up to one."""
    pairs = list(itertools.product(LEVELS, SCHEDULERS)) * LOADS_OF_A_PAIR
    deal = random.Random(_SEED)
    drives, operations = _dealt(deal, DRIVES, len(pairs)), _dealt(deal, OPERATIONS, len(pairs))
    sizes, depths = _dealt(deal, SIZES_KIB, len(pairs)), _dealt(deal, DEPTHS, len(pairs))
    threads = _dealt(deal, (False, True), len(pairs))
    return [
        Point(
            level=level,
            scheduler=scheduler,
            drive=drive,
            operation=operation,
            size_kib=size_kib,
            outstanding=outstanding,
            threads=in_threads and outstanding > 1,
        )
        for (level, scheduler), drive, operation, size_kib, outstanding, in_threads in zip(
            pairs, drives, operations, sizes, depths, threads, strict=True
        )
    ]


def _dealt(deal: random.Random, values: Iterable[T], count: int) -> list[T]:
    found = list(itertools.islice(itertools.cycle(values), count))
    deal.shuffle(found)
    return found
