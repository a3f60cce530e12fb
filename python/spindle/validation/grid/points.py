"""The points of the grid of direct I/O: levels x schedulers, and for each of these pairs four loads."""

from __future__ import annotations

import itertools
import random

from msgspec import Struct

from spindle.lab.machine import CLOCK_READING_NS
from spindle.validation.grid.machines import DRIVES, array_lines, dealt, direct_load, drives_of, out_of

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
CHUNK_KIB = 64
LOADS_OF_A_PAIR = 4
MOST_REQUESTS = 3000
LEAST_REQUESTS = 600
MOST_BYTES = 256 * 2**20
"""A load ends after `MOST_REQUESTS`, or sooner with long requests."""
REGION = "1%-100%"
"""Linux has read the first blocks of an array when it starts it, and they are in the drives' caches."""
SEED = 61
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
        load = f"{self.operation} {self.size_kib}K x{out_of(self.outstanding, self.threads)}"
        return f"{self.level} {self.drive} {self.scheduler} {load}"

    @property
    def cells(self) -> dict[str, str]:
        """The point as a row of a table."""
        out = out_of(self.outstanding, self.threads)
        machine = {"level": self.level, "drive": self.drive, "scheduler": self.scheduler}
        return machine | {"load": self.operation, "KiB": str(self.size_kib), "out": out}

    @property
    def factors(self) -> dict[str, str]:
        """The values by which the grid is summed up."""
        return {"level": self.level, "scheduler": self.scheduler, "drive": self.drive}

    @property
    def drives(self) -> int:
        """Drives of the machine."""
        return drives_of(self.level)

    @property
    def requests(self) -> int:
        """Requests of the load."""
        return max(LEAST_REQUESTS, min(MOST_REQUESTS, MOST_BYTES // (self.size_kib * 1024)))

    def machine_text(self) -> str:
        """The machine file."""
        # The lab has one processor, and a thread pays for readings of the clock only.
        lines = ["[host]", f"clock_reading = '{CLOCK_READING_NS}ns'", "[queue]", f"scheduler = '{self.scheduler}'"]
        lines += array_lines(self.level, CHUNK_KIB)
        return "\n".join([*lines, "[[drive]]", f"count = {self.drives}", DRIVES[self.drive]]) + "\n"

    def workload_text(self) -> str:
        """The workload file."""
        operation = OPERATIONS[self.operation]
        return direct_load(operation, self.requests, REGION, self.size_kib, self.outstanding, self.threads)


def points(seed: int = SEED) -> list[Point]:
    """The grid, or other points: the same for a seed. Every value of a factor occurs equally often, up to one."""
    pairs = list(itertools.product(LEVELS, SCHEDULERS)) * LOADS_OF_A_PAIR
    deal = random.Random(seed)
    drives, operations = dealt(deal, DRIVES, len(pairs)), dealt(deal, OPERATIONS, len(pairs))
    sizes, depths = dealt(deal, SIZES_KIB, len(pairs)), dealt(deal, DEPTHS, len(pairs))
    threads = dealt(deal, (False, True), len(pairs))
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
