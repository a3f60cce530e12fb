"""fio's logs (`write_bw_log`, `write_lat_log`, `write_iops_log`, `write_hist_log`) of completions, for programs that
read those.

A line is `time [ms], value, direction, block size, priority`, with the offset before the priority if asked for; see
fio's HOWTO, "Log File Formats". Values are KiB/s, ns, and requests a second (1 for a single request). Spindle does not
separate submission and completion: `clat` is the whole latency and `slat` is empty, as with fio's synchronous engines.
A line of `write_hist_log` is `time [ms], direction, block size` and the count of each bucket of a window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from spindle.result.completions import Completion

from .fio_bins import BUCKETS, bucket_of

DIRECTIONS = {"read": 0, "write": 1, "trim": 2}
"""Direction -> fio's number. Metadata operations have that of their job, as with fio's engines."""
UNTOLD = ("fsync", "zero")
HISTOGRAM = "hist"
FILES = {"bw": ("bw",), "iops": ("iops",), "lat": ("lat", "clat", "slat"), HISTOGRAM: ("clat_hist",)}
"""Kind of log -> the files that fio writes for it."""
REST = 0.1
"""Part of a window that is too short for a rate."""


@dataclass(frozen=True)
class LogOrder:
    """One log that a job asks for."""

    kind: str
    """One of `FILES`."""
    name: str
    """First part of the file's name."""
    average_ms: int = 0
    """Length of the window of a line; 0: a line for each request (histograms: none)."""
    largest: bool = False
    """Log the largest value of a window instead of the mean."""
    offsets: bool = False
    per_job: bool = True
    """A file for each clone, with its number in the name."""
    epoch_ms: int = 0
    """Added to each time."""
    coarseness: int = 0
    """Histograms: number of times that neighbouring buckets are merged."""

    def files(self, number: int) -> list[str]:
        """Return the names of the files of the clone with this number."""
        ends = f".{number}.log" if self.per_job else ".log"
        return [f"{self.name}_{part}{ends}" for part in FILES[self.kind]]


@dataclass(frozen=True)
class Job:
    """A clone of a job, as identified in completions."""

    number: int
    """fio's thread number, from 1."""
    directions: tuple[int, ...]
    """Directions that it uses."""
    orders: Sequence[LogOrder]


@dataclass
class _Window:
    """Completions of one direction within a window."""

    requests: int = 0
    bytes: int = 0
    latency_ns: int = 0
    worst_ns: int = 0
    last_offset: int = 0

    def add(self, each: Completion) -> None:
        self.requests += 1
        self.bytes += each.bytes
        self.latency_ns += each.latency_ns
        self.worst_ns = max(self.worst_ns, each.latency_ns)
        self.last_offset = each.offset

    def value(self, order: LogOrder, length_ms: float) -> int:
        if order.kind == "lat":
            return self.worst_ns if order.largest else round(self.latency_ns / max(self.requests, 1))
        amount = self.requests if order.kind == "iops" else self.bytes / 1024
        return round(amount * 1000 / length_ms)


@dataclass
class _Writer:
    """One log of one clone."""

    job: Job
    order: LogOrder
    files: list[IO[str]]
    """Files with values: of `lat` without `slat`."""
    windows: dict[int, dict[int, _Window]] = field(default_factory=dict)
    """Windows by number and direction."""
    last_ns: int = 0
    """Time of the latest completion."""

    def take(self, each: Completion, direction: int) -> None:
        order = self.order
        self.last_ns = max(self.last_ns, each.time_ns)
        if order.average_ms:
            at = each.time_ns // (order.average_ms * 10**6)
            self.windows.setdefault(at, {}).setdefault(direction, _Window()).add(each)
            return
        value = {
            "lat": each.latency_ns,
            "iops": 1,
            "bw": round(each.bytes * 10**9 / 1024 / max(each.latency_ns, 1)),
        }[order.kind]
        self._line(each.time_ns // 10**6, value, direction, each.bytes, each.offset)

    def finish(self) -> None:
        """Write windows in the order of time; in an empty one rates are 0 and latencies have no line. The last one ends
        with the last completion; a short rest of requests outstanding at the end is left out."""
        last = max(self.windows, default=-1)
        rest_ms = self.last_ns / 10**6 - last * self.order.average_ms
        if last > 0 and rest_ms < REST * self.order.average_ms:
            last -= 1
            rest_ms = self.order.average_ms
        for at in range(last + 1):
            length_ms = max(rest_ms, 1.0) if at == last else self.order.average_ms
            for direction in self.job.directions:
                window = self.windows.get(at, {}).get(direction)
                if window is None and self.order.kind == "lat":
                    continue
                window = window or _Window()
                time_ms = (at + 1) * self.order.average_ms
                self._line(time_ms, window.value(self.order, length_ms), direction, 0, window.last_offset)

    def _line(self, time_ms: int, value: int, direction: int, size: int, offset: int) -> None:
        where = f" {offset}," if self.order.offsets else ""
        line = f"{time_ms + self.order.epoch_ms}, {value}, {direction}, {size},{where} 0\n"
        for file in self.files:
            file.write(line)


@dataclass
class _Counts:
    """Latencies of one direction within a window."""

    buckets: Counter[int] = field(default_factory=Counter)
    last_bytes: int = 0
    last_ns: int = 0


@dataclass
class _HistogramWriter:
    """The log of histograms of one clone."""

    job: Job
    order: LogOrder
    files: list[IO[str]]
    windows: dict[int, dict[int, _Counts]] = field(default_factory=dict)
    """Windows by number and direction."""

    def take(self, each: Completion, direction: int) -> None:
        if not self.order.average_ms:
            return
        at = each.time_ns // (self.order.average_ms * 10**6)
        counts = self.windows.setdefault(at, {}).setdefault(direction, _Counts())
        counts.buckets[bucket_of(each.latency_ns) >> self.order.coarseness] += 1
        counts.last_bytes, counts.last_ns = each.bytes, each.time_ns

    def finish(self) -> None:
        """Write windows in the order of time; an empty one has no line, as in fio. The last one ends with the last
        request."""
        last = max(self.windows, default=0)
        for at, directions in sorted(self.windows.items()):
            for direction, counts in sorted(directions.items()):
                ends_ms = counts.last_ns // 10**6 if at == last else (at + 1) * self.order.average_ms
                self._line(ends_ms, direction, counts)

    def _line(self, time_ms: int, direction: int, counts: _Counts) -> None:
        held = (counts.buckets[bucket] for bucket in range(BUCKETS >> self.order.coarseness))
        line = ", ".join(map(str, (time_ms + self.order.epoch_ms, direction, counts.last_bytes, *held)))
        for file in self.files:
            file.write(f"{line}\n")


def names_of(jobs: Mapping[tuple[str, int], Job]) -> set[str]:
    """Return the file names of all their logs."""
    return {name for job in jobs.values() for order in job.orders for name in order.files(job.number)}


def write(completions: Iterable[Completion], jobs: Mapping[tuple[str, int], Job], files: Mapping[str, IO[str]]) -> None:
    """Write the logs of all jobs, by stream and worker; logs without a number are of all jobs together. `files`: open
    files by name; an earlier phase may have written to them. Memory is used only for the windows. Raises OSError."""
    writers: dict[int, list[_Writer | _HistogramWriter]] = {}
    for job in {job.number: job for job in jobs.values()}.values():
        for order in job.orders:
            opened = [files[name] for name in order.files(job.number)]
            kind = _HistogramWriter if order.kind == HISTOGRAM else _Writer
            writers.setdefault(job.number, []).append(kind(job, order, opened[:2]))
    for each in completions:
        found = jobs.get((each.stream, each.worker))
        if found is None or each.operation in UNTOLD:
            continue
        direction = DIRECTIONS.get(each.operation, found.directions[0])
        for writer in writers.get(found.number, ()):
            writer.take(each, direction)
    for listed in writers.values():
        for writer in listed:
            writer.finish()
