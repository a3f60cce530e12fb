"""The resolved workload as the core writes it. Times are ns, sizes bytes, fractions 0 to 1.

Generated from crates/workload/src/request.rs and crates/workload/src/spec.rs by `make generate`: not to be edited.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from spindle.result import workload_properties as properties


class Kind(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One of several forms, distinguished by `kind`."""


SteadyMetric = Literal["iops", "bandwidth", "latency"]
"""What must be steady, over all streams."""


class SteadyRule(Struct, frozen=True, kw_only=True):
    """When a run has settled: the rule of `measure::settle`."""

    metric: SteadyMetric
    """What must be steady."""
    window_ns: int
    """The shortest window that may be found steady, ns."""
    range: float
    """Largest (max - min) / mean of the window's fifths."""
    slope: float
    """Largest rise or fall of the fitted line over the fifths / mean."""
    drift_per_minute: float | None
    """Largest drift that must be ruled out, share a minute; `None`: none."""


class End(Struct, frozen=True, kw_only=True):
    """When something ends: at the first that is reached. All `None`: only with the run."""

    time_ns: int | None
    """Measured time, ns (after the ramp)."""
    bytes: int | None
    """Bytes moved."""
    requests: int | None
    """Requests completed."""
    steady: bool
    """Once it has settled."""
    steady_rule: SteadyRule | None = None
    """By which rule; `None` where nothing is asked."""


Each = Literal["stream", "worker"]
"""Whose files those of a set are."""


class AutoFileSize(Kind, frozen=True, kw_only=True, tag="auto"):
    """Equal parts of as much as the caches ask for."""


class FixedFileSize(Kind, frozen=True, kw_only=True, tag="fixed"):
    """Always the same."""

    bytes: int
    """Bytes."""


class RangeFileSize(Kind, frozen=True, kw_only=True, tag="range"):
    """Uniform over the multiples of step from min to max."""

    min: int
    """Smallest."""
    max: int
    """Largest."""
    step: int
    """Granularity."""


class WeightedFileSize(Kind, frozen=True, kw_only=True, tag="weighted"):
    """A list with weights."""

    choices: list[tuple[int, float]]
    """(bytes, weight); weights are normalised to sum 1."""


class LogNormalFileSize(Kind, frozen=True, kw_only=True, tag="log-normal"):
    """Log-normal with a mean, cut to [min, max], rounded to multiples of step."""

    mean: float
    """Mean of the sizes that are drawn from."""
    sigma: float
    """Standard deviation of ln(size)."""
    min: int
    """Smallest."""
    max: int
    """Largest."""
    step: int
    """Granularity."""


FileSize = AutoFileSize | FixedFileSize | RangeFileSize | WeightedFileSize | LogNormalFileSize
"""Distribution of the sizes of files, bytes."""


class FileSet(Struct, frozen=True, kw_only=True):
    """Files that are made for the workload in a folder of its own."""

    name: str
    """Name within the workload."""
    nrfiles: int
    """Files of the set, or of each worker of a stream that uses it."""
    each: Each
    """Who shares them."""
    files: int
    """Files in all: `nrfiles`, for each worker if each has its own."""
    filesize: FileSize
    """How large they are."""
    fill: bool
    """They hold data before the first request; otherwise they are empty and grow as they are written."""


class Phase(Struct, frozen=True, kw_only=True):
    """One of several loads that run one after another on the same target: each begins when the one before is
    over."""

    drop_caches: bool
    """The target's pages are dropped from the page cache before it."""
    load: Workload
    """An ordinary workload, named as the phase."""


Spacing = Literal["constant", "poisson"]
"""Spacing of open-loop arrivals."""


class Closed(Kind, frozen=True, kw_only=True, tag="closed"):
    """As soon as a slot is free."""


class Open(Kind, frozen=True, kw_only=True, tag="open"):
    """At fixed or random times, whether or not earlier requests are done. Latency counts from the intended start.
    `rate_iops` is for the whole stream."""

    rate_iops: float
    """Requests per second of the whole stream."""
    spacing: Spacing
    """Spacing."""


Arrival = Closed | Open
"""When a request is issued."""


class RandomContent(Kind, frozen=True, kw_only=True, tag="random"):
    """Incompressible."""


class ZeroContent(Kind, frozen=True, kw_only=True, tag="zero"):
    """Zero bytes."""


class CompressibleContent(Kind, frozen=True, kw_only=True, tag="compressible"):
    """Compresses to about `ratio` of its size."""

    ratio: float
    """Compressed over plain size, 0..1."""


Content = RandomContent | ZeroContent | CompressibleContent
"""What is written."""


class Mix(properties.Mix, Struct, frozen=True, kw_only=True):
    """Share of each operation; the rest are reads. Each in 0..=1, their sum at most 1."""

    write: float
    """Share of writes."""
    trim: float
    """Share of discards."""
    zero: float
    """Share of write-zeroes."""
    rewrite: float = 0.0
    """Share of requests that read a block and write it back in place."""


Op = Literal[
    "read",
    "write",
    "trim",
    "zero",
    "create",
    "open",
    "stat",
    "rename",
    "unlink",
    "mkdir",
    "rmdir",
    "readdir",
    "rewrite",
]
"""What a request asks of the device, or of the names of a tree of files."""


Order = Literal["sequential", "random"]
"""In which order names are taken."""


class FixedSize(Kind, frozen=True, kw_only=True, tag="fixed"):
    """Always the same."""

    bytes: int
    """Bytes."""


class RangeSize(Kind, frozen=True, kw_only=True, tag="range"):
    """Uniform over min, min + step ... max."""

    min: int
    """Smallest."""
    max: int
    """Largest."""
    step: int
    """Granularity; 0: the target's block, at least 512, to which the bounds are rounded inwards."""


class WeightedSize(Kind, frozen=True, kw_only=True, tag="weighted"):
    """A list with weights."""

    choices: list[tuple[int, float]]
    """(bytes, weight); weights are normalised to sum 1."""


class LogNormalSize(Kind, frozen=True, kw_only=True, tag="log-normal"):
    """Log-normal with a mean, cut to [min, max] (nothing piles up at the ends), rounded to multiples of step; the
    mean is that of the result."""

    mean: float
    """Mean of the sizes that are issued."""
    sigma: float
    """Standard deviation of ln(size)."""
    min: int
    """Smallest."""
    max: int
    """Largest."""
    step: int
    """Granularity; 0: the target's block, at least 512, to which the bounds are rounded inwards."""


Size = FixedSize | RangeSize | WeightedSize | LogNormalSize
"""Request size distribution, bytes."""


class Tree(properties.Tree, Struct, frozen=True, kw_only=True):
    """Files in directories. Files and directories are numbered through; the same number of files lies in each
    directory."""

    name: str
    """Name of its set of files: streams that name the same one work on the same tree."""
    files: int
    """Files."""
    directories: int
    """Directories they lie in, at least 1."""
    size: Size | None
    """What a file is made with; `None`: nothing."""
    each: Each
    """Whose they are."""


class Names(properties.Names, Struct, frozen=True, kw_only=True):
    """What a stream does with the names of a tree."""

    operation: Op
    """One of the operations on names."""
    order: Order
    """In which order the names are taken."""
    passes: int | None
    """How often each name is taken; `None`: until the run ends. More than once only if the operation is
    repeatable."""
    tree: Tree
    """The tree."""


class Peak(Struct, frozen=True, kw_only=True):
    """Where the popular places of a pattern are."""

    center: float | None
    """Where in the region the most popular place lies, 0..=1; none: anywhere (not scattered: at the start)."""
    scattered: bool
    """Places that are next to each other in popularity lie anywhere; otherwise one behind the other."""


class BytesPlace(Kind, frozen=True, kw_only=True, tag="bytes"):
    """Bytes from the start."""

    bytes: int
    """Bytes."""


class FractionPlace(Kind, frozen=True, kw_only=True, tag="fraction"):
    """Share of the target's size, 0..=1."""

    fraction: float
    """Share."""


Place = BytesPlace | FractionPlace
"""A place on the target."""


class Zone(Struct, frozen=True, kw_only=True):
    """A part of the region and its share of the requests."""

    length: Place
    """Its length; a fraction is one of the region."""
    weight: float
    """Its requests are in this proportion to those of the others."""


class Sequential(Kind, frozen=True, kw_only=True, tag="sequential"):
    """One after another; workers share the region in equal parts; wraps at the end of its part."""


class Backward(Kind, frozen=True, kw_only=True, tag="backward"):
    """The same from the end: each request ends where the one before began."""


class Uniform(Kind, frozen=True, kw_only=True, tag="uniform"):
    """Uniform over all aligned places."""


class Shuffled(Kind, frozen=True, kw_only=True, tag="shuffled"):
    """All aligned places in random order, each once before any comes twice; each worker in an order of its own."""


class Zipf(Kind, frozen=True, kw_only=True, tag="zipf"):
    """The n-th most popular place has a chance proportional to n^-theta."""

    theta: float
    """Exponent, above 0 (1 is allowed)."""
    peak: Peak = Peak(center=None, scattered=True)
    """Where the popular places are."""


class Pareto(Kind, frozen=True, kw_only=True, tag="pareto"):
    """1 - `share` of the requests go to the most popular `share` of the places, and so on within these."""

    share: float
    """Share, above 0 and below 1."""
    peak: Peak
    """Where the popular places are."""


class Normal(Kind, frozen=True, kw_only=True, tag="normal"):
    """Places are normally distributed, cut to the region (nothing piles up at its ends)."""

    deviation: float
    """Standard deviation as a share of the region, before the cut."""
    peak: Peak
    """The mean; the middle of the region if there is no centre."""


class HotSet(Kind, frozen=True, kw_only=True, tag="hot-set"):
    """`access` of the requests go to the first `space` of the (scattered) places."""

    space: float
    """Share of the space that is hot."""
    access: float
    """Share of the requests that go there."""


class Zoned(Kind, frozen=True, kw_only=True, tag="zoned"):
    """Zones from the start of the region on, each with its share of the requests, uniform within it."""

    zones: list[Zone]
    """In order; what lies behind the last is not used."""


class Strided(Kind, frozen=True, kw_only=True, tag="strided"):
    """Each request `stride_bytes` after the start of the one before."""

    stride_bytes: int
    """Distance of starts, bytes."""


class Runs(Kind, frozen=True, kw_only=True, tag="runs"):
    """Sequential runs, then a jump to a uniform place."""

    mean_requests: float
    """Mean number of requests in a run, at least 1."""
    fixed: bool = False
    """Every run has this length (a whole number); otherwise lengths are geometrically distributed."""
    repeat: bool = False
    """The requests of a run go to the same place instead of one behind the other."""


Pattern = Sequential | Backward | Uniform | Shuffled | Zipf | Pareto | Normal | HotSet | Zoned | Strided | Runs
"""Where the next request lies within the region."""


PriorityClass = Literal["realtime", "best-effort", "idle"]
"""I/O priority class."""


class Priority(Struct, frozen=True, kw_only=True):
    """I/O priority (`ioprio_set(2)`)."""

    class_: PriorityClass = msgspec.field(name="class")
    """Class."""
    level: int
    """0 (highest) to 7; 0 for idle."""


class IopsLimit(Kind, frozen=True, kw_only=True, tag="iops"):
    """Requests per second."""

    iops: float
    """Requests per second."""


class BytesLimit(Kind, frozen=True, kw_only=True, tag="bytes"):
    """Bytes per second."""

    bytes_per_s: float
    """Bytes per second."""


RateLimit = IopsLimit | BytesLimit
"""Upper bound of a closed loop, for the whole stream."""


class Region(Struct, frozen=True, kw_only=True):
    """Part of the target, `offset..offset + length`."""

    offset: Place
    """First byte."""
    end: Place
    """End (exclusive)."""


class Repeats(Struct, frozen=True, kw_only=True):
    """Writes whose content was written before, for targets that deduplicate."""

    fraction: float
    """Their share, 0..=1."""
    set: int | None
    """Each has one of so many contents; `None`: that of the last write in the same slot that was no repeat."""


FileService = Literal["roundrobin", "random", "sequential"]
"""Order in which a worker's requests go to its files."""


class StreamFiles(Struct, frozen=True, kw_only=True):
    """A stream's use of a set of files."""

    set: str
    """Name of the set."""
    service: FileService
    """Which file is next."""
    requests: int
    """Requests to a file before the next one, at least 1; `sequential` does not count them."""


class Sync(Struct, frozen=True, kw_only=True):
    """When data is forced to the medium."""

    fsync_every: int
    """fsync after every k-th write of a worker; 0: never."""
    fdatasync_every: int = 0
    """The same with fdatasync."""
    fsync_fraction: float
    """Share of writes that are followed by an fsync."""
    fsync_between: bool = False
    """No fsync follows the last request of a worker: it comes only where another request comes after it."""
    dsync: bool
    """Open with O_DSYNC."""
    osync: bool = False
    """Open with O_SYNC."""
    end_fsync: bool
    """fdatasync at the end, inside the measured time."""


class Think(Struct, frozen=True, kw_only=True):
    """Pause after a completion."""

    mean_ns: int
    """Mean, ns."""
    exponential: bool
    """Exponentially distributed instead of constant."""
    every: int = 0
    """The worker as a whole issues so many requests, waits for them, and pauses; 0: each slot pauses by itself
    after each completion."""
    work_ns: int = 0
    """The worker as a whole works so long, waits for what is outstanding, and pauses, ns; 0: see `every`."""
    spin_ns: int = 0
    """So much of the pause keeps a CPU busy, ns (`every` or `work_ns` only)."""


class Window(Struct, frozen=True, kw_only=True):
    """A part of the region that the pattern stays in until so many bytes were moved; the next one follows. What the
    end of the region cuts off is used as far as it holds a request; behind the last window the first one comes
    again. Each worker has windows of its own."""

    length_bytes: int
    """Length, bytes."""
    moved_bytes: int
    """Bytes moved before it moves on."""
    skip_bytes: int
    """Between the end of one and the start of the next, bytes."""


class WriteWalk(Struct, frozen=True, kw_only=True):
    """Places and sizes of the writes alone."""

    pattern: Pattern
    """Where the next write lies."""
    size: Size
    """How large it is."""
    align_bytes: int
    """Its offsets are multiples of this, bytes; 0 as in `Stream::align_bytes`."""


class WorkloadStream(properties.WorkloadStream, Struct, frozen=True, kw_only=True):
    """One kind of load."""

    name: str
    """Name within the workload."""
    mix: Mix
    """Share of each operation."""
    pattern: Pattern
    """Where the next request lies."""
    size: Size
    """How large it is."""
    align_bytes: int
    """Offsets are multiples of this, bytes. 0: the request size (fixed sizes) or the target's block, at least
    512."""
    workers: int
    """Threads, each with its own request stream."""
    depth: int
    """Outstanding requests of each worker."""
    per_worker: bool = False
    """Each worker has figures of its own beside those of the stream."""
    arrival: Arrival
    """Closed loop, or open loop at a given rate."""
    rate_limit: RateLimit | None
    """Upper bound of a closed loop, for the whole stream."""
    think: Think | None
    """Pause of a slot after each completion (closed loop)."""
    direct: bool
    """O_DIRECT."""
    sync: Sync
    """When data is forced to the medium."""
    priority: Priority | None
    """I/O priority, if one is set."""
    region: Region
    """Part of the target, or of each file of a set, that is used."""
    writes_apart: WriteWalk | None = None
    """The walk of the writes, if they go through the region on their own; `pattern`, `size` and `align_bytes` are
    those of all other requests then."""
    trim_first: bool = False
    """Each write follows a discard of the same place."""
    window: Window | None = None
    """The pattern stays in a window of the region, which moves on."""
    repeats: Repeats | None = None
    """Some of what is written was written before."""
    ends: list[str] = []
    """Streams of the load that end when this one does, by name."""
    mapped: bool = False
    """It goes through a shared mapping of its files instead of reads and writes."""
    files: StreamFiles | None = None
    """The set of files it uses, and in which order; `None`: the workload has no sets."""
    content: Content
    """What is written."""
    verify: bool = False
    """What is written says what it is, and what is read and written is checked."""
    verify_fatal: bool = False
    """A block that is found wrong ends the run."""
    start_delay_ns: int
    """Time after the start of the run before the stream's first request, ns."""
    end: End
    """When this stream ends, besides the run's own end."""
    passes: float | None = None
    """It also ends once each worker has gone so many times over its part of the region."""
    names: Names | None = None
    """It works on the names of a tree of files instead of data: then `mix`, `pattern`, `size`, `align_bytes`,
    `direct` and `region` mean nothing."""


TableShape = Literal[
    "streams", "randomio", "seeker", "throughput", "wal", "paraseq", "per-second", "metadata", "bonnie", "iozone"
]
"""Shape of the terminal table."""


class Workload(properties.Workload, Struct, frozen=True, kw_only=True):
    """What I/O is asked for: streams that run at the same time, or phases that run one after another."""

    name: str
    """Name of the preset or file stem."""
    about: str
    """One line for people."""
    table: TableShape
    """Table shape that people of this workload know (`randomio`, `seeker`, `throughput`, ...)."""
    seed: int
    """Seed of every request stream."""
    ramp_ns: int
    """Time at the start that is run but not counted, ns."""
    end: End
    """When the whole run ends; a stream may end earlier by its own `end`."""
    filesets: list[FileSet] = []
    """Sets of files in a folder, with distinct names; empty: every stream uses the target itself. Phases share
    them."""
    streams: list[WorkloadStream]
    """The streams, at least one, with distinct names; none in a workload of phases."""
    phases: list[Phase] = []
    """What runs one after another; none in an ordinary workload."""


def workload_from_json(text: str | bytes) -> Workload:
    """Read what the core wrote."""
    return msgspec.json.decode(text, type=Workload)
