"""Properties and methods of a workload: bases of the generated types of `result.workload`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from spindle.result.workload import WorkloadStream as _Stream


class Mix:
    """Properties and methods of `result.workload.Mix`."""

    __slots__ = ()
    write: float
    trim: float
    zero: float
    rewrite: float

    @property
    def changes(self) -> float:
        """Share of requests that change data on the target."""
        return self.write + self.trim + self.zero + self.rewrite

    @property
    def of_calls(self) -> float:
        """Share of writes among all calls: a rewrite is a read and a write."""
        return (self.write + self.rewrite) / (1 + self.rewrite)


class Tree:
    """Properties and methods of `result.workload.Tree`."""

    __slots__ = ()
    size: Any

    @property
    def largest_file(self) -> int:
        """Size of the largest file, bytes."""
        match self.size:
            case None:
                return 0
            case object(choices=choices):
                return int(max(size for size, _ in choices))
            case object(max=size) | object(bytes=size):
                return int(size)
        raise TypeError(self.size)


class Names:
    """Properties and methods of `result.workload.Names`."""

    __slots__ = ()
    operation: str

    @property
    def on_directories(self) -> bool:
        """True if the names are those of directories."""
        return self.operation in ("mkdir", "rmdir", "readdir")

    @property
    def changes(self) -> bool:
        """True if the operation changes anything."""
        return self.operation not in ("open", "stat", "readdir")


class WorkloadStream:
    """Properties and methods of `result.workload.WorkloadStream`."""

    __slots__ = ()
    mix: Any
    names: Any
    arrival: Any
    rate_limit: Any
    think: Any
    workers: int
    depth: int

    @property
    def outstanding(self) -> int:
        """Intended number of requests in flight (closed loop)."""
        return self.workers * self.depth

    @property
    def paced(self) -> bool:
        """True if the workload, not the target, limits its rate."""
        open_loop = hasattr(self.arrival, "rate_iops")
        return open_loop or self.rate_limit is not None or self.think is not None

    @property
    def only_data(self) -> bool:
        """True if it only reads and writes: no names, no discards, no zeroing."""
        return self.names is None and not self.mix.trim and not self.mix.zero

    @property
    def writes(self) -> bool:
        """True if it changes anything on the target."""
        return bool(self.names.changes if self.names is not None else self.mix.changes > 0)

    @property
    def reads(self) -> bool:
        """True if it reads."""
        if self.names is not None:
            return not self.names.changes
        return bool(self.mix.write + self.mix.trim + self.mix.zero < 1)


class Workload:
    """Properties and methods of `result.workload.Workload`."""

    __slots__ = ()
    streams: Any
    phases: Any
    filesets: Any

    @property
    def loads(self) -> list[Self]:
        """The loads that run one after another: the phases' loads, or the workload itself."""
        return [phase.load for phase in self.phases] or [self]

    @property
    def all_streams(self) -> list[_Stream]:
        """Streams of all loads, in order."""
        return [stream for load in self.loads for stream in load.streams]

    @property
    def works_on_names(self) -> bool:
        """True if any stream of any phase works on names."""
        return any(stream.names is not None for stream in self.all_streams)

    @property
    def makes_files(self) -> bool:
        """True if it works in a folder with files of its own, or on their names."""
        return bool(self.filesets) or self.works_on_names

    @property
    def writes(self) -> bool:
        """True if any stream changes data on the target."""
        return any(stream.writes for stream in self.all_streams)

    @property
    def outstanding(self) -> int:
        """Intended number of requests in flight (closed loops)."""
        return max(sum(int(stream.outstanding) for stream in load.streams) for load in self.loads)

    @property
    def paced(self) -> bool:
        """True if the workload limits the rate of every stream."""
        return all(stream.paced for stream in self.all_streams)


def stream_name(text: str) -> str:
    """Stream name for another tool's job: up to 28 letters, digits, - and _."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
    # The number of a clone is at the end.
    return (name if len(name) <= 28 else f"{name[:20]}-{name[-7:]}") or "job"
