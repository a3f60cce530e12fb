"""A prediction: figures with their bands, the causes of the bands, and what the model leaves out."""

from __future__ import annotations

from msgspec import Struct


class Band(Struct, frozen=True, kw_only=True):
    """A predicted figure, and the least and most that it may be."""

    value: float
    least: float
    most: float

    @property
    def width(self) -> float:
        """Distance of its ends, as a share of the value; 0: there is no band."""
        return (self.most - self.least) / self.value if self.value else 0.0


class OperationFigures(Struct, frozen=True, kw_only=True):
    """The figures of one operation of one stream."""

    phase: str | None
    """Name of the phase; None: the workload has none."""
    stream: str
    operation: str
    """`read`, `write` ... or `fsync`."""
    iops: Band
    bytes_per_s: Band
    mean_ns: Band
    """Mean latency, ns."""
    p99_ns: Band
    """99th percentile of the latency, ns."""

    @property
    def label(self) -> str:
        """Its name in a table."""
        return " ".join(part for part in (self.phase, self.stream, self.operation) if part)


class Cause(Struct, frozen=True, kw_only=True):
    """An uncertain number, and how far the figures follow it."""

    part: str
    """Model of a drive or controller, `server` for a service time, or `workload`."""
    key: str
    least: str
    value: str
    """The number that the model takes."""
    most: str
    iops: float
    """Largest change of the IOPS of any operation between both ends, as a share."""
    mean: float
    """The same of a mean latency."""

    @property
    def largest(self) -> float:
        """Largest change of these."""
        return max(self.iops, self.mean)


class Prediction(Struct, frozen=True, kw_only=True):
    """The figures that a machine should deliver."""

    workload: str
    target: str
    machine: str
    """The machine file (TOML)."""
    source: str
    """Where the machine file comes from, for people."""
    operations: list[OperationFigures]
    causes: list[Cause]
    """The uncertain numbers, the one with the largest effect first."""
    limits: list[str]
    """Parts that the model or the band leaves out."""
    device_reads: int
    """Reads of all drives in the whole run."""
    device_read_bytes: int
    requests_of_devices: float
    """Requests of all drives for each request of the load."""
    queue_depth: int
    """Commands that the drives together take."""
    has_write_cache: bool
    measured_s: float
    """Simulated time of each run, s; with phases that of all."""

    @property
    def read_size(self) -> float | None:
        """Mean size of a drive's reads, bytes; None: there are none."""
        return self.device_read_bytes / self.device_reads if self.device_reads else None
