"""Formulas that findings quote; docs/reference/doctor has them with their sources."""

from __future__ import annotations

import math

SIZES = (4 << 10, 16 << 10, 64 << 10)
"""Request sizes that findings use: a page, a MySQL page, a large database read."""


def crossing_share(boundary: int, shift: int, size: int) -> float:
    """Share of requests that cross a multiple of `boundary`: requests of `size` at multiples of `size`, from a start
    that is off by `shift`. Exact: the pattern repeats after lcm(boundary, size).
    """
    if boundary <= 0 or size <= 0:
        return 0.0
    period = math.lcm(boundary, size) // size
    if period > 1 << 16:  # an odd chunk: the exact period is too long to count, the mean is as good
        return min((size - 1) / boundary, 1.0)
    crossing = sum((shift + at * size) % boundary + size > boundary for at in range(period))
    return crossing / period


def unreadable_probability(bits: float, error_rate: float) -> float:
    """Probability of at least one unreadable sector among `bits` read, at `error_rate` errors per bit: 1 - (1 -
    rate)^bits."""
    return -math.expm1(bits * math.log1p(-error_rate))


def turn_ms(rpm: int) -> float:
    """Time of one turn of the platters."""
    return 60_000 / rpm


def link_bytes_per_s(gbps: float) -> float:
    """Payload of a SATA or SAS lane: 8b/10b coding up to 12 Gb/s, 128b/150b above."""
    return gbps * 1e9 * (0.1 if gbps <= 12 else 128 / 150 / 8)


def pcie_bytes_per_s(gigatransfers: float, lanes: int) -> float:
    """Payload of a PCI Express link without packet headers: 8b/10b up to 5 GT/s, 128b/130b above."""
    return gigatransfers * 1e9 * lanes * (0.1 if gigatransfers <= 5 else 128 / 130 / 8)
