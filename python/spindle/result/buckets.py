"""Coarse latency counts of an interval: the bounds of their buckets, and percentiles.

The buckets are the core's (`crates/measure/src/coarse.rs`); a test compares this copy with it. There are four for each
power of two from 256 ns on, so a latency is exact to a quarter: enough for a chart over time. Percentiles of a run come
from its full histogram.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

FIRST_NS = 256
"""End of the first bucket."""
QUARTERS = 4
"""Buckets of one power of two."""
BUCKETS = 137
"""Number of buckets: up to 2^42 ns."""
LEAST_NS = FIRST_NS // 2
"""Start of the first bucket on a logarithmic axis."""

Counts = Sequence[tuple[int, int]]
"""(bucket, count), ascending."""


def bounds_ns(bucket: int) -> tuple[int, int]:
    """First latency of a bucket and the first beyond it. The last bucket also counts all longer ones."""
    return _lowest_ns(bucket), _lowest_ns(bucket + 1)


def _lowest_ns(bucket: int) -> int:
    if bucket <= 0:
        return 0
    power, quarter = divmod(bucket - 1, QUARTERS)
    return (QUARTERS + quarter << power) * FIRST_NS // QUARTERS


def together(several: Iterable[Counts]) -> dict[int, int]:
    """Counts of several intervals or streams by bucket, ascending."""
    sums: Counter[int] = Counter()
    for counts in several:
        for bucket, count in counts:
            sums[bucket] += count
    return dict(sorted(sums.items()))


def percentile_ns(counts: Mapping[int, int], percent: float) -> float | None:
    """Latency at a percentile, interpolated within its bucket by equal ratio; None without counts."""
    total = sum(counts.values())
    rank = max(0.5, percent / 100 * total)
    for bucket, count in sorted(counts.items()):
        if rank <= count:
            low, high = bounds_ns(bucket)
            low = max(low, LEAST_NS)
            return float(low * (high / low) ** (rank / count))
        rank -= count
    return None
