"""The points of the grid of buffered I/O: levels x what is on the array, and for each of these pairs five loads."""

from __future__ import annotations

import itertools
import random

from msgspec import Struct

from spindle.lab.machine import CLOCK_READING_NS
from spindle.validation.grid.machines import DRIVES, array_lines, dealt, drives_of

LEVELS = ("single", "raid0", "raid10n2", "raid10f2", "raid10o2", "raid5", "raid6")
CONTENTS = {
    "raw": "",
    "ext4": "type = 'ext4'\nmount = 'noinit_itable,no_prefetch_block_bitmaps'",
    "xfs": "type = 'xfs'",
}
"""A load on the device itself, or in a file; without ext4's background work on a new file system, which begins at a
random time."""
LIMITS = {
    "default": "",
    "wide": "dirty_ratio = 40",
    "tight": "dirty_background_ratio = 2\ndirty_ratio = 5\ndirty_expire = '3s'\ndirty_writeback = '1s'",
}
"""Dirty limits: 6.1's own; those of 2.6.20; little memory, written early."""
READ_AHEADS_KIB = (0, 16, 128, 512, 2048, 8192)
CHUNKS_KIB = (64, 128, 256, 512, 1024, 2048)
OPERATIONS = {
    "read": "pattern = 'sequential'\nwrite_fraction = 0",
    "write": "pattern = 'sequential'\nwrite_fraction = 1\nend_fsync = true",
    "randread": "pattern = 'uniform'\nwrite_fraction = 0",
    "randwrite": "pattern = 'uniform'\nwrite_fraction = 1\nend_fsync = true",
}
"""Names as in fio. The last fsync of writes counts: without it they would only reach the memory."""
SIZES_KIB = (4, 64, 1024)
LOADS_OF_A_PAIR = 5
MEMORY = "512MiB"
FILE_BYTES = 256 * 2**20
MOST_RANDOM = 3000
MOST_BYTES = 160 * 2**20
"""A load ends after so many bytes, or sooner if it is random with short requests: more than both lower limits of
dirty pages."""
SEED = 62


class BufferedPoint(Struct, frozen=True, kw_only=True):
    """A machine and a load through the page cache, of one thread."""

    level: str
    """`single`, or md's level with RAID10's layout: `raid10f2`."""
    content: str
    """A key of `CONTENTS`."""
    drive: str
    """`plain` or `disk`, keys of `DRIVES`."""
    operation: str
    """A key of `OPERATIONS`."""
    size_kib: int
    read_ahead_kib: int
    chunk_kib: int
    """0 without an array."""
    limits: str
    """A key of `LIMITS`."""

    @property
    def name(self) -> str:
        """For people: `raid10f2 disk xfs write 64K ra128 c512 tight`."""
        machine = f"{self.level} {self.drive} {self.content} {self.operation} {self.size_kib}K ra{self.read_ahead_kib}"
        chunk = f" c{self.chunk_kib}" if self.chunk_kib else ""
        return f"{machine}{chunk} {self.limits}"

    @property
    def cells(self) -> dict[str, str]:
        """The point as a row of a table."""
        load = {"load": self.operation, "KiB": str(self.size_kib)}
        settings = {"read-ahead": str(self.read_ahead_kib), "chunk": str(self.chunk_kib or "-"), "dirty": self.limits}
        return {"level": self.level, "drive": self.drive, "on it": self.content} | load | settings

    @property
    def factors(self) -> dict[str, str]:
        """The values by which the grid is summed up."""
        chunk = f"chunk {self.chunk_kib}K" if self.chunk_kib else "no chunk"
        return {
            "level": self.level,
            "on it": self.content,
            "drive": self.drive,
            "load": self.operation,
            "size": f"requests of {self.size_kib}K",
            "read-ahead": f"read-ahead {self.read_ahead_kib}K",
            "chunk": chunk,
            "dirty": f"dirty {self.limits}",
        }

    @property
    def drives(self) -> int:
        """Drives of the machine."""
        return drives_of(self.level)

    @property
    def requests(self) -> int:
        """Requests of the load."""
        most = MOST_BYTES // (self.size_kib * 1024)
        return min(most, MOST_RANDOM) if self.operation.startswith("rand") else most

    def machine_text(self) -> str:
        """The machine file."""
        # The lab's processor costs no time but for readings of the clock.
        lines = ["[host]", f"clock_reading = '{CLOCK_READING_NS}ns'", f"memory = '{MEMORY}'"]
        lines += ["copy_rate = '900000 GB/s'", LIMITS[self.limits]]
        lines += ["[queue]", f"read_ahead = '{self.read_ahead_kib}KiB'", *array_lines(self.level, self.chunk_kib)]
        if self.content != "raw":
            lines += ["[filesystem]", CONTENTS[self.content], f"size = {FILE_BYTES}"]
        return "\n".join([*lines, "[[drive]]", f"count = {self.drives}", DRIVES[self.drive]]) + "\n"

    def workload_text(self) -> str:
        """The workload file."""
        lines = ["direct = false", "seconds = 'none'", f"requests = {self.requests}", OPERATIONS[self.operation]]
        lines += [f"size = '{self.size_kib}KiB'", "workers = 1", f"region = '0-{FILE_BYTES}'"]
        return "\n".join(lines) + "\n"


def points(seed: int = SEED) -> list[BufferedPoint]:
    """The grid, or other points: the same for a seed. Every value of a factor occurs equally often, up to one."""
    pairs = list(itertools.product(LEVELS, CONTENTS)) * LOADS_OF_A_PAIR
    deal = random.Random(seed)
    drives, operations = dealt(deal, ("plain", "disk"), len(pairs)), dealt(deal, OPERATIONS, len(pairs))
    sizes, read_aheads = dealt(deal, SIZES_KIB, len(pairs)), dealt(deal, READ_AHEADS_KIB, len(pairs))
    chunks, limits = dealt(deal, CHUNKS_KIB, len(pairs)), dealt(deal, LIMITS, len(pairs))
    return [
        BufferedPoint(
            level=level,
            content=content,
            drive=drive,
            operation=operation,
            size_kib=size_kib,
            read_ahead_kib=read_ahead_kib,
            chunk_kib=0 if level == "single" else chunk_kib,
            limits=of_memory,
        )
        for (level, content), drive, operation, size_kib, read_ahead_kib, chunk_kib, of_memory in zip(
            pairs, drives, operations, sizes, read_aheads, chunks, limits, strict=True
        )
    ]
