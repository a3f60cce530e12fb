"""A record as fio would have written it (`--output-format=json`, fio 3), for programs that read that.

A job is a stream. fio's submission latency is part of the latency here, and not told apart: `slat_ns` has no samples.
What the record does not know is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import fmean, pstdev
from typing import Any

import msgspec

from spindle.result.figures import EndedByError, Op, Stream
from spindle.result.record import DeviceCounters, Record, RunRecord
from spindle.result.workload import FixedSize, Sequential, WorkloadStream

from .rows import runs_of

NO_SAMPLES = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}


def as_fio_json(record: Record) -> bytes:
    """One document; of a sweep or a quick look, the jobs of all its runs."""
    runs = runs_of(record)
    seconds = int(datetime.fromisoformat(record.started).timestamp()) if record.started else 0
    document = {
        "fio version": f"{record.tool.name}-{record.tool.version}",
        "timestamp": seconds,
        "timestamp_ms": seconds * 1000,
        "time": f"{datetime.fromtimestamp(seconds, UTC):%a %b %d %H:%M:%S %Y}",
        "jobs": [job for group, run in enumerate(runs) for job in _jobs(run, group, alone=len(runs) == 1)],
        "disk_util": [_disk(device) for run in runs for device in run.devices],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _jobs(run: RunRecord, group: int, alone: bool) -> Iterator[dict[str, Any]]:
    figures = run.figures
    for at, stream in enumerate(figures.streams):
        asked = run.workload.streams[at] if at < len(run.workload.streams) else None
        ended = figures.ended_by
        cpu = {}
        if len(figures.streams) == 1 and figures.measured_ns:
            cpu = {
                "usr_cpu": 100 * figures.cpu.user_ns / figures.measured_ns,
                "sys_cpu": 100 * figures.cpu.system_ns / figures.measured_ns,
                "ctx": figures.cpu.voluntary_switches + figures.cpu.involuntary_switches,
            }
        yield {
            "jobname": stream.name if alone else f"{run.id}/{stream.name}",
            "groupid": group,
            "error": ended.errno if isinstance(ended, EndedByError) else 0,
            "elapsed": -(-figures.elapsed_ns // 10**9),
            "job options": _options(run, asked),
            "read": _direction(run, at, stream.read, "read"),
            "write": _direction(run, at, stream.write, "write"),
            "trim": _direction(run, at, stream.trim, ""),
            "sync": _sync(stream),
            "job_runtime": stream.measured_ns // 10**6,
            **cpu,
        }


def _options(run: RunRecord, asked: WorkloadStream | None) -> dict[str, str]:
    found = {"filename": run.target.asked, "runtime": f"{run.figures.measured_ns / 1e9:g}"}
    if asked is None:
        return found
    mixed = 0 < asked.mix.write < 1
    base = "rw" if mixed else "write" if asked.mix.write else "read"
    kind = base if isinstance(asked.pattern, Sequential) else "randrw" if mixed else f"rand{base}"
    found |= {"rw": kind, "numjobs": str(asked.workers), "iodepth": str(asked.depth), "direct": str(int(asked.direct))}
    if mixed:
        found["rwmixwrite"] = f"{asked.mix.write * 100:g}"
    if isinstance(asked.size, FixedSize):
        found["bs"] = str(asked.size.bytes)
    return found


def _direction(run: RunRecord, stream: int, op: Op | None, name: str) -> dict[str, Any]:
    rates = list(_rates(run, stream, name))
    bandwidth, iops = [rate / 1024 for rate, _ in rates], [rate for _, rate in rates]
    runtime = run.figures.streams[stream].measured_ns
    return {
        "io_bytes": op.bytes if op else 0,
        "io_kbytes": op.bytes // 1024 if op else 0,
        "bw_bytes": round(op.bytes_per_s) if op else 0,
        "bw": round(op.bytes_per_s) // 1024 if op else 0,
        "iops": op.iops if op else 0.0,
        "runtime": runtime // 10**6 if op else 0,
        "total_ios": op.requests if op else 0,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": NO_SAMPLES,
        "clat_ns": _latency(op, percentiles=True),
        "lat_ns": _latency(op, percentiles=False),
        **_spread("bw", bandwidth, "agg", 100.0 if op else 0.0),
        **_spread("iops", iops),
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


def _spread(name: str, rates: list[float], extra: str = "", value: float = 0.0) -> dict[str, Any]:
    """In fio's order, bandwidth in KiB/s."""
    whole = name == "bw"
    return {
        f"{name}_min": round(min(rates, default=0)),
        f"{name}_max": round(max(rates, default=0)),
        **({f"{name}_{extra}": value} if whole else {}),
        f"{name}_mean": fmean(rates) if rates else 0.0,
        f"{name}_{'dev' if whole else 'stddev'}": pstdev(rates) if rates else 0.0,
        f"{name}_samples": len(rates),
    }


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


def _sync(stream: Stream) -> dict[str, Any]:
    op = stream.fsync
    return {"total_ios": op.requests if op else 0, "lat_ns": _latency(op, percentiles=True)}


def _disk(device: DeviceCounters) -> dict[str, Any]:
    """In fio's words; what the counters do not have is left out."""
    names = {
        "reads": "read_ios",
        "writes": "write_ios",
        "read_merges": "read_merges",
        "write_merges": "write_merges",
        "read_ms": "read_ticks",
        "write_ms": "write_ticks",
        "weighted_ms": "in_queue",
    }
    known = {theirs: round(device.delta[ours]) for ours, theirs in names.items() if ours in device.delta}
    util = {"util": device.iostat["%util"]} if "%util" in device.iostat else {}
    return {"name": device.name, **known, **util}
