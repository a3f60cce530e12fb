"""The points of the grid of write-intent bitmaps: levels x bitmaps, and for each of these pairs four loads."""

from __future__ import annotations

import itertools
import random

from msgspec import Struct

from spindle.lab.machine import CLOCK_READING_NS
from spindle.validation.grid import points as direct
from spindle.validation.grid.machines import DRIVES, array_lines, dealt, direct_load, drives_of, out_of

LEVELS = ("raid1", "raid10n2", "raid10f2", "raid10o2", "raid5", "raid6")
BITMAPS = {"none": "", "64M": "bitmap = 'internal'", "4M": "bitmap = 'internal'\nbitmap_chunk = '4MiB'"}
"""By bytes for each bit: mdadm's choice, and one for which small arrays have room too."""
OPERATIONS = {name: direct.OPERATIONS[name] for name in ("randwrite", "mix", "write")} | {
    "slow": f"{direct.OPERATIONS['randwrite']}\nthink = '700ms'"
}
"""Names as in fio; `slow` pauses after each write, for longer than an array stays marked as active."""
SIZES_KIB = (4, 64, 256)
OUTSTANDING = (1, 2, 8, 16)
LOADS_OF_A_PAIR = 4
REQUESTS = 1500
SLOW_REQUESTS = 30
REGION = "1GiB-3GiB"
"""512 bits of 4 MiB."""
SEED = 63


class BitmapPoint(Struct, frozen=True, kw_only=True):
    """An array and a load that writes."""

    level: str
    """md's level with RAID10's layout: `raid10f2`."""
    bitmap: str
    """A key of `BITMAPS`."""
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
        """For people: `raid10f2 disk bitmap-4M mix 64K x8t` (8 threads)."""
        load = f"{self.operation} {self.size_kib}K x{out_of(self.outstanding, self.threads)}"
        return f"{self.level} {self.drive} bitmap-{self.bitmap} {load}"

    @property
    def cells(self) -> dict[str, str]:
        """The point as a row of a table."""
        machine = {"level": self.level, "drive": self.drive, "bitmap": self.bitmap}
        return machine | {
            "load": self.operation,
            "KiB": str(self.size_kib),
            "out": out_of(self.outstanding, self.threads),
        }

    @property
    def factors(self) -> dict[str, str]:
        """The values by which the grid is summed up."""
        return {"level": self.level, "bitmap": f"bitmap {self.bitmap}", "drive": self.drive, "load": self.operation}

    @property
    def drives(self) -> int:
        """Drives of the machine."""
        return drives_of(self.level)

    @property
    def requests(self) -> int:
        """Requests of the load."""
        return SLOW_REQUESTS if self.operation == "slow" else REQUESTS

    def machine_text(self) -> str:
        """The machine file."""
        # The lab has one processor, and a thread pays for readings of the clock only.
        lines = ["[host]", f"clock_reading = '{CLOCK_READING_NS}ns'", "[queue]", "scheduler = 'mq-deadline'"]
        lines += [*array_lines(self.level, direct.CHUNK_KIB), BITMAPS[self.bitmap]]
        return "\n".join([*lines, "[[drive]]", f"count = {self.drives}", DRIVES[self.drive]]) + "\n"

    def workload_text(self) -> str:
        """The workload file."""
        operation = OPERATIONS[self.operation]
        return direct_load(operation, self.requests, REGION, self.size_kib, self.outstanding, self.threads)


def points(seed: int = SEED) -> list[BitmapPoint]:
    """The grid, or other points: the same for a seed. Every value of a factor occurs equally often, up to one."""
    pairs = list(itertools.product(LEVELS, BITMAPS)) * LOADS_OF_A_PAIR
    deal = random.Random(seed)
    drives, operations = dealt(deal, DRIVES, len(pairs)), dealt(deal, OPERATIONS, len(pairs))
    sizes, depths = dealt(deal, SIZES_KIB, len(pairs)), dealt(deal, OUTSTANDING, len(pairs))
    threads = dealt(deal, (False, True), len(pairs))
    return [
        BitmapPoint(
            level=level,
            bitmap=bitmap,
            drive=drive,
            operation=operation,
            size_kib=size_kib,
            # Pauses of several requests end at different times.
            outstanding=1 if operation == "slow" else outstanding,
            threads=in_threads and outstanding > 1 and operation != "slow",
        )
        for (level, bitmap), drive, operation, size_kib, outstanding, in_threads in zip(
            pairs, drives, operations, sizes, depths, threads, strict=True
        )
    ]
