"""Searches: many runs of one workload on one open target, and what they find together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spindle import _core
from spindle.result.record import CurveRecord, KneeRecord, TargetRecord, Tool
from spindle.run import curve, knee, latency_search
from spindle.run.bench import Bench
from spindle.run.errors import Usage
from spindle.run.making import Making
from spindle.run.resolve import Overrides, Resolved

BATCHES = 10
"""Intervals of a run from which it is told how much latencies vary in time."""
SHORTEST_NS = 50_000_000
RAMP = 10
"""The first tenth of a run, on top of it, settles the load and is not counted."""


@dataclass(frozen=True)
class FindKnee:
    """Where more concurrency stops to pay."""

    option = "find_knee"

    @property
    def step_seconds(self) -> float:
        """Length of a run unless another one is asked for."""
        return knee.STEP_SECONDS

    def carry_out(self, opened: Bench, resolved: Resolved) -> KneeRecord:
        """Raises Usage."""
        run_id, started = opened.identity(resolved, repr(self))
        swept = knee.sweep(opened, resolved)
        return KneeRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            sweep=swept.knee,
            runs=swept.runs,
            verdicts=knee.verdicts(swept.knee, swept.stopped),
        )


@dataclass(frozen=True)
class FindTarget:
    """The highest throughput within bounds on latency."""

    wanted: latency_search.LatencySearch
    option = "latency_target"

    @property
    def step_seconds(self) -> float:
        """Length of a run unless another one is asked for."""
        return self.wanted.step_seconds

    def carry_out(self, opened: Bench, resolved: Resolved) -> TargetRecord:
        """Raises Usage."""
        run_id, started = opened.identity(resolved, repr(self))
        found = latency_search.search(opened, _with_ramp(resolved), self.wanted)
        return TargetRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=resolved.spec,
            target=opened.target(resolved.spec),
            search=found.search,
            runs=found.runs,
            verdicts=latency_search.verdicts(found.search),
        )


@dataclass(frozen=True)
class DrawCurve:
    """Latency over throughput in open loop."""

    rates: tuple[float, ...] = ()
    """Requests a second; none: shares of what a closed loop reaches."""
    spacing: str | None = None
    """Of the requests: `constant` or `poisson`; None: as the workload has it."""
    option = "curve"

    @property
    def step_seconds(self) -> float:
        """Length of a run unless another one is asked for."""
        return curve.STEP_SECONDS

    def carry_out(self, opened: Bench, resolved: Resolved) -> CurveRecord:
        """Raises Usage."""
        run_id, started = opened.identity(resolved, repr(self))
        found = curve.curve(opened, _with_ramp(resolved), self.rates, spacing=self.spacing)
        return CurveRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=resolved.spec,
            target=opened.target(resolved.spec),
            curve=found.curve,
            runs=found.runs,
            verdicts=curve.verdicts(found.curve, found.stopped),
        )


Search = FindKnee | FindTarget | DrawCurve


def refuse(search: Search, resolved: Resolved) -> None:
    """What is not one load of a given length cannot be searched. Raises Usage."""
    if resolved.spec.phases:
        raise Usage(f"`{search.option}=`: {resolved.name} is made of phases; give a workload of one load")
    if resolved.spec.end.steady and not isinstance(search, FindKnee):
        raise Usage(f"`{search.option}=`: every run of a search is as long as the others; leave `until_steady=` out")


def with_length(search: Search, resolved: Resolved, given: Overrides) -> Resolved:
    """Runs as long as the search has them, unless someone said how long."""
    if any(name.rpartition(".")[2] == "seconds" for name, _ in given):
        return resolved
    return resolved.with_overrides([("seconds", f"{search.step_seconds:g}")])


def with_intervals(search: Search, resolved: Resolved, making: Making) -> Making:
    """Intervals short enough that a run has several of them."""
    if resolved.spec.end.time_ns is None:
        return making
    short = max(SHORTEST_NS, resolved.spec.end.time_ns // BATCHES)
    return replace(making, interval_ns=min(making.interval_ns, short))


def _with_ramp(resolved: Resolved) -> Resolved:
    spec = resolved.spec
    if spec.ramp_ns or not spec.end.time_ns:
        return resolved
    return resolved.with_overrides([("ramp", f"{spec.end.time_ns / RAMP / 1e9:g}s")])
