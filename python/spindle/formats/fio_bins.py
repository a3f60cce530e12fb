"""The buckets in which fio counts latencies: `plat_val_to_idx` and `plat_idx_to_val` of its stat.c.

Up to 127 ns each has a bucket of its own; from there on 64 of equal width share a power of two. Spindle's histograms
divide each power of two into a multiple of 64, so that each of their buckets is within one of fio's: no count is moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

BITS = 6
PER_GROUP = 1 << BITS
GROUPS = 29
BUCKETS = GROUPS * PER_GROUP
"""Number of buckets of fio 2.99 and later."""


def bucket_of(ns: int) -> int:
    """Return the number of a latency's bucket; the last one contains all longer latencies too."""
    error_bits = max(ns.bit_length() - 1 - BITS, 0)
    if not error_bits:
        return ns
    first = (error_bits + 1) << BITS
    return min(first + (ns >> error_bits) % PER_GROUP, BUCKETS - 1)


def value_of(bucket: int) -> int:
    """Return the latency by which fio names a bucket, ns: its middle."""
    error_bits = max((bucket >> BITS) - 1, 0)
    if not error_bits:
        return bucket
    return (PER_GROUP + bucket % PER_GROUP << error_bits) + (1 << error_bits - 1)


def counted(counts: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Sum (latency, count) by bucket, ascending."""
    found: Counter[int] = Counter()
    for ns, count in counts:
        found[bucket_of(ns)] += count
    return dict(sorted(found.items()))
