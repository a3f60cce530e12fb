"""Figures that another tool measured. Values missing from its file are None, never a guess.

Times are ns, sizes bytes, as everywhere; the readers in `spindle.formats` convert.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

NOT_DATA = ("fsync",)
"""Operations that move no data: in no total."""


class Source(Struct, frozen=True, kw_only=True):
    """The file that the figures come from."""

    format: str
    """Name of the reader, as in `spindle.formats.FORMATS`."""
    tool: str
    """The tool that measured: `fio`, `bonnie++` ..."""
    version: str | None
    """Its version, as the file writes it."""
    file: str
    """Name of the file."""
    sha256: str
    """SHA-256 of the file's bytes."""


class PartialLatency(Struct, frozen=True, kw_only=True):
    """The part of a latency distribution that a file contains, ns."""

    min_ns: int | None = None
    mean_ns: float | None = None
    max_ns: int | None = None
    sdev_ns: float | None = None
    percentiles: list[tuple[float, int]] = []
    """(percentile, ns)."""
    histogram: str | None = None
    """HdrHistogram V2, deflated, base64; where the file has all the counts."""

    def percentile(self, wanted: float) -> int | None:
        """The latency of one of the recorded percentiles, ns."""
        return next((ns for percent, ns in self.percentiles if percent == wanted), None)


class PartialOp(Struct, frozen=True, kw_only=True):
    """The part of one operation's figures that a file contains."""

    requests: int | None = None
    bytes: int | None = None
    iops: float | None = None
    """Operations a second; of small files: files a second."""
    bytes_per_s: float | None = None
    latency: PartialLatency | None = None
    """Issue to completion."""
    submission: PartialLatency | None = None
    """fio's slat: time in the call that submits."""
    completion: PartialLatency | None = None
    """fio's clat: from submission to completion."""

    @property
    def timed(self) -> PartialLatency | None:
        """Issue to completion; with the percentiles of clat where the file has only those, as fio's has."""
        whole, part = self.latency, self.completion
        if whole is None or part is None or whole.percentiles:
            return whole or part
        return PartialLatency(
            min_ns=whole.min_ns,
            mean_ns=whole.mean_ns,
            max_ns=whole.max_ns,
            sdev_ns=whole.sdev_ns,
            percentiles=part.percentiles,
            histogram=part.histogram,
        )


class Moment(Struct, frozen=True, kw_only=True):
    """One interval of a series."""

    at: str | None = None
    """Time of its end, as in the file."""
    seconds: float | None = None
    """Length of the interval."""
    values: dict[str, float]


class PartialStream(Struct, frozen=True, kw_only=True):
    """One load: a job of fio, a phase of bonnie++, a cell of iozone's matrix."""

    name: str
    """Unique in its record."""
    group: int = 0
    """Streams of the same group ran at the same time, so that their rates add up. Groups ran one after another, or
    the order is unknown.
    """
    seconds: float | None = None
    """Its duration."""
    operations: dict[str, PartialOp]
    """`read`, `write`, `trim`, `fsync`, and what else tools do: `rewrite`, `seek`, `create`, `stat`, `delete`."""
    settings: dict[str, str] = {}
    """The request, in the tool's own words."""
    extra: dict[str, float] = {}
    """Figures without a field here, under the tool's names and in its units: CPU shares."""
    series: list[Moment] = []
    """Values by interval, if the file has them, named like metrics (`read.iops`)."""

    def data_ops(self) -> Iterator[tuple[str, PartialOp]]:
        """The operations that move data, by name."""
        yield from ((name, op) for name, op in self.operations.items() if name not in NOT_DATA)


class DeviceSeries(Struct, frozen=True, kw_only=True):
    """One block device by interval: iostat, sar."""

    name: str
    moments: list[Moment]
    """Values are the columns of `iostat -xm`, with its names and units: MiB/s, ms, KiB, %."""
    mean: dict[str, float]
    """Mean over the intervals: latencies weighted by requests, the others by time."""


def together(streams: list[PartialStream]) -> bool:
    """True if the rates of all streams may be added up."""
    return bool(streams) and all(stream.group == streams[0].group for stream in streams)
