"""fio's `--output-format=json` and `json+`, of fio 2 and 3; read, and (`write`) written.

Differences between versions: fio 2 has times in microseconds under `lat`, `slat`, `clat` and bytes in KiB; fio 3 in
nanoseconds under `lat_ns` ... and bytes in bytes. `bw` is KiB/s in both, `bw_bytes` came with 3.2. The time stamp is of
the report; `job_start` (since 3.36) is of the start. json+ has the latency counts (`bins`): they become a histogram.

With fio's `--status-interval` it writes a document every so often, each with the totals since the start: they are one
run, with the figures of the last. `unified_rw_reporting=both` adds the sum of all directions as `mixed`: it is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from spindle import _core
from spindle.result.imported import PartialLatency, PartialOp, PartialStream
from spindle.result.record import Level, Verdict

from .fio_snapshots import is_continued, series
from .fio_writer import ReportOptions, write
from .found import Repetition, known, utc, writer_of
from .numbers import amount, number, scaled, scaled_whole, whole
from .text import Text, documents

__all__ = ["ReportOptions", "looks", "read", "write"]

DIRECTIONS = ("read", "write", "trim")
MIXED = "mixed"
"""The sum of all directions, instead of them (`unified_rw_reporting=mixed`) or beside them (`both`)."""
UNITS = {"_ns": 1, "_us": 1000, "_ms": 1_000_000, "": 1000}
"""Ends of a latency's name -> ns; fio 2 has none and means microseconds."""
MOST_BINS = 1 << 20
CPU = ("usr_cpu", "sys_cpu", "ctx", "majf", "minf")


def looks(text: Text) -> bool:
    """True if its first key is there; long logs may precede it."""
    return '"fio version"' in text.whole or ('"jobs"' in text.head and '"job options"' in text.head)


def read(text: Text) -> list[Repetition]:
    """Return one for each run of fio: a file may contain several, one after another, each with its snapshots."""
    runs: list[list[Mapping[str, Any]]] = []
    for line, document in documents(text):
        if not isinstance(document, dict) or not ("jobs" in document or "client_stats" in document):
            if runs or not isinstance(document, dict) or "fio version" not in document:
                continue
            text.fail(line, "fio's JSON without jobs")
        report = {**document, "jobs": _jobs(text, line, document)}
        if not runs or not is_continued(runs[-1][-1], report):
            runs.append([])
        runs[-1].append(report)
    return [_run(reports) for reports in runs]


def _jobs(text: Text, line: int, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    jobs = document.get("jobs") or document.get("client_stats")
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        text.fail(line, "`jobs` is not a list of jobs")
    return [job for job in jobs if job.get("jobname") != "All clients"]  # their sum


def _run(reports: Sequence[Mapping[str, Any]]) -> Repetition:
    """Read a run. `reports`: those of one run, the last is the final one."""
    document = reports[-1]
    jobs = document["jobs"]
    shared = _options(document.get("global options"))
    if not shared and document.get("client_stats"):
        shared = _options((document.get("global options") or [{}])[0])
    starts = [start for job in jobs if (start := amount(job.get("job_start"))) is not None]
    seconds = amount(document.get("timestamp"))
    targets = {_options(job.get("job options")).get("filename") or shared.get("filename") for job in jobs}
    names = list(dict.fromkeys(str(job.get("jobname", "")) for job in jobs))
    tool, version = writer_of(document.get("fio version"))
    return Repetition(
        tool=tool,
        version=version,
        started=utc(min(starts) / 1000) if starts else None,
        reported=utc(seconds),
        target=targets.pop() if len(targets) == 1 else None,
        workload=names[0] if len(names) == 1 else None,
        settings=shared,
        streams=[replace(_job(job), series=series(reports, place)) for place, job in enumerate(jobs)],
        verdicts=list(_errors(jobs)),
    )


def _options(value: object) -> dict[str, str]:
    return {str(name): str(each) for name, each in value.items()} if isinstance(value, dict) else {}


def _errors(jobs: list[Mapping[str, Any]]) -> Iterator[Verdict]:
    for job in jobs:
        if error := whole(job.get("error")):
            yield Verdict(
                check="errors",
                level=Level.INVALID,
                evidence=f"fio says that job {job.get('jobname')} ended with error {error}",
                advice="its figures are partial; fix the cause and repeat the run",
                numbers={"error": float(error)},
            )


def _job(job: Mapping[str, Any]) -> PartialStream:
    operations = {}
    runtimes = []
    moved = {name: figures for name in DIRECTIONS if (figures := _moved(job, name)) is not None}
    if not moved and (mixed := _moved(job, MIXED)) is not None:
        moved[MIXED] = mixed
    for name, figures in moved.items():
        operations[name] = _operation(figures)
        runtimes.append(scaled(figures.get("runtime"), 1e-3))
    sync = job.get("sync")
    if isinstance(sync, dict):
        latency = _latency(sync, "lat")
        times = sync.get("lat_ns", sync.get("lat"))
        # fio 3.33 leaves `total_ios` at 0 while it times every one.
        requests = whole(sync.get("total_ios")) or (whole(times.get("N")) if isinstance(times, dict) else None)
        if requests:
            operations["fsync"] = PartialOp(requests=requests, latency=latency)
    host = job.get("hostname")
    name = str(job.get("jobname") or "job")
    own = [seconds for seconds in runtimes if seconds is not None]
    return PartialStream(
        name=f"{name}@{host}" if host else name,
        group=whole(job.get("groupid")) or 0,
        seconds=max(own, default=None) or scaled(job.get("job_runtime"), 1e-3),
        operations=operations,
        settings=_options(job.get("job options")),
        extra={name: value for name in CPU if (value := number(job.get(name))) is not None},
    )


def _moved(job: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    figures = job.get(name)
    there = isinstance(figures, dict) and (whole(figures.get("total_ios")) or whole(figures.get("io_bytes")))
    return figures if there else None


def _operation(figures: Mapping[str, Any]) -> PartialOp:
    old = "io_kbytes" not in figures  # fio 2: `io_bytes` counts KiB
    rate = amount(figures.get("bw_bytes"))
    return PartialOp(
        requests=whole(figures.get("total_ios")),
        bytes=scaled_whole(figures.get("io_bytes"), 1024) if old else whole(figures.get("io_bytes")),
        iops=amount(figures.get("iops")),
        bytes_per_s=rate if rate is not None else scaled(figures.get("bw"), 1024),
        latency=_latency(figures, "lat"),
        submission=_latency(figures, "slat"),
        completion=_latency(figures, "clat"),
    )


def _latency(figures: Mapping[str, Any], name: str) -> PartialLatency | None:
    found = ((figures.get(f"{name}{suffix}"), factor) for suffix, factor in UNITS.items())
    times, factor = next(((times, factor) for times, factor in found if isinstance(times, dict)), ({}, 1))
    if whole(times.get("N")) == 0:  # nothing was timed: the zeros are not figures
        return None
    if "N" not in times and not amount(times.get("max")) and not amount(times.get("mean")):  # the same in fio 2
        return None
    return known(
        PartialLatency(
            min_ns=_times(times.get("min"), factor),
            mean_ns=scaled(times.get("mean"), factor),
            max_ns=_times(times.get("max"), factor),
            sdev_ns=scaled(times.get("stddev"), factor),
            percentiles=_percentiles(times.get("percentile"), factor),
            histogram=_histogram(times.get("bins"), factor),
        )
    )


def _times(value: object, factor: int) -> int | None:
    """Return a time in ns, exact for integers."""
    count = whole(value)
    return whole(count * factor) if isinstance(value, int) and count is not None else scaled_whole(value, factor)


def _percentiles(value: object, factor: int) -> list[tuple[float, int]]:
    if not isinstance(value, dict):
        return []
    pairs = [(number(str(percent)), _times(ns, factor)) for percent, ns in value.items()]
    return sorted((percent, ns) for percent, ns in pairs if percent and 0 < percent <= 100 and ns is not None)


def _histogram(bins: object, factor: int) -> str | None:
    if not isinstance(bins, dict) or not 0 < len(bins) <= MOST_BINS:
        return None
    counts = [(scaled_whole(str(time), factor), whole(count)) for time, count in bins.items()]
    pairs = [(time, count) for time, count in counts if time is not None and count]
    return _core.histogram_of(pairs) if len(pairs) == len([count for _, count in counts if count != 0]) else None
