"""Request sizes and alignment."""

from __future__ import annotations

import math

from spindle.base.units import exact_size

from .finding import Level
from .job import Sizes, TypedJob
from .quantity import Keys

MOST_SIZES = 256


def sizes_of(typed: TypedJob) -> Keys:
    """Return `size` and `align`, and `write_size` and `write_align` if writes differ."""
    job = typed.job
    if job.trims_first and job.sizes[1] != job.sizes[2]:
        typed.say(Level.ERROR, "bs", "of trims before writes is that of the writes: give both the same")
    size, align = _written(typed, job.sizes[job.direction], job.aligns[job.direction])
    keys: Keys = {"size": size}
    if align:
        keys["align"] = exact_size(align)
    if job.mixed and differ(typed):
        size, align = _written(typed, job.sizes[1], job.aligns[1])
        keys["write_size"] = size
        if align:
            keys["write_align"] = exact_size(align)
    return keys


def differ(typed: TypedJob) -> bool:
    """True if writes have other sizes or alignment than reads."""
    job = typed.job
    return job.sizes[0] != job.sizes[1] or job.aligns[0] != job.aligns[1]


def largest(sizes: Sizes) -> int:
    """Return the largest request, bytes."""
    return max((size for size, _ in sizes.split), default=sizes.high)


def one_size(sizes: Sizes) -> bool:
    """True if all requests have one size."""
    return not sizes.split and sizes.low == sizes.high


def _written(typed: TypedJob, sizes: Sizes, asked: int) -> tuple[str, int]:
    """Return the key's value, and the alignment if it must be given."""
    in_order = typed.job.in_order
    align = (0 if in_order else asked) or sizes.smallest
    if sizes.split:
        text = ",".join(f"{exact_size(size)}:{weight}" for size, weight in sizes.split)
        if in_order:
            align = math.gcd(*(size for size, _ in sizes.split))
    elif sizes.low == sizes.high:
        text = exact_size(sizes.low)
    elif sizes.high % sizes.low == 0:
        text = f"{exact_size(sizes.low)}-{exact_size(sizes.high)}:step={exact_size(sizes.low)}"
    else:
        text = ",".join(f"{exact_size(size)}:{weight}" for size, weight in _range_weights(typed, sizes))
        if in_order:
            align = math.gcd(sizes.low, sizes.high)
    return text, 0 if align == sizes.low and one_size(sizes) else align


def _range_weights(typed: TypedJob, sizes: Sizes) -> list[tuple[int, int]]:
    """fio draws uniformly from [low, low + high), rounds down to a multiple of low and cuts at high."""
    low, high = sizes.low, sizes.high
    if high // low > MOST_SIZES:
        typed.say(Level.ERROR, "bsrange", "the largest size is not a multiple of the smallest; round it")
        return [(low, 1)]
    weights: dict[int, int] = {}
    for start in range(low, low + high, low):
        size = min(start, high)
        weights[size] = weights.get(size, 0) + min(start + low, low + high) - start
    unit = math.gcd(*weights.values())
    return [(size, weight // unit) for size, weight in weights.items()]
