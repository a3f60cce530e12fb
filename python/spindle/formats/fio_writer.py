"""Spindle's records in the format of fio 3.33 (`--output-format=json` and `json+`), for programs that read that.

A job is a stream, a group is a run. Spindle does not separate submission and completion: `slat_ns` has no samples, and
`clat_ns` is the whole latency, as with fio's synchronous engines. Fields that records lack (`MISSING`) are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean, pstdev
from typing import Any

from spindle import _core
from spindle.base.plain import as_json
from spindle.result.document import Unreadable
from spindle.result.figures import EndedByError, Op
from spindle.result.record import DeviceCounters, ImportedRecord, Record, RunRecord
from spindle.result.workload import FixedSize, Sequential, WorkloadStream

from .fio_bins import counted, value_of

LIKE = "fio-3.33"
"""The version whose structure this is."""
MISSING = ("majf", "minf", "iodepth_level", "iodepth_submit", "iodepth_complete")
"""Page faults, and the distribution of queue depths."""
PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
"""fio's default of `percentile_list`."""
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
_DIRECTIONS = ("read", "write", "trim")
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
BOUNDS = {"latency_ns": (1, _STEPS), "latency_us": (10**3, _STEPS), "latency_ms": (10**6, (*_STEPS, 2000))}
"""Name -> (ns in its unit, upper bounds): each share is of latencies from the bound before to below its bound."""


@dataclass(frozen=True)
class Origin:
    """The fio job of a stream."""

    name: str
    group: int
    entry: int
    """Streams of a run with the same number are one entry: clones of a group, both directions of a job."""
    options: Mapping[str, str]
    """Options of its section."""
    names_as: str = "read"
    """Direction of metadata operations: read or write."""
    unified: str = "none"
    """`mixed`: one entry for all directions instead of one for each; `both`: that as well."""
    percentiles: tuple[float, ...] = ()
    """Empty: `PERCENTILES`."""


@dataclass(frozen=True)
class ReportOptions:
    """A job file's options about its report."""

    common: Mapping[str, str] = field(default_factory=dict)
    """Options of [global]."""
    origins: Sequence[Sequence[Origin]] = ()
    """For each run and stream; empty: a job is a stream."""


@dataclass(frozen=True)
class Job:
    """One of the document's jobs, with its disks."""

    report: dict[str, Any]
    """Its part of the document."""
    disks: Sequence[dict[str, Any]]
    """Disks of its run, as in the document."""
    percentiles: tuple[float, ...]


@dataclass(frozen=True)
class _Entry:
    """Source of one of the document's jobs."""

    run: RunRecord
    name: str
    group: int
    streams: list[int]
    options: Mapping[str, str] | None
    percentiles: tuple[float, ...]
    """Never empty."""
    bins: bool
    """With the counts of all latencies (`json+`)."""
    names_as: str = "read"
    unified: str = "none"
    description: str = ""

    def ops(self, kind: str) -> list[Op]:
        """Return the operations. `kind`: read, write, trim, fsync, or mixed for the first three; metadata operations
        are a read or a write, as with fio's engines."""
        if kind == "mixed":
            return [op for each in _DIRECTIONS for op in self.ops(each)]
        found = [getattr(self.run.figures.streams[at], kind) for at in self.streams]
        if kind == self.names_as:
            found += [getattr(self.run.figures.streams[at], name) for at, name in self.names()]
        return [op for op in found if op is not None]

    def names(self) -> list[tuple[int, str]]:
        """Streams with metadata operations, and the operation."""
        asked = self.run.workload.streams
        return [(at, names.operation) for at in self.streams if at < len(asked) and (names := asked[at].names)]

    @property
    def asked(self) -> list[WorkloadStream]:
        return [self.run.workload.streams[at] for at in self.streams if at < len(self.run.workload.streams)]


def write(records: Record | Sequence[Record], shape: ReportOptions = ReportOptions(), bins: bool = False) -> bytes:
    """Write one document with the jobs of all runs. `bins`: as `json+`. Raises `Unreadable` for imported results, which
    lack data."""
    runs = _runs(records)
    ended = max(_start(run) + -(-run.figures.elapsed_ns // 10**9) for run in runs)
    document = {
        "fio version": version_of(runs[0]),
        "timestamp": ended,
        "timestamp_ms": ended * 1000,
        "time": f"{datetime.fromtimestamp(ended, UTC):%a %b %e %H:%M:%S %Y}",
        **({"global options": shape.common} if shape.common else {}),
        "jobs": [job.report for job in _jobs(runs, shape, bins)],
        "disk_util": [_disk(device) for run in runs for device in run.devices],
    }
    return as_json(document).encode() + b"\n"


def jobs_of(records: Record | Sequence[Record], shape: ReportOptions) -> tuple[str, list[Job]]:
    """Return the version in the document, and its jobs. Raises `Unreadable`."""
    runs = _runs(records)
    return version_of(runs[0]), _jobs(runs, shape, bins=False)


def version_of(run: RunRecord) -> str:
    """Return the version of fio that is imitated, and the writer."""
    return f"{LIKE}-spindle-{run.tool.version}"


def _runs(records: Record | Sequence[Record]) -> list[RunRecord]:
    listed = list(records) if isinstance(records, Sequence) else [records]
    for record in listed:
        if isinstance(record, ImportedRecord):
            raise Unreadable(
                f"{record.id}: imported from {record.source.tool}; only Spindle's own runs are written as fio's output"
            )
    runs = [run for record in listed for run in ([record] if isinstance(record, RunRecord) else record.runs)]
    if not runs:
        raise Unreadable("it has no run: there is nothing to write as fio's output")
    return runs


def _jobs(runs: Sequence[RunRecord], shape: ReportOptions, bins: bool) -> list[Job]:
    return [
        Job(_job(entry), [_disk(device) for device in run.devices], entry.percentiles)
        for at, run in enumerate(runs)
        for entry in _entries(run, at, shape, bins)
    ]


def _start(run: RunRecord) -> int:
    """Return the start; 0: a later phase of a run."""
    if not run.started:
        return 0
    return int(datetime.fromisoformat(run.started).timestamp())


def _entries(run: RunRecord, at: int, shape: ReportOptions, bins: bool) -> list[_Entry]:
    streams = run.figures.streams
    origins = shape.origins[at] if at < len(shape.origins) else ()
    if len(origins) != len(streams):
        alone = len(streams) == 1
        return [
            _Entry(run, run.workload.name if alone else stream.name, at, [index], None, PERCENTILES, bins)
            for index, stream in enumerate(streams)
        ]
    found: dict[int, _Entry] = {}
    for index, origin in enumerate(origins):
        options = {**shape.common, **origin.options}
        known = found.setdefault(
            origin.entry,
            _Entry(
                run,
                origin.name,
                origin.group,
                [],
                origin.options,
                origin.percentiles or PERCENTILES,
                bins,
                origin.names_as,
                origin.unified,
                options.get("description", ""),
            ),
        )
        known.streams.append(index)
    return list(found.values())


def _job(entry: _Entry) -> dict[str, Any]:
    run = entry.run
    ended = run.figures.ended_by
    asked = entry.asked
    if entry.options is None:
        options = {"name": entry.name, **_options(run, asked[0] if asked else None)}
    else:
        options = dict(entry.options)
    return {
        "jobname": entry.name,
        "groupid": entry.group,
        "job_start": _start(run) * 1000,
        "error": ended.errno if isinstance(ended, EndedByError) else 0,
        "eta": 0,
        "elapsed": -(-run.figures.elapsed_ns // 10**9),
        "job options": options,
        **_directions(entry),
        "job_runtime": _runtime_ms(entry),
        **_cpu(entry),
        **_shares(entry),
        "latency_depth": asked[0].depth if asked else 1,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
        **({"desc": entry.description} if entry.description else {}),
    }


def _directions(entry: _Entry) -> dict[str, Any]:
    """Return reads, writes and trims, all of them as one, or both, by `unified_rw_reporting`."""
    found: dict[str, Any] = {}
    if entry.unified != "mixed":
        fsyncs = entry.ops("fsync")
        found = {kind: _direction(entry, kind) for kind in _DIRECTIONS}
        found["sync"] = {"total_ios": sum(op.requests for op in fsyncs), "lat_ns": _timed(fsyncs, entry)}
    if entry.unified != "none":
        found["mixed"] = _direction(entry, "mixed")
    return found


def _runtime_ms(entry: _Entry) -> int:
    return max(entry.run.figures.streams[at].measured_ns for at in entry.streams) // 10**6


def _options(run: RunRecord, asked: WorkloadStream | None) -> dict[str, str]:
    found = {"filename": run.target.asked}
    if (asked_ns := run.workload.end.time_ns) is not None:
        found["runtime"] = f"{asked_ns / 1e9:g}"
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
    """Return the nearest value of fio's `rw`."""
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


def _cpu(entry: _Entry) -> dict[str, float]:
    """Return shares of the threads' time, as in fio. Unknown for some streams among several: 0 would be false."""
    figures = entry.run.figures
    if len(figures.streams) != len(entry.streams) or not figures.measured_ns:
        return {}
    threads_ns = figures.measured_ns * (sum(asked.workers for asked in entry.asked) or 1)
    return {
        "usr_cpu": 100 * figures.cpu.user_ns / threads_ns,
        "sys_cpu": 100 * figures.cpu.system_ns / threads_ns,
        "ctx": figures.cpu.voluntary_switches + figures.cpu.involuntary_switches,
    }


def _shares(entry: _Entry) -> dict[str, dict[str, float]]:
    """Return the distribution of latencies, %."""
    edges = sorted(unit * bound for unit, bounds in BOUNDS.values() for bound in bounds)
    counts = [0] * (len(edges) + 1)
    for op in (op for at in entry.streams for _, op in entry.run.figures.streams[at].ops()):
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


def _direction(entry: _Entry, kind: str) -> dict[str, Any]:
    ops = entry.ops(kind)
    rates = list(_rates(entry, kind)) if ops else []
    bandwidth, iops = [rate / 1024 for rate, _ in rates], [rate for _, rate in rates]
    rate = round(sum(op.bytes_per_s for op in ops))
    moved = sum(op.bytes for op in ops)
    return {
        "io_bytes": moved,
        "io_kbytes": moved // 1024,
        "bw_bytes": rate,
        "bw": rate // 1024,
        "iops": sum((op.iops for op in ops), 0.0),
        "runtime": _runtime_ms(entry) if ops else 0,
        "total_ios": sum(op.requests for op in ops),
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": NO_SAMPLES,
        "clat_ns": _timed(ops, entry),
        "lat_ns": _latency(ops),
        "bw_min": round(min(bandwidth, default=0)),
        "bw_max": round(max(bandwidth, default=0)),
        "bw_agg": 100.0 if ops else 0.0,
        "bw_mean": fmean(bandwidth) if rates else 0.0,
        "bw_dev": pstdev(bandwidth) if rates else 0.0,
        "bw_samples": len(rates),
        "iops_min": round(min(iops, default=0)),
        "iops_max": round(max(iops, default=0)),
        "iops_mean": fmean(iops) if rates else 0.0,
        "iops_stddev": pstdev(iops) if rates else 0.0,
        "iops_samples": len(rates),
    }


def _rates(entry: _Entry, kind: str) -> Iterator[tuple[float, float]]:
    """Yield (bytes, requests) per second in each interval; unknown for trims."""
    if kind == "trim":
        return
    names = {at for at, _ in entry.names()}
    for interval in entry.run.figures.series:
        if max(entry.streams) < len(interval.streams) and interval.length_ns:
            found = [interval.streams[at] for at in entry.streams if at not in names]
            seconds = interval.length_ns / 1e9
            moved, requests = 0, 0
            if kind != "write":
                moved, requests = sum(each.read_bytes for each in found), sum(each.reads for each in found)
            if kind != "read":
                moved += sum(each.write_bytes for each in found)
                requests += sum(each.writes for each in found)
            if kind in (entry.names_as, "mixed"):
                requests += sum(interval.streams[at].reads + interval.streams[at].writes for at in names)
            yield moved / seconds, requests / seconds


def _timed(ops: Sequence[Op], entry: _Entry) -> dict[str, Any]:
    """Return the latency with percentiles, and with bins if requested."""
    found = _latency(ops)
    ops = [op for op in ops if op.requests]
    if not ops:
        return found
    try:
        found["percentile"] = {f"{percent:.6f}": ns for percent, ns in _percentiles(ops, entry.percentiles)}
        if entry.bins:
            found["bins"] = _bins(ops)
    except ValueError:  # a record made by hand, or damaged
        found["percentile"] = {}
    return found


def _latency(ops: Sequence[Op]) -> dict[str, Any]:
    """Return the latency of all operations together."""
    ops = [op for op in ops if op.requests]
    if not ops:
        return dict(NO_SAMPLES)
    count = sum(op.requests for op in ops)
    mean = sum(op.latency.mean_ns * op.requests for op in ops) / count
    squares = sum(op.requests * (op.latency.sdev_ns**2 + (op.latency.mean_ns - mean) ** 2) for op in ops)
    return {
        "min": min(op.latency.min_ns for op in ops),
        "max": max(op.latency.max_ns for op in ops),
        "mean": mean,
        "stddev": (squares / count) ** 0.5,
        "N": count,
    }


def _percentiles(ops: Sequence[Op], asked: tuple[float, ...]) -> Iterable[tuple[float, int]]:
    values = _core.histogram_percentiles([op.latency.histogram for op in ops], asked)
    most = max(op.latency.max_ns for op in ops)  # the middle of the last bucket may be above
    return [(percent, min(ns, most)) for percent, ns in zip(asked, values, strict=False)]


def _bins(ops: Sequence[Op]) -> dict[str, int]:
    counts = counted(pair for op in ops for pair in _core.histogram_counts(op.latency.histogram))
    return {str(value_of(bucket)): count for bucket, count in counts.items()}


def _disk(device: DeviceCounters) -> dict[str, Any]:
    """Return the counters with fio's names; missing ones are left out."""
    known = {theirs: round(device.delta[ours]) for theirs, ours in COUNTERS.items() if ours in device.delta}
    util = {"util": device.iostat["%util"]} if "%util" in device.iostat else {}
    return {"name": device.name, **known, **util}
