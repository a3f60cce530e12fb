"""Properties and methods of figures: bases of the generated types of `result.figures`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spindle.result import figures

DATA = ("read", "write", "trim", "zero")
"""Operations that move or free data."""
NAMES = ("create", "open", "stat", "rename", "unlink", "mkdir", "rmdir", "readdir")
"""Operations on the names of a tree of files."""
OPERATIONS = (*DATA, "fsync", *NAMES)
"""All operations that have figures."""
COMMAND = "command"
"""Engine of a load that is the user's own program: only the devices' counters show what it did."""


class Latency:
    """Properties and methods of `result.figures.Latency`."""

    __slots__ = ()
    percentiles: list[tuple[float, int]]

    def percentile(self, wanted: float) -> int | None:
        """The latency of one of the recorded percentiles, ns."""
        return next((ns for percent, ns in self.percentiles if percent == wanted), None)


class Stream:
    """Properties and methods of `result.figures.Stream`."""

    __slots__ = ()

    def ops(self) -> Iterator[tuple[str, figures.Op]]:
        """The requested operations by name: on data or on names, without fsyncs."""
        for name in (*DATA, *NAMES):
            op: figures.Op | None = getattr(self, name)
            if op is not None:
                yield name, op

    @property
    def requests(self) -> int:
        """Requests completed in the measured time, without fsyncs."""
        return sum(op.requests for _, op in self.ops())

    @property
    def iops(self) -> float:
        """Rate of all operations, without fsyncs."""
        return sum(op.iops for _, op in self.ops())

    @property
    def bytes_per_s(self) -> float:
        """Throughput of all operations."""
        return sum(op.bytes_per_s for _, op in self.ops())


class Figures:
    """Properties and methods of `result.figures.Figures`."""

    __slots__ = ()
    measured_ns: int
    streams: list[figures.Stream]
    ended_by: Any

    @property
    def measured_s(self) -> float:
        """Measured time, s."""
        return self.measured_ns / 1e9

    @property
    def is_partial(self) -> bool:
        """True if a person or an error ended the run."""
        return self.ended_by.__struct_config__.tag in ("stopped", "error")

    @property
    def requests(self) -> int:
        """Requests of all streams and operations, without fsyncs."""
        return sum(stream.requests for stream in self.streams)

    @property
    def iops(self) -> float:
        """Rate of all streams and operations, without fsyncs."""
        return sum(stream.iops for stream in self.streams)

    @property
    def bytes_per_s(self) -> float:
        """Throughput of all streams and operations."""
        return sum(stream.bytes_per_s for stream in self.streams)

    @property
    def total_read_bytes(self) -> int:
        """Bytes read, ramp included."""
        return sum(stream.total_read_bytes for stream in self.streams)

    @property
    def total_write_bytes(self) -> int:
        """Bytes written, ramp included."""
        return sum(stream.total_write_bytes for stream in self.streams)

    @property
    def total_freed_bytes(self) -> int:
        """Bytes discarded or zeroed, ramp included."""
        return sum(stream.total_bytes - stream.total_read_bytes - stream.total_write_bytes for stream in self.streams)

    def mean_latency_ns(self) -> float | None:
        """Mean over all data operations of all streams, weighted by their number."""
        pairs = [(op.requests, op.latency.mean_ns) for stream in self.streams for _, op in stream.ops()]
        requests = sum(count for count, _ in pairs)
        return sum(count * mean for count, mean in pairs) / requests if requests else None


class BlockCheck:
    """Properties and methods of `result.figures.BlockCheck`."""

    __slots__ = ()
    faults: list[figures.Fault]

    @property
    def wrong(self) -> int:
        """Blocks that are wrong."""
        return sum(fault.blocks for fault in self.faults)


class ReadBack:
    """Properties and methods of `result.figures.ReadBack`."""

    __slots__ = ()
    direct: bool

    @property
    def how(self) -> str:
        """How the page cache was avoided."""
        return "past the page cache" if self.direct else "after the page cache was dropped"


class Verification:
    """Properties and methods of `result.figures.Verification`."""

    __slots__ = ()
    during_load: figures.BlockCheck
    read_back: figures.ReadBack | None

    @property
    def found(self) -> list[figures.BlockCheck]:
        """The blocks checked during the load and those checked after it."""
        return [self.during_load, *([self.read_back.found] if self.read_back is not None else [])]

    @property
    def wrong(self) -> int:
        """Number of times a block was found wrong; a block found wrong by several reads counts several times."""
        return sum(found.wrong for found in self.found)
