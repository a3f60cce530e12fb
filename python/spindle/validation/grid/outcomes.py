"""A point of the grid, run both ways."""

from __future__ import annotations

import csv
import time
from collections import Counter
from typing import Protocol

from msgspec import Struct

from spindle import _core
from spindle.formats import agent
from spindle.lab import load
from spindle.lab.assembly import setup_of
from spindle.result.figures import Figures
from spindle.result.record import RunRecord
from spindle.run.resolve import resolve_text
from spindle.run.simulate import SimulatedRun, read_figures

_KINDS = {"R": "reads", "W": "writes", "F": "flushes"}


class GridPoint(Protocol):
    """A machine and a load."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def cells(self) -> dict[str, str]:
        """The point as a row of a table."""

    @property
    def factors(self) -> dict[str, str]:
        """The values by which the grid is summed up."""

    def machine_text(self) -> str:
        """The machine file."""

    def workload_text(self) -> str:
        """The workload file."""


class Operation(Struct, frozen=True):
    """Latencies of the reads or the writes of a load."""

    requests: int
    mean_ns: float
    p99_ns: int


class Outcome(Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    iops: float
    bytes_per_s: float
    mean_ns: float
    operations: dict[str, Operation]
    """`read`, `write`."""
    at_drives: dict[str, int]
    """`reads`, `writes` and `flushes` that reached the drives."""
    cpu_s: float


class PointOutcomes(Struct, frozen=True):
    """A point and its figures."""

    point: GridPoint
    fast: Outcome
    exact: Outcome


def measured(point: GridPoint) -> PointOutcomes:
    """Run a point both ways. Raises LabMissing or LabError."""
    return PointOutcomes(point, simulated(point), under_the_kernel(point))


def simulated(point: GridPoint) -> Outcome:
    """Run it in the simulator."""
    machine = _core.Machine.parse(point.machine_text(), point.name)
    workload = _core.Workload.parse(point.workload_text(), point.name, "grid")
    before = time.process_time()
    [figures] = _core.simulate_many([(machine, workload)], threads=1)
    cpu_s = time.process_time() - before
    found = read_figures(figures)
    return _outcome(found.run, _counters(found), cpu_s)


def under_the_kernel(point: GridPoint) -> Outcome:
    """Run it in the lab."""
    machine = _core.Machine.parse(point.machine_text(), point.name)
    resolved = resolve_text(point.workload_text(), point.name, "grid")
    task = load.Task(machine, setup_of(machine), "grid", resolved.text, (), is_traced=True)
    done = load.carry_out(task)
    record = agent.read(done.document, "the lab's result", preflight={})
    assert isinstance(record, RunRecord)
    assert done.trace is not None
    return _outcome(record.figures, _counted(done.trace), done.cpu_s)


def _outcome(figures: Figures, at_drives: dict[str, int], cpu_s: float) -> Outcome:
    [stream] = figures.streams
    operations = {}
    for name, of in stream.ops():
        p99_ns = of.latency.percentile(99)
        assert p99_ns is not None
        operations[name] = Operation(of.requests, of.latency.mean_ns, p99_ns)
    mean_ns = figures.mean_latency_ns()
    assert mean_ns is not None
    return Outcome(
        iops=figures.iops,
        bytes_per_s=figures.bytes_per_s,
        mean_ns=mean_ns,
        operations=operations,
        at_drives=at_drives,
        cpu_s=cpu_s,
    )


def _counters(found: SimulatedRun) -> dict[str, int]:
    return {kind: sum(getattr(drive, kind) for drive in found.drives) for kind in _KINDS.values()}


def _counted(trace: str) -> dict[str, int]:
    """Requests of a trace of the lab, of the time before the load too."""
    found = Counter(line["operation"] for line in csv.DictReader(trace.splitlines()))
    return {kind: found[letter] for letter, kind in _KINDS.items()}
