"""Spindle's records as fio 3.33 writes its own (`--output-format=json`), for programs that read that.

A job is a stream, a group is a run. Spindle does not tell submission from completion: `slat_ns` has no samples, and
`clat_ns` is the whole latency, as with fio's synchronous engines. What no record knows (`NOT_TOLD`) is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import fmean, pstdev
from typing import Any

import msgspec

from spindle import _core
from spindle.result.document import Unreadable
from spindle.result.figures import EndedByError, Op, Stream
from spindle.result.record import DeviceCounters, ImportedRecord, Record, RunRecord
from spindle.result.workload import FixedSize, Sequential, WorkloadStream

LIKE = "fio-3.33"
"""The version whose structure this is."""
NOT_TOLD = ("majf", "minf", "iodepth_level", "iodepth_submit", "iodepth_complete")
"""Page faults, and how deep the queue was how often."""
NO_SAMPLES = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
ENGINES = {"io_uring": "io_uring", "pread": "psync"}
COUNTERS = {
    "read_ios": "reads",
    "write_ios": "writes",
    "read_merges": "read_merges",
    "write_merges": "write_merges",
    "read_ticks": "read_ms",
    "write_ticks": "write_ms",
    "in_queue": "weighted_ms",
}
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
BOUNDS = {"latency_ns": (1, _STEPS), "latency_us": (10**3, _STEPS), "latency_ms": (10**6, (*_STEPS, 2000))}
"""Name -> (ns in its unit, upper bounds): each share is of what lies below its bound and not below the one before."""


def write(records: Record | Sequence[Record]) -> bytes:
    """One document with the jobs of all runs. Raises `Unreadable` for what was imported: it does not know enough."""
    listed = list(records) if isinstance(records, Sequence) else [records]
    for record in listed:
        if isinstance(record, ImportedRecord):
            raise Unreadable(
                f"{record.id}: imported from {record.source.tool}; only Spindle's own runs become fio's JSON"
            )
    runs = [run for record in listed for run in ([record] if isinstance(record, RunRecord) else record.runs)]
    if not runs:
        raise Unreadable("no run in it: there is nothing to write as fio's JSON")
    ended = max(_start(run) + -(-run.figures.elapsed_ns // 10**9) for run in runs)
    document = {
        "fio version": f"{LIKE}-spindle-{runs[0].tool.version}",
        "timestamp": ended,
        "timestamp_ms": ended * 1000,
        "time": f"{datetime.fromtimestamp(ended, UTC):%a %b %e %H:%M:%S %Y}",
        "jobs": [job for group, run in enumerate(runs) for job in _jobs(run, group)],
        "disk_util": [_disk(device) for run in runs for device in run.devices],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _start(run: RunRecord) -> int:
    return int(datetime.fromisoformat(run.started).timestamp())


def _jobs(run: RunRecord, group: int) -> Iterator[dict[str, Any]]:
    ended = run.figures.ended_by
    for at, stream in enumerate(run.figures.streams):
        asked = run.workload.streams[at] if at < len(run.workload.streams) else None
        name = run.workload.name if len(run.figures.streams) == 1 else stream.name
        yield {
            "jobname": name,
            "groupid": group,
            "job_start": _start(run) * 1000,
            "error": ended.errno if isinstance(ended, EndedByError) else 0,
            "eta": 0,
            "elapsed": -(-run.figures.elapsed_ns // 10**9),
            "job options": {"name": name, **_options(run, asked)},
            "read": _direction(run, at, stream.read, "read"),
            "write": _direction(run, at, stream.write, "write"),
            "trim": _direction(run, at, stream.trim, ""),
            "sync": {"total_ios": stream.fsync.requests if stream.fsync else 0, "lat_ns": _latency(stream.fsync, True)},
            "job_runtime": stream.measured_ns // 10**6,
            **_cpu(run, asked),
            **_shares(stream),
            "latency_depth": asked.depth if asked else 1,
            "latency_target": 0,
            "latency_percentile": 100.0,
            "latency_window": 0,
        }


def _options(run: RunRecord, asked: WorkloadStream | None) -> dict[str, str]:
    found = {"filename": run.target.asked, "runtime": f"{run.figures.measured_ns / 1e9:g}"}
    if engine := ENGINES.get(run.figures.generator.engine):
        found["ioengine"] = engine
    if asked is None:
        return found
    found |= {"rw": _rw(asked), "numjobs": str(asked.workers), "iodepth": str(asked.depth)}
    found |= {"direct": str(int(asked.direct))}
    if 0 < asked.mix.of_calls < 1:
        found["rwmixread"] = f"{100 - asked.mix.of_calls * 100:g}"
    if isinstance(asked.size, FixedSize):
        found["bs"] = _size(asked.size.bytes)
    return found


def _rw(asked: WorkloadStream) -> str:
    """The nearest of fio's words."""
    sequential = isinstance(asked.pattern, Sequential)
    if asked.mix.trim == 1:
        return "trim" if sequential else "randtrim"
    if 0 < asked.mix.of_calls < 1:
        return "rw" if sequential else "randrw"
    kind = "write" if asked.mix.of_calls else "read"
    return kind if sequential else f"rand{kind}"


def _size(size: int) -> str:
    for unit in ("", "k", "m", "g"):
        if size % 1024 or not size:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}t"


def _cpu(run: RunRecord, asked: WorkloadStream | None) -> dict[str, float]:
    """As fio has it: shares of the threads' time. Not known of one stream among several: 0 shares would be false."""
    figures = run.figures
    if len(figures.streams) != 1 or not figures.measured_ns:
        return {}
    threads_ns = figures.measured_ns * (asked.workers if asked else 1)
    return {
        "usr_cpu": 100 * figures.cpu.user_ns / threads_ns,
        "sys_cpu": 100 * figures.cpu.system_ns / threads_ns,
        "ctx": figures.cpu.voluntary_switches + figures.cpu.involuntary_switches,
    }


def _shares(stream: Stream) -> dict[str, dict[str, float]]:
    """What part of the requests took how long, %."""
    edges = sorted(unit * bound for unit, bounds in BOUNDS.values() for bound in bounds)
    counts = [0] * (len(edges) + 1)
    for _, op in stream.ops():
        try:
            for ns, count in _core.histogram_counts(op.latency.histogram):
                counts[bisect_right(edges, ns)] += count
        except ValueError:  # a record made by hand, or damaged
            return {}
    total = sum(counts) or 1
    shares = [100 * count / total for count in counts]
    found: dict[str, dict[str, float]] = {}
    for name, (unit, bounds) in BOUNDS.items():
        found[name] = {str(bound): shares[edges.index(unit * bound)] for bound in bounds}
    found["latency_ms"][">=2000"] = shares[-1]
    return found


def _direction(run: RunRecord, stream: int, op: Op | None, name: str) -> dict[str, Any]:
    rates = list(_rates(run, stream, name)) if op else []
    bandwidth, iops = [rate / 1024 for rate, _ in rates], [rate for _, rate in rates]
    rate = round(op.bytes_per_s) if op else 0
    return {
        "io_bytes": op.bytes if op else 0,
        "io_kbytes": op.bytes // 1024 if op else 0,
        "bw_bytes": rate,
        "bw": rate // 1024,
        "iops": op.iops if op else 0.0,
        "runtime": run.figures.streams[stream].measured_ns // 10**6 if op else 0,
        "total_ios": op.requests if op else 0,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": NO_SAMPLES,
        "clat_ns": _latency(op, percentiles=True),
        "lat_ns": _latency(op, percentiles=False),
        "bw_min": round(min(bandwidth, default=0)),
        "bw_max": round(max(bandwidth, default=0)),
        "bw_agg": 100.0 if op else 0.0,
        "bw_mean": fmean(bandwidth) if rates else 0.0,
        "bw_dev": pstdev(bandwidth) if rates else 0.0,
        "bw_samples": len(rates),
        "iops_min": round(min(iops, default=0)),
        "iops_max": round(max(iops, default=0)),
        "iops_mean": fmean(iops) if rates else 0.0,
        "iops_stddev": pstdev(iops) if rates else 0.0,
        "iops_samples": len(rates),
    }


def _rates(run: RunRecord, stream: int, name: str) -> Iterator[tuple[float, float]]:
    """(bytes, requests) a second in each interval."""
    if not name:
        return
    for interval in run.figures.series:
        if stream < len(interval.streams) and interval.length_ns:
            found = interval.streams[stream]
            seconds = interval.length_ns / 1e9
            moved, requests = (found.read_bytes, found.reads) if name == "read" else (found.write_bytes, found.writes)
            yield moved / seconds, requests / seconds


def _latency(op: Op | None, percentiles: bool) -> dict[str, Any]:
    if op is None or not op.requests:
        return NO_SAMPLES
    latency = op.latency
    found: dict[str, Any] = {
        "min": latency.min_ns,
        "max": latency.max_ns,
        "mean": latency.mean_ns,
        "stddev": latency.sdev_ns,
        "N": op.requests,
    }
    if percentiles:
        found["percentile"] = {f"{percent:.6f}": ns for percent, ns in latency.percentiles}
    return found


def _disk(device: DeviceCounters) -> dict[str, Any]:
    """In fio's words; what the counters do not have is left out."""
    known = {theirs: round(device.delta[ours]) for theirs, ours in COUNTERS.items() if ours in device.delta}
    util = {"util": device.iostat["%util"]} if "%util" in device.iostat else {}
    return {"name": device.name, **known, **util}
