"""The resolved workload as the record keeps it: the Rust core's `Workload`, field by field.

The shape and its defaults are defined once, in `crates/workload/src/spec.rs`; a test holds this mirror to it.
Times are ns, sizes bytes, fractions 0 to 1.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import Struct

TableShape = Literal[
    "streams", "randomio", "seeker", "throughput", "per-second", "paraseq", "metadata", "wal", "bonnie", "iozone"
]


class SteadyRule(Struct, frozen=True, kw_only=True):
    """When a run has settled."""

    metric: Literal["iops", "bandwidth", "latency"]
    window_ns: int
    """The shortest window that may be found steady."""
    range: float
    """Largest (max - min) / mean of the window's fifths."""
    slope: float
    """Largest rise or fall of the fitted line over the fifths / mean."""
    drift_per_minute: float | None
    """Largest drift that must be ruled out; None: none."""


class End(Struct, frozen=True, kw_only=True):
    """When something ends: at the first that is reached."""

    time_ns: int | None
    bytes: int | None
    requests: int | None
    steady: bool
    steady_rule: SteadyRule | None = None


class Mix(Struct, frozen=True, kw_only=True):
    """Share of each operation; the rest are reads."""

    write: float
    trim: float
    zero: float
    rewrite: float = 0.0
    """Read a block and write it back in place."""

    @property
    def changes(self) -> float:
        """Share that changes data on the target."""
        return self.write + self.trim + self.zero + self.rewrite

    @property
    def of_calls(self) -> float:
        """Share of writes among all calls: a rewrite is a read and a write."""
        return (self.write + self.rewrite) / (1 + self.rewrite)


class Kind(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One of several forms, told apart by `kind`."""


class Sequential(Kind, frozen=True, tag="sequential"):
    """One after another."""


class Backward(Kind, frozen=True, tag="backward"):
    """The same from the end."""


class Uniform(Kind, frozen=True, tag="uniform"):
    """Uniform over all aligned places."""


class Shuffled(Kind, frozen=True, tag="shuffled"):
    """All places in random order, each once before any twice."""


class Peak(Struct, frozen=True, kw_only=True):
    """Where the popular places are."""

    center: float | None
    """Place of the most popular one, as a share of the region; None: anywhere."""
    scattered: bool


ANYWHERE = Peak(center=None, scattered=True)


class Zipf(Kind, frozen=True, kw_only=True, tag="zipf"):
    """The n-th most popular place as n^-theta."""

    theta: float
    peak: Peak = ANYWHERE


class Pareto(Kind, frozen=True, kw_only=True, tag="pareto"):
    """1 - `share` of the requests go to `share` of the places."""

    share: float
    peak: Peak


class Normal(Kind, frozen=True, kw_only=True, tag="normal"):
    """Normal around the peak's centre, cut to the region."""

    deviation: float
    peak: Peak


class HotSet(Kind, frozen=True, kw_only=True, tag="hot-set"):
    """`access` of the requests go to `space` of the places."""

    space: float
    access: float


class BytesPlace(Kind, frozen=True, kw_only=True, tag="bytes"):
    """Bytes from the start."""

    bytes: int


class FractionPlace(Kind, frozen=True, kw_only=True, tag="fraction"):
    """Share of the target's size."""

    fraction: float


Place = BytesPlace | FractionPlace


class Zone(Struct, frozen=True, kw_only=True):
    """A part of the region and its share of the requests."""

    length: Place
    weight: float


class Zoned(Kind, frozen=True, kw_only=True, tag="zoned"):
    """Zones from the region's start on, uniform within each."""

    zones: list[Zone]


class Strided(Kind, frozen=True, kw_only=True, tag="strided"):
    """Each a fixed distance after the one before."""

    stride_bytes: int


class Runs(Kind, frozen=True, kw_only=True, tag="runs"):
    """Sequential runs, then a jump."""

    mean_requests: float
    fixed: bool = False
    repeat: bool = False


Pattern = Sequential | Backward | Uniform | Shuffled | Zipf | Pareto | Normal | HotSet | Zoned | Strided | Runs


class FixedSize(Kind, frozen=True, kw_only=True, tag="fixed"):
    """Always the same."""

    bytes: int


class RangeSize(Kind, frozen=True, kw_only=True, tag="range"):
    """Uniform over min, min + step ... max."""

    min: int
    max: int
    step: int


class WeightedSize(Kind, frozen=True, kw_only=True, tag="weighted"):
    """A list of (bytes, weight)."""

    choices: list[tuple[int, float]]


class LogNormalSize(Kind, frozen=True, kw_only=True, tag="log-normal"):
    """Log-normal with a mean, cut to [min, max]."""

    mean: float
    sigma: float
    min: int
    max: int
    step: int


Size = FixedSize | RangeSize | WeightedSize | LogNormalSize


class Closed(Kind, frozen=True, tag="closed"):
    """As soon as a slot is free."""


class Open(Kind, frozen=True, kw_only=True, tag="open"):
    """At given times, whether or not earlier requests are done."""

    rate_iops: float
    spacing: Literal["constant", "poisson"]


class IopsLimit(Kind, frozen=True, kw_only=True, tag="iops"):
    """Requests per second."""

    iops: float


class BytesLimit(Kind, frozen=True, kw_only=True, tag="bytes"):
    """Bytes per second."""

    bytes_per_s: float


class AutoFileSize(Kind, frozen=True, tag="auto"):
    """Equal parts of as much as the caches ask for."""


class FixedFileSize(Kind, frozen=True, kw_only=True, tag="fixed"):
    """Always the same."""

    bytes: int


class RangeFileSize(Kind, frozen=True, kw_only=True, tag="range"):
    """Uniform over the multiples of step from min to max."""

    min: int
    max: int
    step: int


class WeightedFileSize(Kind, frozen=True, kw_only=True, tag="weighted"):
    """A list of (bytes, weight)."""

    choices: list[tuple[int, float]]


class LogNormalFileSize(Kind, frozen=True, kw_only=True, tag="log-normal"):
    """Log-normal with a mean, cut to [min, max]."""

    mean: float
    sigma: float
    min: int
    max: int
    step: int


FileSize = AutoFileSize | FixedFileSize | RangeFileSize | WeightedFileSize | LogNormalFileSize


class FileSet(Struct, frozen=True, kw_only=True):
    """Files that are made for the workload in a folder of its own."""

    name: str
    nrfiles: int
    """Files of the set, or of each worker of a stream that uses it."""
    each: Literal["stream", "worker"]
    """Who has so many files."""
    files: int
    """Files in all."""
    filesize: FileSize
    fill: bool
    """They hold data before the first request; otherwise they are empty and grow as they are written."""


class StreamFiles(Struct, frozen=True, kw_only=True):
    """A stream's use of a set of files."""

    set: str
    """Name of the set."""
    service: Literal["roundrobin", "random", "sequential"]
    """Which file the next request goes to."""
    requests: int
    """Requests to a file before the next one."""


class Think(Struct, frozen=True, kw_only=True):
    """Pause after a completion."""

    mean_ns: int
    exponential: bool
    every: int = 0
    """The worker as a whole pauses after so many requests; 0: each slot after each."""
    work_ns: int = 0
    """The worker as a whole pauses after working so long."""
    spin_ns: int = 0


class Sync(Struct, frozen=True, kw_only=True):
    """When data is forced to the medium."""

    fsync_every: int
    fdatasync_every: int = 0
    fsync_fraction: float
    fsync_between: bool = False
    dsync: bool
    osync: bool = False
    end_fsync: bool


class Priority(Struct, frozen=True, kw_only=True):
    """I/O priority."""

    level: int
    class_: Literal["realtime", "best-effort", "idle"] = msgspec.field(name="class")


class Region(Struct, frozen=True, kw_only=True):
    """Part of the target, or of each file, that is used."""

    offset: Place
    end: Place


class RandomContent(Kind, frozen=True, tag="random"):
    """Incompressible."""


class ZeroContent(Kind, frozen=True, tag="zero"):
    """Zero bytes."""


class CompressibleContent(Kind, frozen=True, kw_only=True, tag="compressible"):
    """Compresses to about `ratio` of its size."""

    ratio: float


Content = RandomContent | ZeroContent | CompressibleContent


class WriteWalk(Struct, frozen=True, kw_only=True):
    """Places and sizes of writes that go through the region on their own."""

    pattern: Pattern
    size: Size
    align_bytes: int


class Tree(Struct, frozen=True, kw_only=True):
    """Files in directories."""

    name: str
    """Of its set of files."""
    files: int
    directories: int
    size: Size | None
    """What a file is made with; None: nothing."""
    each: Literal["stream", "worker"]
    """Whose they are: those of all workers of a stream, or as many for each worker."""

    @property
    def largest_file(self) -> int:
        """Bytes."""
        match self.size:
            case None:
                return 0
            case FixedSize(bytes=size) | RangeSize(max=size) | LogNormalSize(max=size):
                return size
            case WeightedSize(choices=choices):
                return max(size for size, _ in choices)


class Names(Struct, frozen=True, kw_only=True):
    """What a stream does with the names of a tree."""

    operation: Literal["create", "open", "stat", "rename", "unlink", "mkdir", "rmdir", "readdir"]
    order: Literal["sequential", "random"]
    passes: int | None
    """How often each name is taken; None: until the run ends."""
    tree: Tree

    @property
    def on_directories(self) -> bool:
        """Whether the names are those of directories."""
        return self.operation in ("mkdir", "rmdir", "readdir")

    @property
    def changes(self) -> bool:
        """Whether anything is changed."""
        return self.operation not in ("open", "stat", "readdir")


class Window(Struct, frozen=True, kw_only=True):
    """A part of the region that the pattern stays in for so many bytes."""

    length_bytes: int
    moved_bytes: int
    """Before the next one."""
    skip_bytes: int
    """Between two of them."""


class Repeats(Struct, frozen=True, kw_only=True):
    """Writes whose content was written before."""

    fraction: float
    set: int | None
    """Each has one of so many contents; None: that of the last write that was new."""


class WorkloadStream(Struct, frozen=True, kw_only=True):
    """One kind of load."""

    name: str
    mix: Mix
    pattern: Pattern
    size: Size
    align_bytes: int
    workers: int
    depth: int
    """Outstanding requests of each worker."""
    arrival: Closed | Open
    rate_limit: IopsLimit | BytesLimit | None
    think: Think | None
    direct: bool
    sync: Sync
    priority: Priority | None
    region: Region
    files: StreamFiles | None = None
    """None: it uses the target itself."""
    content: Content
    start_delay_ns: int
    end: End
    writes_apart: WriteWalk | None = None
    trim_first: bool = False
    """Each write follows a discard of the same place."""
    per_worker: bool = False
    """Each worker has figures of its own."""
    passes: float | None = None
    """It also ends after moving its region's bytes so many times."""
    names: Names | None = None
    """It works on names instead of data."""
    verify: bool = False
    """Blocks written say what they are, and are checked."""
    verify_fatal: bool = False
    """A block that is found wrong ends the run."""
    window: Window | None = None
    """The pattern stays in a part of the region that moves on."""
    repeats: Repeats | None = None
    """Some of what is written was written before."""
    ends: list[str] = []
    """Streams that end when this one does."""
    mapped: bool = False
    """It goes through a shared mapping of its files."""

    @property
    def outstanding(self) -> int:
        """Requests that are meant to be under way at once (closed loop)."""
        return self.workers * self.depth

    @property
    def paced(self) -> bool:
        """Whether something other than the target bounds its rate by intent."""
        return isinstance(self.arrival, Open) or self.rate_limit is not None or self.think is not None

    @property
    def only_data(self) -> bool:
        """Whether all it asks for is reads and writes: no names, no discards, no zeroing."""
        return self.names is None and not self.mix.trim and not self.mix.zero

    @property
    def writes(self) -> bool:
        """Whether it changes anything on the target."""
        if self.names is not None:
            return self.names.changes
        return self.mix.changes > 0

    @property
    def reads(self) -> bool:
        """Whether it reads at all."""
        if self.names is not None:
            return not self.names.changes
        return self.mix.write + self.mix.trim + self.mix.zero < 1


class Workload(Struct, frozen=True, kw_only=True):
    """What I/O was asked for."""

    name: str
    about: str
    table: TableShape
    seed: int
    ramp_ns: int
    end: End
    filesets: list[FileSet] = []
    """Empty: every stream uses the target itself."""
    streams: list[WorkloadStream]
    """None in a workload of phases."""
    phases: list[Phase] = []
    """What runs one after another; none in an ordinary workload."""

    @property
    def loads(self) -> list[Workload]:
        """The loads that run one after another: the phases', or itself."""
        return [phase.load for phase in self.phases] or [self]

    @property
    def all_streams(self) -> list[WorkloadStream]:
        """Of all loads, in their order."""
        return [stream for load in self.loads for stream in load.streams]

    @property
    def works_on_names(self) -> bool:
        """Whether any stream, of any phase, works on names."""
        return any(stream.names is not None for stream in self.all_streams)

    @property
    def makes_files(self) -> bool:
        """Whether it works on files of its own, or on their names, in a folder that is made for them."""
        return bool(self.filesets) or self.works_on_names

    @property
    def writes(self) -> bool:
        """Whether any stream changes data on the target."""
        return any(stream.writes for stream in self.all_streams)

    @property
    def outstanding(self) -> int:
        """Requests that are meant to be under way at once (closed loops)."""
        return max(sum(stream.outstanding for stream in load.streams) for load in self.loads)

    @property
    def paced(self) -> bool:
        """Whether every stream's rate is bounded by intent."""
        return all(stream.paced for stream in self.all_streams)


class Phase(Struct, frozen=True, kw_only=True):
    """One of several loads that run one after another on the same target."""

    drop_caches: bool
    """The target's pages are dropped from the page cache before it."""
    load: Workload
    """An ordinary workload, named as the phase."""


def workload_from_json(text: str | bytes) -> Workload:
    """Read the core's resolved workload."""
    return msgspec.json.decode(text, type=Workload)


def stream_name(text: str) -> str:
    """What a stream is called that stands for another tool's job of this name: up to 28 letters, digits, - and _."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
    # A clone's number stands at the end.
    return (name if len(name) <= 28 else f"{name[:20]}-{name[-7:]}") or "job"
