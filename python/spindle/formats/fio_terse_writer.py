"""Spindle's records as lines of fio's terse output (`--output-format=terse`), versions 2 to 5: stat.c,
`show_thread_status_terse_all`.

The figures are those of the jobs of fio's JSON. Bytes are KiB, rates KiB/s, times microseconds. A field that records
lack (`fio_writer.MISSING`) is empty, so that the others keep their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spindle.result.record import Record

from .fio_writer import Job, ReportOptions, jobs_of

VERSION = 3
"""fio's default of `--terse-version`."""
VERSIONS = (2, 3, 4, 5)
WITH_TRIMS = (2, 4, 5)
WITH_SAMPLES = 5
PERCENTILES = 20
"""Fields for percentiles, used or not."""
DEPTHS = 7
"""Fields for the shares of queue depths."""
LEAST_SHARE = 0.01
"""Smallest share above 0 that fio shows, %."""
_DISK = ("name", "read_ios", "write_ios", "read_merges", "write_merges", "read_ticks", "write_ticks", "in_queue")
UNKNOWN = ""


def write(records: Record | Sequence[Record], shape: ReportOptions, version: int = VERSION) -> bytes:
    """Write a line for each job. Raises `Unreadable` for imported results."""
    program, jobs = jobs_of(records, shape)
    return "".join(f"{_line(job, program, version)}\n" for job in jobs).encode()


def _line(job: Job, program: str, version: int) -> str:
    report = job.report
    fields = [str(version), *([program] if version > 2 else [])]
    fields += [report["jobname"], str(report["groupid"]), str(report["error"])]
    for direction in _parts(report, version):
        fields += _direction(direction, job.percentiles, version)
    fields += _cpu(report)
    fields += [UNKNOWN] * DEPTHS
    fields += _shares(report)
    if version > 2:
        fields += [field for disk in job.disks for field in _disk(disk)]
    line = ";".join(fields)
    if "desc" not in report:
        return line
    return line + ("\n" if version == 2 else "") + f";{report['desc']}"


def _parts(report: Mapping[str, Any], version: int) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a report by `unified_rw_reporting`."""
    for name in ("read", "write", "trim", "mixed"):
        if name in report and (name != "trim" or version in WITH_TRIMS):
            yield report[name]


def _direction(found: Mapping[str, Any], percentiles: Sequence[float], version: int) -> list[str]:
    fields = [str(found["io_kbytes"]), str(found["bw"]), str(int(found["iops"])), str(found["runtime"])]
    fields += [*_latency(found["slat_ns"]), *_latency(found["clat_ns"])]
    fields += _percentiles(found["clat_ns"], percentiles)
    fields += _latency(found["lat_ns"])
    fields += [str(found["bw_min"]), str(found["bw_max"]), f"{found['bw_agg'] if found['bw_samples'] else 0:.6f}%"]
    fields += [f"{found['bw_mean']:.6f}", f"{found['bw_dev']:.6f}"]
    if version == WITH_SAMPLES:
        fields += [str(found["bw_samples"]), str(found["iops_min"]), str(found["iops_max"])]
        fields += [f"{found['iops_mean']:.6f}", f"{found['iops_stddev']:.6f}", str(found["iops_samples"])]
    return fields


def _latency(found: Mapping[str, Any]) -> list[str]:
    whole = [str(found[name] // 1000) for name in ("min", "max")]
    return whole + [f"{found[name] / 1000:.6f}" for name in ("mean", "stddev")]


def _percentiles(found: Mapping[str, Any], asked: Sequence[float]) -> list[str]:
    values = found.get("percentile") or {f"{percent:.6f}": 0 for percent in asked}
    fields = [f"{percent}%={ns // 1000}" for percent, ns in values.items()]
    return (fields + ["0%=0"] * PERCENTILES)[:PERCENTILES]


def _cpu(report: Mapping[str, Any]) -> list[str]:
    """Return shares, context switches, and both kinds of page faults."""
    shares = [f"{report[name]:.6f}%" if name in report else UNKNOWN for name in ("usr_cpu", "sys_cpu")]
    return [*shares, str(report.get("ctx", UNKNOWN)), UNKNOWN, UNKNOWN]


def _shares(report: Mapping[str, Any]) -> Iterable[str]:
    """Return the shares of latencies: fio counts those below 1 us with those below 2 us."""
    if "latency_us" not in report:
        return [UNKNOWN] * 22
    first, *rest = report["latency_us"].values()
    shares = [_least(first) + sum(report["latency_ns"].values()), *map(_least, rest)]
    shares += map(_least, report["latency_ms"].values())
    return [f"{share:.2f}%" for share in shares]


def _least(share: float) -> float:
    return max(share, LEAST_SHARE) if share else 0.0


def _disk(disk: Mapping[str, Any]) -> list[str]:
    fields = [str(disk.get(name, UNKNOWN)) for name in _DISK]
    return [*fields, f"{disk['util']:.2f}%" if "util" in disk else UNKNOWN]
