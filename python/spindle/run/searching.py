"""Searches: many runs of one workload on one open target, with a common result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from spindle import _core
from spindle.result.record import CurveRecord, KneeRecord, Record, TargetRecord, Tool, Verdict
from spindle.run import curve, knee, latency_search
from spindle.run.engine import EngineOptions
from spindle.run.errors import Usage
from spindle.run.resolve import Overrides, ResolvedWorkload
from spindle.run.runner import LoadRunner

BATCHES = 10
"""Intervals of a run for estimating how latencies vary over time."""
SHORTEST_NS = 50_000_000
RAMP = 10
"""A tenth of a run is added before it as a ramp and not counted."""


@dataclass(frozen=True)
class FindKnee:
    """The knee sweep."""

    option = "find_knee"

    @property
    def step_seconds(self) -> float:
        """Default length of a run."""
        return knee.STEP_SECONDS

    def carry_out(self, opened: LoadRunner, resolved: ResolvedWorkload) -> KneeRecord:
        """Search. Raises Usage."""
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
    """The latency search."""

    wanted: latency_search.LatencySearch
    option = "latency_target"

    @property
    def step_seconds(self) -> float:
        """Default length of a run."""
        return self.wanted.step_seconds

    def carry_out(self, opened: LoadRunner, resolved: ResolvedWorkload) -> TargetRecord:
        """Search. Raises Usage."""
        run_id, started = opened.identity(resolved, repr(self))
        found = latency_search.search(opened, with_ramp(resolved), self.wanted)
        return target_record(opened, resolved, (run_id, started), found, latency_search.verdicts(found.search))


def target_record(
    opened: LoadRunner,
    resolved: ResolvedWorkload,
    identity: tuple[str, str],
    found: latency_search.SearchResult,
    verdicts: list[Verdict],
) -> TargetRecord:
    """The record of a search along one axis; `identity`: its id and start."""
    run_id, started = identity
    return TargetRecord(
        id=run_id,
        started=started,
        tool=Tool(version=_core.__version__),
        workload=resolved.spec,
        request=resolved.request,
        target=opened.target(resolved.spec),
        search=found.search,
        runs=found.runs,
        verdicts=verdicts,
    )


@dataclass(frozen=True)
class DrawCurve:
    """The open-loop curve."""

    rates: tuple[float, ...] = ()
    """Requests a second; empty: shares of the closed loop's rate."""
    spacing: str | None = None
    """Spacing of the requests: `constant` or `poisson`; None: the workload's."""
    option = "curve"

    @property
    def step_seconds(self) -> float:
        """Default length of a run."""
        return curve.STEP_SECONDS

    def carry_out(self, opened: LoadRunner, resolved: ResolvedWorkload) -> CurveRecord:
        """Draw the curve. Raises Usage."""
        run_id, started = opened.identity(resolved, repr(self))
        found = curve.curve(opened, with_ramp(resolved), self.rates, spacing=self.spacing)
        return CurveRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=resolved.spec,
            request=resolved.request,
            target=opened.target(resolved.spec),
            curve=found.curve,
            runs=found.runs,
            verdicts=curve.verdicts(found.curve, found.stopped),
        )


class Search(Protocol):
    """A search that `run.order` carries out."""

    @property
    def option(self) -> str:
        """The key that asks for it."""

    @property
    def step_seconds(self) -> float:
        """Default length of a run."""

    def carry_out(self, opened: LoadRunner, resolved: ResolvedWorkload) -> Record:
        """Search. Raises Usage."""


def refuse(search: Search, resolved: ResolvedWorkload) -> None:
    """Raise Usage unless the workload is one load that ends by time."""
    if resolved.spec.phases:
        raise Usage(f"`{search.option}=`: {resolved.name} is made of phases; give a workload of one load")
    if resolved.spec.end.steady and not isinstance(search, FindKnee):
        raise Usage(f"`{search.option}=`: every run of a search is as long as the others; leave `until_steady=` out")


def with_length(search: Search, resolved: ResolvedWorkload, given: Overrides) -> ResolvedWorkload:
    """The workload with the search's length of a run, unless a length was given."""
    if any(name.rpartition(".")[2] == "seconds" for name, _ in given):
        return resolved
    return resolved.with_overrides([("seconds", f"{search.step_seconds:g}")])


def with_intervals(search: Search, resolved: ResolvedWorkload, engine_options: EngineOptions) -> EngineOptions:
    """Options with intervals so short that a run has several."""
    if resolved.spec.end.time_ns is None:
        return engine_options
    short = max(SHORTEST_NS, resolved.spec.end.time_ns // BATCHES)
    return replace(engine_options, interval_ns=min(engine_options.interval_ns, short))


def with_ramp(resolved: ResolvedWorkload) -> ResolvedWorkload:
    """The workload with a ramp of a tenth of its length, unless it has one."""
    spec = resolved.spec
    if spec.ramp_ns or not spec.end.time_ns:
        return resolved
    return resolved.with_overrides([("ramp", f"{spec.end.time_ns / RAMP / 1e9:g}s")])
