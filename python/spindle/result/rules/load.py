"""Checks that the load was as asked, and that the target was its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spindle.base import units
from spindle.result.record import DeviceCounters, Level, RunRecord, Verdict
from spindle.result.rules.limits import io_reached

BUSY = 0.90
"""A worker that uses a CPU for this share of the time cannot wait for the target."""
NEAR_CEILING = 0.90
"""Share of the calibrated ceiling from which on the generator may be the limit."""
IDLE_DEVICE = 0.90
"""Below this utilisation the device was partly idle."""
REACHED = 0.90
"""Share of the asked outstanding requests that counts as reached."""
FULL = 0.95
"""CPUs in use for this share of their time are full."""
OWN_PART = 0.25
"""If the load itself uses this part of full CPUs, they are its limit."""
POLLING = {"sqpoll", "iopoll"}
CHANCE_DEVIATIONS = 3.0
"""Most standard deviations between the number of random arrivals and its mean."""
EDGES = 2
LARGE_REQUEST = 256 * 1024
"""From here on one request keeps a device busy by itself: the kernel splits it or its transfer dominates."""


def generator_bound(record: RunRecord) -> list[Verdict]:
    """The generator limits the figures if one worker lacks CPU time, or all of them together."""
    figures, generator = record.figures, record.figures.generator
    ceiling = generator.ceiling_iops
    near = figures.iops / ceiling if ceiling else 0.0
    cpus = _Cpus.of(record)
    numbers = {"busiest_worker": generator.busiest_worker, "iops": figures.iops, **cpus.numbers()}
    if ceiling:
        numbers["ceiling_iops"] = ceiling
    polls = POLLING & set(generator.features)
    busy = f"the busiest worker was on a CPU {units.percent(generator.busiest_worker)} of the time"
    if (generator.busiest_worker >= BUSY or cpus.used_up) and not polls and not record.workload.paced:
        alone = generator.busiest_worker >= BUSY and not cpus.used_up
        reached = (
            ""
            if not ceiling
            else f", {units.percent(near)} of the {units.count(ceiling)} IOPS its calibration reached"
            if near <= 1
            else f", more than the {units.count(ceiling)} IOPS of its calibration were reached"
        )
        spread = "spread the load over more `workers=` (on other CPUs), or "
        return [
            Verdict(
                check="generator-bound",
                level=Level.WARN,
                evidence=f"{busy if alone else cpus.text()}{reached}: the CPU is the limit",
                advice=(spread if alone else "give it more CPUs (`cpus=`, quota, other load), or ")
                + "read this as the cost of the path, not as the device's limit",
                numbers=numbers,
            )
        ]
    note = f" (it polls: {', '.join(sorted(polls))})" if polls else ""
    return [Verdict(check="generator-bound", level=Level.OK, evidence=busy + note, numbers=numbers)]


@dataclass(frozen=True)
class _Cpus:
    """CPU use of all workers together, next to what they may use."""

    used: float
    """CPUs in use."""
    workers: int
    may: float | None
    """CPUs that affinity and quotas of control groups allow."""
    idle: float | None
    """Share of these CPUs' time that was idle."""

    @classmethod
    def of(cls, record: RunRecord) -> _Cpus:
        figures = record.figures
        seconds = max(figures.measured_s, 1e-9)
        used = (figures.cpu.user_ns + figures.cpu.system_ns) / 1e9 / seconds
        workers = sum(stream.workers for stream in record.workload.streams)
        return cls(used, workers, record.activity.cpus, record.activity.cpus_idle)

    @property
    def used_up(self) -> bool:
        """True if the workers used nearly all they may, or if nearly nothing was idle and a good part was theirs.
        The rest went to other programs, and to kernel threads that did their I/O.
        """
        if self.may is None:
            return False
        full = self.idle is not None and self.idle <= 1 - FULL and self.used >= OWN_PART * self.may
        return self.used >= BUSY * self.may or full

    def text(self) -> str:
        """In words."""
        who = "1 worker" if self.workers == 1 else f"{self.workers} workers together"
        left = "" if self.idle is None else f", of which {units.percent(self.idle)} was left idle"
        may = units.significant(self.may or 0.0)
        return f"{who} used {units.significant(self.used)} of the {may} CPUs they may use{left}"

    def numbers(self) -> dict[str, float]:
        """For the record."""
        found = {"cpus_used": self.used}
        found |= {"cpus_allowed": self.may} if self.may is not None else {}
        return found | ({"cpus_idle": self.idle} if self.idle is not None else {})


def _from_a_cache(record: RunRecord, target: DeviceCounters) -> bool:
    """True if most bytes never reached the device: its utilisation does not describe the measurement."""
    asked = record.figures.total_read_bytes + record.figures.total_write_bytes
    moved = (target.bytes_of("read") or 0) + (target.bytes_of("write") or 0)
    return moved < asked / 2


def saturated(record: RunRecord) -> list[Verdict]:
    """A closed loop with few requests in flight measures latency; the device may deliver more."""
    workload = record.workload
    target = record.counters
    if workload.paced or target is None or _from_a_cache(record, target) or io_reached(record):
        return []
    busy, name = target.iostat.get("%util"), target.name
    queue = record.target.detail.get("queue_depth")
    outstanding = workload.outstanding
    numbers = {"outstanding": float(outstanding)}
    if busy is not None:
        numbers["util_percent"] = busy
    if isinstance(queue, int):
        numbers["queue_depth"] = float(queue)
    advice = "find how far it rises with `find_knee=True`, or raise `workers=` or `depth=`"
    small = record.figures.requests > 0 and (
        sum(op.bytes for stream in record.figures.streams for _, op in stream.ops()) / record.figures.requests
        < LARGE_REQUEST
    )
    if outstanding == 1 and small and (queue is None or queue > 1):
        takes = f"a device that takes {queue} at once" if queue else "a device whose queue is not known"
        return [
            Verdict(
                check="saturated",
                level=Level.WARN,
                evidence=f"one outstanding request on {takes}: this measures its latency, not its maximum rate",
                advice=advice,
                numbers=numbers,
            )
        ]
    if busy is not None and busy < IDLE_DEVICE * 100 and record.figures.generator.busiest_worker < BUSY:
        return [
            Verdict(
                check="saturated",
                level=Level.WARN,
                evidence=f"{name} was busy {busy:.0f} % of the time: it was partly idle",
                advice=advice,
                numbers=numbers,
            )
        ]
    seen = f"{outstanding} outstanding requests"
    return [
        Verdict(
            check="saturated",
            level=Level.OK,
            evidence=seen if busy is None else f"{seen}, {name} busy {busy:.0f} % of the time",
            numbers=numbers,
        )
    ]


def achieved_depth(record: RunRecord) -> list[Verdict]:
    """Compares the asked depth, the depth that the load kept, and the depth at the device."""
    workload, figures = record.workload, record.figures
    unpaced = [
        (asked.outstanding, got.mean_outstanding)
        for asked, got in zip(workload.streams, figures.streams, strict=True)
        if not asked.paced
    ]
    if not unpaced or figures.requests == 0:
        return []
    asked = sum(pair[0] for pair in unpaced)
    kept = sum(pair[1] for pair in unpaced)
    numbers = {"asked": float(asked), "kept": kept}
    if kept < REACHED * asked:
        return [
            Verdict(
                check="achieved-depth",
                level=Level.WARN,
                evidence=f"of {asked} outstanding requests {units.significant(kept)} were under way on average",
                advice="the workers could not keep up (CPU), or a stream ended early; try more `workers=`, less "
                "`depth=`"
                if asked > 1
                else "much of the time is the load generator's own: read the latency, not the rate",
                numbers=numbers,
            )
        ]
    target = record.counters
    direct = all(stream.direct for stream in workload.streams)
    in_device = target.iostat.get("aqu-sz") if target is not None and direct else None
    if in_device is not None:
        numbers["in_device"] = in_device
        if asked > 1 and in_device < asked / 2:
            limited = io_reached(record)
            return [
                Verdict(
                    check="achieved-depth",
                    level=Level.WARN,
                    evidence=(
                        f"{units.significant(kept)} requests were under way, {units.significant(in_device)} of them in "
                        f"{target.name if target else 'the device'}: the others waited above it"
                    ),
                    advice=f"a limit delays them: {limited[0].evidence}"
                    if limited
                    else "a lock of the file system (writes to one file) or the scheduler delays them, or the driver "
                    "works on the caller's CPU (zram); no control group of this process limits it",
                    numbers=numbers,
                )
            ]
    return [
        Verdict(
            check="achieved-depth",
            level=Level.OK,
            evidence=f"{units.significant(kept)} of {asked} requests under way on average",
            numbers=numbers,
        )
    ]


def _random_arrivals(record: RunRecord) -> bool:
    return any(getattr(stream.arrival, "spacing", None) == "poisson" for stream in record.workload.streams)


def on_time(record: RunRecord) -> list[Verdict]:
    """Open loop: a load that starts its requests late is not the load that was asked for."""
    late = max((stream.max_lag_ns for stream in record.figures.streams), default=0)
    rates = [
        (stream.arrival.rate_iops, got.iops)
        for stream, got in zip(record.workload.streams, record.figures.streams, strict=True)
        if hasattr(stream.arrival, "rate_iops")
    ]
    if not rates:
        return []
    asked, got = sum(pair[0] for pair in rates), sum(pair[1] for pair in rates)
    numbers = {"asked_iops": asked, "iops": got, "max_lag_ns": float(late)}
    # The number of Poisson arrivals varies by its square root; a few less do not show a queue.
    seconds = max(record.figures.measured_s, 1e-9)
    chance = CHANCE_DEVIATIONS * math.sqrt(asked * seconds) / seconds if _random_arrivals(record) else 0.0
    # Requests are counted whole: one may fall out of the time at each end.
    if got < 0.95 * asked - chance - EDGES / seconds:
        how_late = (
            f", up to {units.duration(late)} late" if late > 0 else ", the others were still under way at the end"
        )
        return [
            Verdict(
                check="on-time",
                level=Level.WARN,
                evidence=(
                    f"{units.count(asked)} requests a second were to arrive, {units.count(got)} were served{how_late}: "
                    "the target does not keep up"
                ),
                advice="the queue grows without end: latencies depend on the length of the run; lower the rate",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="on-time",
            level=Level.OK,
            evidence=f"{units.count(got)} of {units.count(asked)} IOPS, at most {units.duration(late)} late",
            numbers=numbers,
        )
    ]
