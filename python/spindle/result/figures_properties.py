"""What can be asked of figures beside their fields: bases of the generated types of `result.figures`."""

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
"""All that figures are kept of."""
COMMAND = "command"
"""Engine of a load that is a program of the user's: what it did is known from the devices alone."""


class Latency:
    """Of `result.figures.Latency`."""

    __slots__ = ()
    percentiles: list[tuple[float, int]]

    def percentile(self, wanted: float) -> int | None:
        """The latency of one of the recorded percentiles, ns."""
        return next((ns for percent, ns in self.percentiles if percent == wanted), None)


class Stream:
    """Of `result.figures.Stream`."""

    __slots__ = ()

    def ops(self) -> Iterator[tuple[str, figures.Op]]:
        """The operations that were asked for, by name: on data or on names, fsyncs apart."""
        for name in (*DATA, *NAMES):
            op: figures.Op | None = getattr(self, name)
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


class Figures:
    """Of `result.figures.Figures`."""

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
        """Whether the run was ended by a person or an error."""
        return self.ended_by.__struct_config__.tag in ("stopped", "error")

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


class Checked:
    """Of `result.figures.Checked`."""

    __slots__ = ()
    faults: list[figures.Fault]

    @property
    def wrong(self) -> int:
        """Blocks that are wrong."""
        return sum(fault.blocks for fault in self.faults)


class ReadBack:
    """Of `result.figures.ReadBack`."""

    __slots__ = ()
    direct: bool

    @property
    def how(self) -> str:
        """Why it was not the page cache that answered."""
        return "past the page cache" if self.direct else "after the page cache was dropped"


class Verification:
    """Of `result.figures.Verification`."""

    __slots__ = ()
    during: figures.Checked
    read_back: figures.ReadBack | None

    @property
    def found(self) -> list[figures.Checked]:
        """During the load, and afterwards."""
        return [self.during, *([self.read_back.found] if self.read_back is not None else [])]

    @property
    def wrong(self) -> int:
        """Findings of blocks that are wrong; one found by several reads counts as often."""
        return sum(found.wrong for found in self.found)
