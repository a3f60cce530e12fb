"""The metrics that can be compared: one table of their names, units, better directions and meanings.

`OPERATION` in a name stands for one of the operations, `pN` for a percentile, `D` for `r` (reads), `w` (writes) or `d`
(discards). A stream, a phase or one device of several precedes a name with a `/`, a step of a quick look with a `.`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from spindle.base.plain import Plain
from spindle.result.figures_properties import OPERATIONS

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles that have a name of their own."""
STEPS = ("sequential-read", "random-read", "random-read-rising", "first-part", "last-part", "mix")
"""Steps of a quick look."""
_VALUES = {
    "OPERATION": OPERATIONS,
    "pN": tuple(f"p{percentile:g}" for percentile in PERCENTILES),
    "D": ("r", "w", "d"),
}
_PATTERNS = {"OPERATION": "|".join(OPERATIONS), "pN": r"p[0-9.]+", "D": "[rwd]"}


class Direction(StrEnum):
    """Direction in which a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"
    """Neither direction is better: utilisation, queue length."""


@dataclass(frozen=True)
class MetricEntry(Plain):
    """An entry of the table: a metric, or one for each operation, percentile or direction."""

    COMPUTED = ("names",)

    name: str
    unit: str
    """`1/s`, `B/s`, `ns` ..., or empty for a pure number."""
    better: Direction
    meaning: str
    of: str
    """The results that have it."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches its names, with an optional stream, phase, device or step before them."""
        text = re.escape(self.name)
        for placeholder, pattern in _PATTERNS.items():
            text = text.replace(placeholder, f"(?:{pattern})")
        return re.compile(rf"(?:.*/)?(?:(?:{'|'.join(STEPS)})\.)?{text}", re.DOTALL)

    @cached_property
    def names(self) -> list[str]:
        """All its names."""
        found = [self.name]
        for placeholder, values in _VALUES.items():
            found = [name.replace(placeholder, value) for name in found for value in values]
        return list(dict.fromkeys(found))


def _latencies(scope: str, what: str, of: str) -> Iterator[MetricEntry]:
    for name, meaning in (("mean", "mean"), ("pN", "percentile of the"), ("max", "longest"), ("sdev", "spread of the")):
        yield MetricEntry(f"{scope}{name}_ns", "ns", Direction.LOWER, f"{meaning} {what}", of)


_ALL = "every run"
_REAL = "runs on real targets"
_EACH = "operations that ran"
_OPEN = "open loop"
_LOGS = "runs with a log"
_STEADY = "runs until steady"
_KNEE = "sweeps"
_TARGET = "searches under latency bounds"
_CURVE = "open-loop curves"
_DEVICE = "runs on devices"
_IMPORTED = "imported results"

METRICS: tuple[MetricEntry, ...] = (
    MetricEntry("iops", "1/s", Direction.HIGHER, "operations a second, fsyncs apart", _ALL),
    MetricEntry("bytes_per_s", "B/s", Direction.HIGHER, "throughput", _ALL),
    *_latencies("", "latency", _ALL),
    MetricEntry("cpu_percent", "%", Direction.LOWER, "CPU time of the load over its length; 100: one CPU", _REAL),
    MetricEntry("cpu_ns_per_request", "ns", Direction.LOWER, "CPU time a request", _REAL),
    MetricEntry("switches_per_request", "", Direction.LOWER, "context switches a request", _REAL),
    MetricEntry("OPERATION.iops", "1/s", Direction.HIGHER, "operations a second", _EACH),
    MetricEntry("OPERATION.bytes_per_s", "B/s", Direction.HIGHER, "throughput", _EACH),
    *_latencies("OPERATION.", "latency", _EACH),
    *_latencies("OPERATION.service.", "time from issue to completion", _OPEN),
    MetricEntry("commits_per_s", "1/s", Direction.HIGHER, "commits a second", _LOGS),
    *_latencies("commit.", "time of a commit", _LOGS),
    MetricEntry("steady.iops", "1/s", Direction.HIGHER, "IOPS once steady", _STEADY),
    MetricEntry("steady.bytes_per_s", "B/s", Direction.HIGHER, "throughput once steady", _STEADY),
    MetricEntry("steady.mean_ns", "ns", Direction.LOWER, "mean latency once steady", _STEADY),
    MetricEntry("knee.iops", "1/s", Direction.HIGHER, "highest IOPS of the sweep", _KNEE),
    MetricEntry("knee.bytes_per_s", "B/s", Direction.HIGHER, "highest throughput of the sweep", _KNEE),
    MetricEntry("knee.outstanding", "", Direction.NEITHER, "requests outstanding at the knee", _KNEE),
    MetricEntry("target.iops", "1/s", Direction.HIGHER, "IOPS within the bounds on latency", _TARGET),
    MetricEntry("target.bytes_per_s", "B/s", Direction.HIGHER, "throughput within the bounds on latency", _TARGET),
    MetricEntry(
        "target.outstanding", "", Direction.NEITHER, "requests outstanding within the bounds on latency", _TARGET
    ),
    MetricEntry("curve.iops", "1/s", Direction.HIGHER, "highest IOPS served as they came", _CURVE),
    MetricEntry("curve.bytes_per_s", "B/s", Direction.HIGHER, "highest throughput served as it came", _CURVE),
    MetricEntry("curve.p50_ns", "ns", Direction.LOWER, "p50 latency at the highest throughput served", _CURVE),
    MetricEntry("curve.p99_ns", "ns", Direction.LOWER, "p99 latency at the highest throughput served", _CURVE),
    MetricEntry("device.D/s", "1/s", Direction.HIGHER, "requests that the device served a second", _DEVICE),
    MetricEntry("device.DMB/s", "MiB/s", Direction.HIGHER, "throughput of the device", _DEVICE),
    MetricEntry("device.DkB/s", "KiB/s", Direction.HIGHER, "throughput of the device", "runs on modelled machines"),
    MetricEntry("device.Drqm/s", "1/s", Direction.HIGHER, "requests merged a second", _DEVICE),
    MetricEntry("device.%Drqm", "%", Direction.NEITHER, "share of requests that were merged", _DEVICE),
    MetricEntry(
        "device.D_await", "ms", Direction.LOWER, "mean time of the device's requests, waiting included", _DEVICE
    ),
    MetricEntry("device.Dareq-sz", "KiB", Direction.NEITHER, "mean size of the device's requests", _DEVICE),
    MetricEntry("device.f/s", "1/s", Direction.HIGHER, "flushes a second", _DEVICE),
    MetricEntry("device.f_await", "ms", Direction.LOWER, "mean time of flushes", _DEVICE),
    MetricEntry("device.aqu-sz", "", Direction.NEITHER, "mean number of requests in the device and its queue", _DEVICE),
    MetricEntry("device.%util", "%", Direction.NEITHER, "share of the time that the device was busy", _DEVICE),
    MetricEntry("device.tps", "1/s", Direction.HIGHER, "requests a second, reads and writes together", _IMPORTED),
    MetricEntry("device.MB/s", "MiB/s", Direction.HIGHER, "throughput, reads and writes together", _IMPORTED),
    MetricEntry(
        "device.rqm/s", "1/s", Direction.HIGHER, "requests merged a second, reads and writes together", _IMPORTED
    ),
    MetricEntry("device.await", "ms", Direction.LOWER, "mean time of requests, reads and writes together", _IMPORTED),
    MetricEntry(
        "device.areq-sz", "KiB", Direction.NEITHER, "mean size of requests, reads and writes together", _IMPORTED
    ),
    MetricEntry("device.svctm", "ms", Direction.LOWER, "busy time a request", _IMPORTED),
)
"""In reading order. The columns of `device.` are those of `iostat -mx`."""


@dataclass(frozen=True)
class Metric:
    """The meaning of one name."""

    name: str
    unit: str
    better: Direction

    @property
    def words(self) -> str:
        """The name in a sentence: `throughput`, `p99 latency of reads`."""
        return _words(self.name)


def known(name: str) -> MetricEntry | None:
    """The entry of a name; None: there is no such metric."""
    found = [entry for entry in METRICS if entry.pattern.fullmatch(name)]
    return max(found, key=lambda entry: len(entry.name), default=None)


def metric(name: str) -> Metric:
    """The meaning of a name. An unknown one, as from another tool, has no unit and no better direction."""
    found = known(name)
    return Metric(name, "", Direction.NEITHER) if found is None else Metric(name, found.unit, found.better)


def nearest(name: str) -> str | None:
    """The metric whose name is nearest to a misspelt one."""
    names = [each for entry in METRICS for each in entry.names]
    place, slash, _ = name.partition("/")
    near = difflib.get_close_matches(name, [*names, *(place + slash + each for each in names if slash)], n=1)
    return near[0] if near else None


def absent(name: str, there: Iterable[str]) -> str:
    """One line: results lack a metric, and which they have. Of latencies only the means are listed."""
    entry = known(name)
    of = f" (a metric of {entry.of})" if entry is not None and entry.of != _ALL else ""
    listed = sorted(one for one in there if not re.search(r"(p[0-9.]+|max|sdev)_ns$", one))
    return f"the results have no `{name}`{of}; they have {', '.join(listed)}, and percentiles of the latencies"


_OPERATION_WORDS = {
    "read": "reads",
    "write": "writes",
    "trim": "trims",
    "zero": "zeroings",
    "fsync": "fsyncs",
    "create": "creates",
    "open": "opens",
    "stat": "stats",
    "rename": "renames",
    "unlink": "unlinks",
    "mkdir": "mkdirs",
    "rmdir": "rmdirs",
    "readdir": "readdirs",
}
_LAST_WORDS = {"iops": "IOPS", "bytes_per_s": "throughput", "mean_ns": "mean latency", "max_ns": "worst latency"}


def _words(name: str) -> str:
    own = next((entry for entry in METRICS if entry.name == name), None)
    if own is not None and name not in _LAST_WORDS and not name.startswith("device."):
        return own.meaning
    if name.startswith("device."):
        return f"{name.removeprefix('device.')} of the device"
    stream, slash, rest = name.rpartition("/")
    found = re.fullmatch(r"(?:(.+)\.)?(p[0-9.]+|mean|max|sdev|iops|bytes_per_s)(_ns)?", rest)
    if found is None:
        return name
    scope, last = found.group(1), found.group(2)
    text = _LAST_WORDS.get(f"{last}{found.group(3) or ''}", f"{last} latency" if found.group(3) else last)
    if last == "sdev":
        text = "spread of the latency"
    parts = (scope or "").split(".") if scope else []
    if parts and parts[-1] == "service":
        text, parts = text.replace("latency", "service time"), parts[:-1]
    if parts:
        text += f" of {_OPERATION_WORDS.get(parts[-1], parts[-1])}"
        text += "".join(f" ({part})" for part in parts[:-1])
    return f"{text}, {stream}" if slash else text
