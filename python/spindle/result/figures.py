"""What the load itself measured: the Rust core's `RunFigures`, field by field.

The shape is defined once, in `crates/measure/src/figures.rs`; a test holds this mirror to it. Times are ns, sizes are
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from spindle.result.buckets import BUCKETS
from spindle.result.verification import Verification


class Ended(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What ended the run."""


class EndedByTime(Ended, frozen=True, tag="time"):
    """The asked time was over."""


class EndedByBytes(Ended, frozen=True, tag="bytes"):
    """The asked bytes were moved."""


class EndedByRequests(Ended, frozen=True, tag="requests"):
    """The asked number of requests was completed."""


class EndedBySteady(Ended, frozen=True, tag="steady"):
    """The figures were steady."""


class Stopped(Ended, frozen=True, tag="stopped"):
    """Someone asked it to stop: the figures are partial."""


class EndedByError(Ended, frozen=True, kw_only=True, tag="error"):
    """An I/O error: the figures are partial."""

    errno: int
    op: str
    """What was asked (`read`, `write`, `fsync` ...)."""
    file: str | None = None
    """Name of the file, if the stream has several."""
    offset: int
    """Byte offset on the target or in the file; number of the name for operations on names."""
    len: int
    """Length, bytes."""


EndedBy = EndedByTime | EndedByBytes | EndedByRequests | EndedBySteady | Stopped | EndedByError


class Latency(Struct, frozen=True, kw_only=True):
    """A latency distribution, ns."""

    min_ns: int
    mean_ns: float
    max_ns: int
    sdev_ns: float
    percentiles: list[tuple[float, int]]
    """(percentile, ns)."""
    histogram: str
    """The whole histogram: HdrHistogram V2, deflated, base64 (`HISTF...`)."""

    def percentile(self, wanted: float) -> int | None:
        """The latency of one of the recorded percentiles, ns."""
        return next((ns for percent, ns in self.percentiles if percent == wanted), None)


class Op(Struct, frozen=True, kw_only=True):
    """Figures of one operation of one stream."""

    requests: int
    """Completed in the measured time."""
    bytes: int
    """Moved in the measured time."""
    iops: float
    bytes_per_s: float
    latency: Latency
    """Issue (closed loop) or intended start (open loop) to completion."""
    service: Latency | None = None
    """Open loop: issue to completion."""


class Error(Struct, frozen=True, kw_only=True):
    """Errors of one kind."""

    errno: int
    op: str
    count: int
    first_offset: int
    """Byte offset of the first; number of the name for operations on names."""


class Late(Struct, frozen=True, kw_only=True):
    """Requests that were under way when the time was over: in no other figure but the total bytes."""

    requests: int = 0
    max_latency_ns: int = 0


DATA = ("read", "write", "trim", "zero")
"""Operations that move or free data."""
NAMES = ("create", "open", "stat", "rename", "unlink", "mkdir", "rmdir", "readdir")
"""Operations on the names of a tree of files."""
OPERATIONS = (*DATA, "fsync", *NAMES)
"""All that figures are kept of."""


class Worker(Struct, frozen=True, kw_only=True):
    """What one worker of a stream did, fsyncs apart."""

    worker: int
    requests: int
    bytes: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int


class Stream(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures of one stream."""

    name: str
    measured_ns: int
    total_bytes: int
    """Moved including the ramp and what was late: what the device's own counters are compared with."""
    total_read_bytes: int
    total_write_bytes: int
    read: Op | None
    write: Op | None
    trim: Op | None
    zero: Op | None
    fsync: Op | None
    create: Op | None = None
    """Its bytes are what was put into the files."""
    open: Op | None = None
    stat: Op | None = None
    rename: Op | None = None
    unlink: Op | None = None
    mkdir: Op | None = None
    rmdir: Op | None = None
    readdir: Op | None = None
    mean_outstanding: float
    """Time-weighted mean number of outstanding requests, counted independently of the latencies."""
    max_lag_ns: int
    """Open loop: largest lag of an issue behind its intended start."""
    errors: list[Error]
    late: Late = Late()
    workers: list[Worker] = []
    """Each by itself, where that was asked for."""

    def ops(self) -> Iterator[tuple[str, Op]]:
        """The operations that were asked for, by name: on data or on names, fsyncs apart."""
        for name in (*DATA, *NAMES):
            op: Op | None = getattr(self, name)
            if op is not None:
                yield name, op

    @property
    def requests(self) -> int:
        """Completed in the measured time, fsyncs apart."""
        return sum(op.requests for _, op in self.ops())

    @property
    def iops(self) -> float:
        """All operations, fsyncs apart."""
        return sum(op.iops for _, op in self.ops())

    @property
    def bytes_per_s(self) -> float:
        """All operations."""
        return sum(op.bytes_per_s for _, op in self.ops())


Bucket = Annotated[int, Meta(ge=0, lt=BUCKETS)]


class StreamInterval(Struct, frozen=True, kw_only=True):
    """One interval of one stream."""

    reads: int
    """With what only looks at names: open, stat, readdir."""
    writes: int
    """With trims and zeroings, and what changes names."""
    read_bytes: int
    write_bytes: int
    read_latency_ns: int
    """Sum of the read latencies."""
    write_latency_ns: int
    """Sum of the write latencies."""
    max_latency_ns: int
    latency_counts: list[tuple[Bucket, Annotated[int, Meta(ge=1)]]] = []
    """Latencies of reads and writes: (bucket, count) of each that holds any (`result.buckets`); earlier versions
    recorded none."""


class Interval(Struct, frozen=True, kw_only=True):
    """One interval of the series."""

    start_ns: int
    """After the end of the ramp."""
    length_ns: int
    streams: list[StreamInterval]
    """In the order of the workload."""


class Cpu(Struct, frozen=True, kw_only=True):
    """CPU use of the load's own threads over the measured time."""

    user_ns: int
    system_ns: int
    voluntary_switches: int
    involuntary_switches: int


COMMAND = "command"
"""Engine of a load that is a program of the user's: what it did is known from the devices alone."""


class Generator(Struct, frozen=True, kw_only=True):
    """How the load was made, and what the generator could have made."""

    engine: str
    """`io_uring`, `pread`, `names`, `null`, `simulator`, or `COMMAND`."""
    reason: str
    """Why it was chosen."""
    features: list[str]
    timestamps: str
    """`request` (exact) or `batch`."""
    ceiling_iops: float | None
    """Highest rate the calibration saw this generator reach on this target."""
    calibration: list[tuple[str, float]]
    """IOPS of each back end in the calibration."""
    busiest_worker: Annotated[float, Meta(ge=0)]
    """Largest share of the measured time any worker's thread spent on a CPU, 0 to 1."""


class Log(Struct, frozen=True, kw_only=True):
    """What became of the completion log."""

    completions: int
    """That are in it."""
    lost: int
    """That are not: the file took them more slowly than the load made them, or not at all."""
    trouble: str | None = None
    """Why writing it ended early."""


class Steady(Struct, frozen=True, kw_only=True):
    """The window in which a run had settled; times are ns after the end of the ramp."""

    at_ns: int
    """When this was seen: the end of the window."""
    from_ns: int
    """Its start; what lies before is left out."""
    mean: float
    """Over the window: requests/s, bytes/s or ns, as the workload's rule asks."""
    range: float
    """(max - min) / mean of the window's fifths."""
    slope: float
    """Rise of the fitted line over the fifths / mean."""
    drift_per_minute: float
    """Sen's slope, share of the median a minute."""
    drift_range: tuple[float, float]
    """Its 95 % confidence interval."""
    looks: int
    """How often the rule was asked until then."""


class Figures(Struct, frozen=True, kw_only=True):
    """Everything the load itself can tell about a run."""

    measured_ns: int
    """From the end of the ramp to the last counted completion."""
    elapsed_ns: int
    """From the first request to the end of the last, ramp and end sync included."""
    ended_by: EndedBy
    streams: list[Stream]
    series: list[Interval]
    """In order of time; the last interval may be shorter."""
    interval_ns: int
    cpu: Cpu
    generator: Generator
    log: Log | None = None
    """None: none was asked for."""
    steady: Steady | None = None
    """Where the run was to end with it, and did."""
    verification: Verification | None = None
    """None: nothing was verified."""

    @property
    def measured_s(self) -> float:
        """Measured time, s."""
        return self.measured_ns / 1e9

    @property
    def is_partial(self) -> bool:
        """Whether the run was ended by a person or an error."""
        return isinstance(self.ended_by, Stopped | EndedByError)

    @property
    def requests(self) -> int:
        """All streams and operations, fsyncs apart."""
        return sum(stream.requests for stream in self.streams)

    @property
    def iops(self) -> float:
        """All streams and operations, fsyncs apart."""
        return sum(stream.iops for stream in self.streams)

    @property
    def bytes_per_s(self) -> float:
        """All streams and operations."""
        return sum(stream.bytes_per_s for stream in self.streams)

    @property
    def total_read_bytes(self) -> int:
        """Ramp included."""
        return sum(stream.total_read_bytes for stream in self.streams)

    @property
    def total_write_bytes(self) -> int:
        """Ramp included."""
        return sum(stream.total_write_bytes for stream in self.streams)

    @property
    def total_freed_bytes(self) -> int:
        """Discarded or zeroed, ramp included."""
        return sum(stream.total_bytes - stream.total_read_bytes - stream.total_write_bytes for stream in self.streams)

    def mean_latency_ns(self) -> float | None:
        """Over all data operations of all streams, weighted by their number."""
        pairs = [(op.requests, op.latency.mean_ns) for stream in self.streams for _, op in stream.ops()]
        requests = sum(count for count, _ in pairs)
        return sum(count * mean for count, mean in pairs) / requests if requests else None


def figures_from_json(text: str | bytes) -> Figures:
    """Read the core's figures."""
    return msgspec.json.decode(text, type=Figures)
