"""A published figure, and how the model computes it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from spindle.run.simulate import SimulatedRun
from spindle.validation.published.assumed import Assumed


class Quantity(Enum):
    """The kinds of figures; each has a goal of its own."""

    RATE = "rate"
    """Requests or bytes a second, or their ratio to another machine's."""
    READ_LATENCY = "read latency"
    WRITE_LATENCY = "write latency"


class Run(Struct, frozen=True):
    """A machine file and a workload file."""

    machine: str
    workload: str
    assumed: tuple[Assumed, ...] = ()
    """Numbers of both files that no source states."""


class Prediction(Struct, frozen=True, kw_only=True):
    """One figure of one row of a table."""

    table: str
    row: str
    """The row for people: `md10fs 48 threads 512 B`."""
    figure: str
    """Column or metric: `iops`, `r_avg_ms`."""
    unit: str
    quantity: Quantity
    published: float
    runs: tuple[Run, ...]
    value: Callable[..., float]
    """The figure, of one `SimulatedRun` for each of `runs`."""


def iops(run: SimulatedRun) -> float:
    """Requests per second."""
    return run.run.iops


def megabytes_per_s(run: SimulatedRun) -> float:
    """Bytes from the first request to the end of the last sync, 10^6 a second."""
    return _bytes(run) / run.run.elapsed_ns * 1e3


def sdd_megabytes_per_s(run: SimulatedRun) -> float:
    """The same in thousands of the kBytes of sdd, which have 1024 bytes (`prstats` in sdd/sdd.c of the schilytools)."""
    return kibibytes_per_s(run) / 1000


def kibibytes_per_s(run: SimulatedRun) -> float:
    """The same in KiB a second."""
    return _bytes(run) / 1024 / run.run.elapsed_ns * 1e9


def _bytes(run: SimulatedRun) -> int:
    return sum(stream.total_bytes for stream in run.run.streams)


def read_ms(run: SimulatedRun) -> float:
    """Mean latency of reads, ms."""
    read = run.run.streams[0].read
    return read.latency.mean_ns / 1e6 if read is not None else 0.0


def write_ms(run: SimulatedRun) -> float:
    """Mean latency of writes, ms; an fsync counts as a part of its write, as in randomio."""
    stream = run.run.streams[0]
    write, fsync = stream.write, stream.fsync
    if write is None or not write.requests:
        return 0.0
    syncs_ns = fsync.latency.mean_ns * fsync.requests if fsync is not None else 0.0
    return (write.latency.mean_ns + syncs_ns / write.requests) / 1e6


def ratio(run: SimulatedRun, one: SimulatedRun) -> float:
    """The rate as a multiple of another machine's."""
    return megabytes_per_s(run) / megabytes_per_s(one)
