"""Throughput of an array in theory, as a multiple of one drive: only the drives' own speed counts.

n drives, c copies. A stream passes over blocks that it does not need (copies, parity) at the same speed as it reads,
so that a near or offset layout and parity cost their share; a far layout reads its first copies as RAID0 reads its
data. Random requests are no longer than a chunk: reads are spread over all drives; a write is c writes, on RAID5 two
reads and two writes, on RAID6 three and three (Chen et al., "RAID: High-Performance, Reliable Secondary Storage", ACM
Computing Surveys 26(2), 1994). Seeks between copies, stripe caches and read-ahead are left out:
measurements include them.
"""

from __future__ import annotations


def streaming(level: str, layout: str, drives: int) -> tuple[float, float] | None:
    """Return (reads, writes) of one sequential stream; None: unknown level."""
    n = float(drives)
    match level:
        case "raid0" | "linear":
            each = n if level == "raid0" else 1.0
            return each, each
        case "raid1":
            return 1.0, 1.0
        case "raid10":
            copies = _copies(layout)
            return (n if layout.startswith("f") else n / copies), n / copies
        case "raid4" | "raid5":
            return n - 1, n - 1
        case "raid6":
            return n - 2, n - 2
        case _:
            return None


def random(level: str, layout: str, drives: int) -> tuple[float, float] | None:
    """Return (reads, writes) of small requests with enough of them outstanding; None: unknown level."""
    n = float(drives)
    match level:
        case "raid0" | "linear":
            return n, n
        case "raid1":
            return n, 1.0
        case "raid10":
            return n, n / _copies(layout)
        case "raid4":
            return n - 1, 0.5
        case "raid5":
            return n, n / 4
        case "raid6":
            return n, n / 6
        case _:
            return None


def mixed(reads_and_writes: tuple[float, float], write_fraction: float) -> float:
    """Return the multiple of a mix: times of reads and writes add up."""
    reads, writes = reads_and_writes
    return 1 / ((1 - write_fraction) / reads + write_fraction / writes)


def _copies(layout: str) -> int:
    digits = layout[1:]
    return int(digits) if digits.isdecimal() and int(digits) > 0 else 2
