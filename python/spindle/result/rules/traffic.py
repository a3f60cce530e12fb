"""Checks if anything else used the device during the measurement."""

from __future__ import annotations

from spindle.base import units
from spindle.result.record import DeviceCounters, Level, RunRecord, Verdict

OTHER_SHARE = 0.05
"""Traffic above this share of the load's own cost the load about as much."""
SLACK_BYTES = 1 << 20
"""Metadata and one read-ahead window do not count as other traffic."""
JOURNAL_FACTOR = 1.0
"""A file system that syncs also writes its journal: up to the same amount again is its own."""


def other_io(record: RunRecord) -> list[Verdict]:
    """Bytes that the device moved beyond the load's own.

    A warning at most: the figure is correct for a load next to that traffic.
    """
    target = record.counters
    if target is None:
        return []
    seen = [_reads(record, target), _writes(record, target)]
    own = record.figures.total_read_bytes + record.figures.total_write_bytes
    numbers = {"own_bytes": float(own)}
    texts = []
    for direction, excess_bytes, excess_requests, is_much in (item for item in seen if item is not None):
        numbers[f"other_{direction}_bytes"] = excess_bytes
        if is_much:
            requests = f" in {units.count(excess_requests)} requests" if excess_requests is not None else ""
            texts.append(
                f"{target.name} {direction} {units.size(excess_bytes)}{requests} beyond the load's own "
                f"({units.rate(excess_bytes / target.seconds)})"
            )
    if texts:
        return [
            Verdict(
                check="other-io",
                level=Level.WARN,
                evidence="; ".join(texts) + _when_and_who(record),
                advice="md or the file system did it: a log, metadata, parity, a rebuild"
                if record.target.traits.has_kernel
                else (
                    "a copy-on-write file system does that (btrfs); otherwise "
                    if record.target.traits.on_files and record.figures.total_write_bytes > 0
                    else ""
                )
                + "find the program (iotop, pidstat -d) and run again without it",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="other-io",
            level=Level.OK,
            evidence=f"no other traffic to speak of on {target.name}",
            numbers=numbers,
        )
    ]


def _when_and_who(record: RunRecord) -> str:
    """The second with most of it, and the processes that moved data on the target's stack."""
    samples = [
        (sample, (sample.other_read_bytes_per_s or 0.0) + (sample.other_write_bytes_per_s or 0.0))
        for sample in record.activity.samples
    ]
    words = []
    if len(samples) > 1:
        sample, rate = max(samples, key=lambda pair: pair[1])
        if rate > 0:
            words.append(f"most at {units.seconds(round(sample.at_s, 1))}: {units.rate(rate)}")
    if record.activity.jobs:
        who = [f"{job.get('name')} (process {job.get('pid')})" for job in record.activity.jobs[:3]]
        words.append(f"seen moving data there: {', '.join(who)}")
    return f"; {'; '.join(words)}" if words else ""


_Excess = tuple[str, float, float | None, bool]


def _reads(record: RunRecord, target: DeviceCounters) -> _Excess | None:
    own = record.figures.total_read_bytes
    moved, requests = target.bytes_of("read"), target.requests_of("read")
    if moved is None or requests is None:
        return None
    if record.fetched_bytes is not None and own > 0:
        own = record.fetched_bytes  # with read-ahead and without what a cache gave
    elif own > 0 and any(stream.reads and not stream.direct for stream in record.workload.streams):
        return None  # read-ahead fetches more than is asked for
    return _excess("read", own, moved, requests, record, OTHER_SHARE)


def _writes(record: RunRecord, target: DeviceCounters) -> _Excess | None:
    own = record.figures.total_write_bytes + record.figures.total_freed_bytes  # some drivers count zeroing as writes
    moved, requests = target.bytes_of("write"), target.requests_of("write")
    if moved is None or requests is None:
        return None
    on_file = record.target.traits.on_files
    return _excess("wrote", own, moved, requests, record, JOURNAL_FACTOR if own > 0 and on_file else OTHER_SHARE)


def _excess(verb: str, own: int, moved: float, requests: float, record: RunRecord, allowed_share: float) -> _Excess:
    excess = max(0.0, moved - own)
    load_bytes = record.figures.total_read_bytes + record.figures.total_write_bytes
    many_bytes = excess > max(SLACK_BYTES, allowed_share * (own or load_bytes))
    if own > 0:
        return verb, excess, None, many_bytes
    # The load never went this way: each request is someone else's, and small ones cost as much as the load's.
    many_requests = requests > OTHER_SHARE * max(1, record.figures.requests) and requests / record_seconds(record) > 1
    return verb, excess, requests, many_bytes or many_requests


def record_seconds(record: RunRecord) -> float:
    """Length of the load, s; never 0."""
    return max(record.figures.elapsed_ns / 1e9, 1e-9)
