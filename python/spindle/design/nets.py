"""The first two nets: closed formulas that throw out what cannot work, a queueing approximation that sorts the rest.

The closed formulas are optimistic: a candidate that they throw out breaks a need whatever the queues do. The
approximation may err, so it only orders the candidates and drops those that miss a bound by `MARGIN`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spindle.design.drives import DEPTHS, SIZES
from spindle.design.loads import Demand, Volume, demands
from spindle.design.loss import group_of, rough_loss
from spindle.design.requirement import Requirement, State
from spindle.design.space import Floats, Grid
from spindle.reliability.group import Group

OPTIMISM = 1.15
"""The drives are taken to be faster by this factor when a candidate is thrown out for its rate."""
MARGIN = 3.0
"""A candidate is dropped if the approximation is above a bound by this factor."""
MOST_WAITING = 96
"""Longest queue of the approximation."""
ROUGHNESS = 10.0
"""The rough probability of a loss is divided by this before a candidate is thrown out for it: rebuilds of a fixed time
lose less often than the exponential ones of the formula."""
SECONDS_PER_DAY = 86_400.0
SYNC_RATE = 200_000 * 1024.0
"""md's `sync_speed_max`, bytes/s."""


@dataclass(frozen=True)
class Work:
    """The requests that one member gets, per second, with their mean sizes; bytes/s of streams that need no seeks."""

    reads: Floats
    read_bytes: Floats
    writes: Floats
    write_bytes: Floats
    streamed: Floats


@dataclass(frozen=True)
class Need:
    """One bound of the closed formulas: need and offer, as the same figure."""

    name: str
    unit: str
    need: float
    offer: Floats
    """Offer of each candidate; at most `need` is fine if `is_most`, at least `need` otherwise."""
    is_most: bool

    @property
    def met(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """True for each candidate that meets it."""
        return self.offer <= self.need if self.is_most else self.offer >= self.need

    @property
    def excess(self) -> Floats:
        """By how much each misses it, as a share; at most 0: met."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.offer / self.need if self.is_most else self.need / self.offer
        return np.asarray(np.nan_to_num(ratio, nan=np.inf) - 1)


def member_work(of: Grid, wanted: Sequence[Demand]) -> Work:
    """The requests of a member of each candidate. Requests spread evenly over the members; one that is not longer than
    a chunk is one piece, for loads are aligned to their sizes."""
    count = of.count.astype(float)
    copies, parity, groups = (of.of_scheme(name) for name in ("copies", "parity", "groups"))
    has_chunk = np.array([scheme.has_chunk for scheme in of.schemes])[of.scheme]
    chunk = np.where(has_chunk, np.array(of.space.chunks, dtype=float)[of.chunk], math.inf)
    data = count / groups - parity  # members of a group with data, where there is parity
    zero = np.zeros(len(of))
    reads, writes, read_sum, write_sum, streamed = (zero.copy() for _ in range(5))
    for one in wanted:
        read_iops, write_iops = one.iops * (1 - one.writes), one.iops * one.writes
        read_pieces = np.maximum(1.0, one.read_bytes / chunk)
        write_pieces = np.maximum(1.0, one.write_bytes / chunk)
        piece_r, piece_w = one.read_bytes / read_pieces, one.write_bytes / write_pieces
        touched = np.minimum(data, write_pieces)
        stripes = np.where(parity > 0, write_pieces / np.maximum(1.0, touched), write_pieces)
        pre = np.where(touched >= data, 0.0, np.minimum(touched + parity, data - touched))
        member_writes = np.where(parity > 0, stripes * (touched + parity), write_pieces * copies) * write_iops / count
        pre_reads = np.where(parity > 0, stripes * pre, 0.0) * write_iops / count
        member_reads = read_pieces * read_iops / count
        if one.is_sequential:
            streamed += member_reads * piece_r + (member_writes + pre_reads) * piece_w
            continue
        reads += member_reads + pre_reads
        read_sum += member_reads * piece_r + pre_reads * piece_w
        writes += member_writes
        write_sum += member_writes * piece_w
    return Work(
        reads, np.divide(read_sum, reads, out=np.full(len(of), 4096.0), where=reads > 0),
        writes, np.divide(write_sum, writes, out=np.full(len(of), 4096.0), where=writes > 0), streamed,
    )  # fmt: skip


def _times(of: Grid, kind: str, depth: int, size: Floats) -> Floats:
    """Time of a request of `size` bytes at a depth of `DEPTHS`, ns: linear in its size."""
    table = np.stack([getattr(drive, kind) for drive in of.drives])[:, :, depth, :]
    small, large = table[of.drive, of.region, 0], table[of.drive, of.region, 1]
    slope = (large - small) / (SIZES[1] - SIZES[0])
    return np.asarray(np.maximum(small * 0.5, small + (size - SIZES[0]) * slope))


def utilisation(of: Grid, work: Work, depth: int = len(DEPTHS) - 1) -> Floats:
    """Share of the time for which a member is busy, if its queue is always deep."""
    seeking = work.reads * _times(of, "read_ns", depth, work.read_bytes)
    writing = work.writes * _times(of, "write_ns", depth, work.write_bytes)
    return np.asarray((seeking + writing) / 1e9 + work.streamed / of.of_drive("outer_rate"))


def closed_needs(of: Grid, volume: Volume, requirement: Requirement, rate_factor: float) -> list[Need]:
    """Every need that a formula can refuse, with the offer of each candidate."""
    limits = requirement.limits
    infinite = math.inf
    rebuild = _least_rebuild_hours(of)
    busiest = np.zeros(len(of))
    for period in volume.periods:
        work = member_work(of, demands(volume.at(period), rate_factor))
        busiest = np.maximum(busiest, utilisation(of, work) / OPTIMISM)
    found = [
        Need("usable", "bytes", float(volume.needed_bytes), of.usable, False),
        Need("survive", "drives", float(requirement.survive), of.of_scheme("tolerance"), False),
        Need("bays", "drives", float(limits.bays), of.bays, True),
        Need("budget", "price", limits.budget or infinite, of.cost, True),
        Need("watts", "W", limits.watts or infinite, of.watts, True),
        Need("rate of the loads", "busy", 1.0, busiest, True),
        Need("rebuild", "h", limits.rebuild_hours or infinite, rebuild, True),
    ]
    if limits.yearly_loss is not None:
        losses = rough_losses(of, rebuild) / ROUGHNESS
        found.append(Need("yearly_loss", "a year", limits.yearly_loss, losses, True))
    if volume.periods == [None]:
        found.append(Need("flash endurance", "of the endurance", 1.0, _wear(of, work), True))
    return found


def _wear(of: Grid, work: Work) -> Floats:
    """Bytes that a member is given in a day, as a share of those that its warranty allows; 0 where no sheet says."""
    allowed = np.array([drive.facts.writes_per_day or math.inf for drive in of.drives])[of.drive]
    return np.asarray(work.writes * work.write_bytes * SECONDS_PER_DAY / allowed)


def _least_rebuild_hours(of: Grid) -> Floats:
    """Hours to write a drive at its own rate, with nothing else to do; 0 where nothing is redundant."""
    rate = np.minimum(np.stack([drive.rate for drive in of.drives])[of.drive, of.region], SYNC_RATE)
    region = np.array(of.space.regions)[of.region]
    hours = of.of_drive("capacity") * region / rate / 3600
    return np.where(of.of_scheme("tolerance") > 0, hours, 0.0)


def rough_losses(of: Grid, rebuild_hours: Floats) -> Floats:
    """Yearly probability of a loss by the rough formula. Rows that differ in nothing that matters share one."""
    keys = np.stack([of.drive, of.scheme, of.count, of.spare, of.region])
    _, first, back = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    known = np.array([rough_loss(array_group(of, int(row), float(rebuild_hours[row]))) for row in first])
    return np.asarray(known[back.reshape(-1)]) if len(first) else np.zeros(0)


def array_group(of: Grid, row: int, hours: float) -> Group:
    """A candidate as `reliability` sees it."""
    drive, scheme = of.drives[of.drive[row]], of.schemes[of.scheme[row]]
    used_bytes = drive.capacity * of.space.regions[of.region[row]]
    return group_of(scheme, int(of.count[row]), int(of.spare[row]), drive.facts, used_bytes, hours)


# --- the queueing approximation ---


@dataclass(frozen=True)
class Estimate:
    """Latencies of each candidate, ns: reads and writes of the load."""

    read_mean: Floats
    read_p99: Floats
    write_mean: Floats
    write_p99: Floats

    def of(self, key: str, writes: bool) -> Floats:
        """The figure of a bound: percentiles between the mean and p99 are taken on the same exponential tail."""
        mean, p99 = (self.write_mean, self.write_p99) if writes else (self.read_mean, self.read_p99)
        if key == "mean":
            return mean
        depth = {"p50": 0.69, "p90": 2.3, "p95": 3.0, "p99": 4.6, "p999": 6.9}[key]
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isinf(mean), np.inf, mean + (p99 - mean) * (depth - 1) / 3.6))


def estimate(of: Grid, work: Work) -> Estimate:
    """Latency of the requests, by a birth-death chain of each member (`docs/explanation/design.md`).

    Arrivals are Poisson. A queue of n requests is served at the rate of the drive's own closed loop with n outstanding
    (flow-equivalent server: Chandy, Herzog and Woo 1975), so reordering counts. The mean follows from Little's law; the
    99th percentile from that of a request alone at the drive and an exponential wait of those that wait. A write to a
    mirror is answered from the drives' caches, behind the request that a drive is serving. One to parity is a read and
    a write, of the slower of two drives.
    """
    rate = work.reads + work.writes
    served = [_service_ns(of, work, rate, depth) for depth in range(len(DEPTHS))]
    arrivals = rate / 1e9
    waiting, total = np.zeros(len(of)), np.ones(len(of))
    weight = np.ones(len(of))
    for number in range(1, MOST_WAITING + 1):
        weight = np.minimum(weight * arrivals * _between(served, number), 1e200)
        waiting += number * weight
        total += weight
    response = np.divide(waiting / total, arrivals, out=served[0].copy(), where=arrivals > 0)
    response = np.maximum(response, served[0])
    is_full = arrivals * served[-1] >= 1
    wait = np.where(is_full, np.inf, response - served[0])
    alone = _times(of, "read_ns", 0, work.read_bytes)
    tail = np.stack([drive.tail for drive in of.drives])[of.drive, of.region]
    busy = np.where(is_full, 1.0, 1 - 1 / total)
    longest = wait * np.log(np.maximum(100 * busy, 1.0)) / np.maximum(busy, 0.01)
    read_mean = alone + wait
    read_p99 = alone + np.sqrt((alone * (tail - 1)) ** 2 + longest**2)
    parity = of.of_scheme("parity") > 0
    copies = of.of_scheme("copies")
    behind = busy * alone * 0.6 * np.sqrt(copies)
    write_mean = np.where(parity, 1.2 * alone + 1.5 * wait, 0.05 * alone + behind + 0.2 * wait)
    write_p99 = np.where(parity, 1.3 * read_p99, 0.05 * alone + tail * alone * np.minimum(1.0, busy * copies))
    write_p99 = np.where(np.isinf(wait), np.inf, write_p99)
    return Estimate(read_mean, read_p99, write_mean, write_p99)


def _service_ns(of: Grid, work: Work, rate: Floats, depth: int) -> Floats:
    """Mean time of a request of the member's mix at a depth; streams without seeks take their share of the time."""
    busy = work.reads * _times(of, "read_ns", depth, work.read_bytes)
    busy = busy + work.writes * _times(of, "write_ns", depth, work.write_bytes)
    left = np.maximum(1e-3, 1 - work.streamed / of.of_drive("outer_rate"))
    return np.asarray(np.divide(busy, rate, out=np.full(len(of), 1.0), where=rate > 0) / left)


def _between(served: Sequence[Floats], number: int) -> Floats:
    """Service time at any depth, linear in its logarithm."""
    if number >= DEPTHS[-1]:
        return served[-1]
    above = next(at for at, depth in enumerate(DEPTHS) if depth > number)
    low, high = DEPTHS[above - 1], DEPTHS[above]
    part = math.log(number / low) / math.log(high / low)
    return served[above - 1] * (1 - part) + served[above] * part


def predicted_share(of: Grid, volume: Volume, rate_factor: float) -> Floats:
    """Largest ratio of an approximated latency to its bound; 0 where there is no bound; infinite above saturation."""
    share = np.zeros(len(of))
    for period in volume.periods:
        loads = volume.at(period)
        work = member_work(of, demands(loads, rate_factor))
        found = estimate(of, work)
        for load in loads:
            bounds = load.bounds.get(State.WHOLE, {})
            written = any(stream["mix"]["write"] > 0 for stream in load.parsed())
            is_read = any(stream["mix"]["write"] < 1 for stream in load.parsed())
            for key, most in bounds.items():
                for writes, is_there in ((False, is_read), (True, written)):
                    if is_there:
                        share = np.maximum(share, found.of(key, writes) / most)
    return share
