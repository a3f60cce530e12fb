"""Runs a workload on a machine, and on the same machine at both ends of each uncertain number.

Each number is varied alone. The effects are combined as ratios: the lower end of a band is the figure times the least
ratio of each number, as if all of them were off in the same direction at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from spindle import _core
from spindle.prediction.model import Band, Cause, OperationFigures
from spindle.result.figures import Op
from spindle.run.resolve import ResolvedWorkload
from spindle.run.simulate import SimulatedRun, read_figures
from spindle.run.watch import Watch

SEEDS = 2
"""Further draws of the same requests."""
REQUESTS = Cause(part="workload", key="requests drawn", least="", value="seed", most="", iops=0, mean=0)
"""Chance: other random requests of the same workload."""

Key = tuple[str | None, str, str]
"""Phase, stream and operation."""


@dataclass(frozen=True)
class Figures:
    """The figures of one operation in one run."""

    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: float


MEASURES = ("iops", "bytes_per_s", "mean_ns", "p99_ns")
Outcome = dict[Key, Figures]


@dataclass(frozen=True)
class Drives:
    """Work of all drives in a run, phases together."""

    reads: int
    read_bytes: int
    requests: float
    """For each request of the load."""


@dataclass(frozen=True)
class Variant:
    """A cause at one of its ends."""

    cause: Cause
    machine: _core.Machine
    resolved: ResolvedWorkload


@dataclass(frozen=True)
class BandedFigures:
    """The figures with their bands, and the causes by the size of their effect."""

    operations: list[OperationFigures]
    causes: list[Cause]
    drives: Drives
    measured_s: float


def predict(text: str, source: str, resolved: ResolvedWorkload, watch: Watch) -> BandedFigures:
    """Predict a workload on a machine file's text; `source` names it in messages. Raises `_core.ConfigError`."""
    machine = _core.Machine.parse(text, source)
    variants = [*_ends(machine, text, source, resolved), *_draws(machine, resolved)]
    loads = [(machine, resolved), *((of.machine, of.resolved) for of in variants)]
    outcomes = _outcomes(loads, watch)
    (middle, runs), others = outcomes[0], [outcome for outcome, _ in outcomes[1:]]
    by_cause: dict[tuple[str, str], list[Outcome]] = {}
    causes: dict[tuple[str, str], Cause] = {}
    for of, outcome in zip(variants, others, strict=True):
        name = (of.cause.part, of.cause.key)
        causes[name] = of.cause
        by_cause.setdefault(name, []).append(outcome)
    operations = [_operation(key, figures, list(by_cause.values())) for key, figures in middle.items()]
    sized = [_sized(cause, middle, by_cause[name]) for name, cause in causes.items()]
    causes_by_size = sorted(sized, key=lambda cause: -cause.largest)
    return BandedFigures(operations, causes_by_size, _drives(runs), sum(run.run.measured_s for run in runs))


def _ends(machine: _core.Machine, text: str, source: str, resolved: ResolvedWorkload) -> Iterator[Variant]:
    """Both ends of each uncertain number of the machine."""
    for part, key, least, value, most in machine.ranges():
        cause = Cause(part=part, key=key, least=least, value=value, most=most, iops=0, mean=0)
        for end in (least, most):
            if end != value:
                yield Variant(cause, _core.Machine.parse(text, source, [(part, key, end)]), resolved)


def _draws(machine: _core.Machine, resolved: ResolvedWorkload) -> Iterator[Variant]:
    """The workload with other seeds."""
    for number in range(1, SEEDS + 1):
        yield Variant(REQUESTS, machine, resolved.with_overrides([("seed", str(resolved.spec.seed + number))]))


def _outcomes(
    loads: Sequence[tuple[_core.Machine, ResolvedWorkload]], watch: Watch
) -> list[tuple[Outcome, list[SimulatedRun]]]:
    """The figures of each load and its runs, one for each phase; several loads at a time."""
    found: list[tuple[Outcome, list[SimulatedRun]]] = []
    at_once = max(1, os.cpu_count() or 1)
    for first in range(0, len(loads), at_once):
        watch.step(f"simulating {first} of {len(loads)} runs")
        some = loads[first : first + at_once]
        parts = [_parts(resolved) for _, resolved in some]
        runs = [(machine, load.core) for (machine, _), of in zip(some, parts, strict=True) for _, load in of]
        texts = iter(_core.simulate_many(runs))
        for of in parts:
            simulated = [(name, read_figures(next(texts))) for name, _ in of]
            outcome = {key: figures for name, run in simulated for key, figures in _figures(name, run)}
            found.append((outcome, [run for _, run in simulated]))
    return found


def _drives(runs: Sequence[SimulatedRun]) -> Drives:
    drives = [drive for run in runs for drive in run.drives]
    requests = sum(drive.reads + drive.writes for drive in drives)
    return Drives(
        reads=sum(drive.reads for drive in drives),
        read_bytes=sum(drive.read_bytes for drive in drives),
        requests=requests / max(1, sum(run.run.requests for run in runs)),
    )


def _parts(resolved: ResolvedWorkload) -> list[tuple[str | None, ResolvedWorkload]]:
    """The loads that run one after another, with the names of their phases."""
    names = [phase.load.name for phase in resolved.spec.phases]
    return list(zip(names, resolved.phases, strict=True)) if names else [(None, resolved)]


def _figures(phase: str | None, run: SimulatedRun) -> Iterator[tuple[Key, Figures]]:
    for stream in run.run.streams:
        operations = [*stream.ops(), *([("fsync", stream.fsync)] if stream.fsync is not None else [])]
        for name, op in operations:
            if op.requests:
                yield (phase, stream.name, name), _of(op)


def _of(op: Op) -> Figures:
    p99 = op.latency.percentile(99)
    return Figures(op.iops, op.bytes_per_s, op.latency.mean_ns, float(p99 if p99 is not None else op.latency.max_ns))


def _operation(key: Key, figures: Figures, by_cause: Sequence[Sequence[Outcome]]) -> OperationFigures:
    phase, stream, operation = key

    def band(measure: str) -> Band:
        value = getattr(figures, measure)
        least = most = 1.0
        for outcomes in by_cause:
            ratios = [1.0, *_ratios(key, measure, value, outcomes)]
            least, most = least * min(ratios), most * max(ratios)
        return Band(value=value, least=value * least, most=value * most)

    return OperationFigures(
        phase=phase, stream=stream, operation=operation, **{measure: band(measure) for measure in MEASURES}
    )


def _sized(cause: Cause, middle: Outcome, outcomes: Sequence[Outcome]) -> Cause:
    """The cause with the size of its effect."""

    def largest(measure: str) -> float:
        ratios = [[1.0, *_ratios(key, measure, getattr(figures, measure), outcomes)] for key, figures in middle.items()]
        return max((max(of) - min(of) for of in ratios), default=0.0)

    return replace(cause, iops=largest("iops"), mean=largest("mean_ns"))


def _ratios(key: Key, measure: str, value: float, outcomes: Sequence[Outcome]) -> list[float]:
    """A figure in each outcome over its value in the middle."""
    return [getattr(outcome[key], measure) / value for outcome in outcomes if key in outcome and value]
