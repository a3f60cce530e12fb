"""The hosts of a run side by side: their figures, all of them together, and hosts that are slower than their peers.

A host is slow in a figure if it is worse than the median of all hosts by more than 3.5 robust standard deviations
(median absolute deviation; Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993) and by at least 5 %. The
deviation is taken as at least 1 % of the median, so that equal hosts do not make a hair's breadth count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from spindle import _core
from spindle.result.figures import Op
from spindle.result.record import PhasesRecord, RunRecord
from spindle.run.errors import Usage
from spindle.stats.metric import values
from spindle.store import Campaign, Store, Trial

KIND = "fleet"
"""`kind` in the detail of a fleet's campaign."""
FACTOR = "host"
"""Its only factor."""
FEWEST = 5
"""Hosts without which no slow one is named: of four, the median is no better known than the slow one."""
FAR = 3.5
"""Robust standard deviations."""
SCALE = 1.4826
"""Standard deviation of a normal distribution in median absolute deviations."""
LEAST = 0.05
"""Share of the median that matters."""
FLOOR = 0.01
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
FIGURES = {"iops": False, "read.mean_ns": True, "read.p99_ns": True, "write.mean_ns": True, "write.p99_ns": True}
"""Figures in which hosts are compared (`spindle metrics`): True if a larger one is worse."""


class SlowFigure(Struct, frozen=True, kw_only=True):
    """A figure in which a host is worse than its peers."""

    metric: str
    value: float
    median: float
    """The median of all hosts."""
    deviations: float
    """Distance from the median, robust standard deviations."""


class FleetHost(Struct, frozen=True, kw_only=True):
    """One host in one phase."""

    name: str
    run_id: str
    values: dict[str, float]
    """Metrics by name, as in `spindle metrics`."""
    iops_of_median: float
    """Its rate as a share of the median host's."""
    slow: list[SlowFigure]
    skew_ns: int | None
    """Its start less the common start."""
    clock_error_ns: int | None
    """The largest error of `skew_ns`."""


class MergedOp(Struct, frozen=True, kw_only=True):
    """One operation on all hosts together."""

    requests: int
    bytes: int
    iops: float
    """Sum of the hosts' rates."""
    bytes_per_s: float
    mean_ns: float
    min_ns: int
    max_ns: int
    percentiles: list[tuple[float, int]]
    """(percentile, ns) of the merged histogram; percentiles are never averaged."""
    histogram: str
    """The sum of the hosts' histograms (`HISTF...`)."""


class FleetPhase(Struct, frozen=True, kw_only=True):
    """One load on all hosts."""

    name: str
    hosts: list[FleetHost]
    merged: dict[str, MergedOp]
    """By operation."""


class MissingHost(Struct, frozen=True, kw_only=True):
    """A host without a valid result."""

    name: str
    state: str
    reason: str
    run_id: str | None


class FleetComparison(Struct, frozen=True, kw_only=True):
    """A run on many hosts."""

    name: str
    created: str
    workload: str
    phases: list[FleetPhase]
    missing: list[MissingHost]

    @property
    def slow(self) -> list[str]:
        """Names of hosts that are slow in any figure of any phase."""
        return list(dict.fromkeys(host.name for phase in self.phases for host in phase.hosts if host.slow))


def compared(campaign: Campaign, store: Store) -> FleetComparison:
    """Compare the hosts of a fleet's campaign. Raises Usage for another campaign."""
    if campaign.detail.get("kind") != KIND:
        raise Usage(f"campaign {campaign.name}: not a run of a fleet; `spindle campaign show` shows it")
    trials = store.campaigns.trials(campaign.name)
    noted: Mapping[str, Any] = campaign.detail.get("hosts", {})
    found: dict[str, list[tuple[str, str, RunRecord, int]]] = {}
    for trial in trials:
        if trial.state != "done" or trial.run_id is None:
            continue
        record = store.record(trial.run_id)
        assert isinstance(record, RunRecord | PhasesRecord)
        runs = record.runs if isinstance(record, PhasesRecord) else [record]
        for place, run in enumerate(runs):
            found.setdefault(run.workload.name, []).append((trial.cell[FACTOR], trial.run_id, run, place))
    return FleetComparison(
        name=campaign.name,
        created=campaign.created,
        workload=str(campaign.detail.get("workload", "")),
        phases=[_phase(name, runs, noted) for name, runs in found.items()],
        missing=[_missing(trial, noted) for trial in trials if trial.state != "done"],
    )


def _missing(trial: Trial, noted: Mapping[str, Any]) -> MissingHost:
    name = trial.cell[FACTOR]
    known = noted.get(name, {})
    reason = trial.reason or str(known.get("reason", ""))
    return MissingHost(name=name, state=trial.state, reason=reason or "not begun", run_id=trial.run_id)


def _phase(name: str, runs: Sequence[tuple[str, str, RunRecord, int]], noted: Mapping[str, Any]) -> FleetPhase:
    measured = {host: values(run) for host, _, run, _ in runs}
    middle = {
        metric: median(known)
        for metric in FIGURES
        if len(known := [found[metric] for found in measured.values() if metric in found]) == len(runs)
    }
    return FleetPhase(
        name=name,
        hosts=[
            FleetHost(
                name=host,
                run_id=run_id,
                values=measured[host],
                iops_of_median=measured[host].get("iops", 0.0) / middle["iops"] if middle.get("iops") else 0.0,
                slow=_slow(host, measured, middle),
                skew_ns=_at(noted.get(host, {}).get("skews_ns", []), place),
                clock_error_ns=noted.get(host, {}).get("clock_error_ns"),
            )
            for host, run_id, _, place in runs
        ],
        merged=merged([run for _, _, run, _ in runs]),
    )


def _at(skews: Sequence[int], place: int) -> int | None:
    return skews[place] if place < len(skews) else None


def _slow(host: str, measured: Mapping[str, Mapping[str, float]], middle: Mapping[str, float]) -> list[SlowFigure]:
    if len(measured) < FEWEST:
        return []
    found = []
    for metric, centre in middle.items():
        away = [abs(known[metric] - centre) for known in measured.values()]
        scale = max(SCALE * median(away), FLOOR * centre)
        worse = (measured[host][metric] - centre) * (1 if FIGURES[metric] else -1)
        if scale > 0 and worse > FAR * scale and worse >= LEAST * centre:
            value = measured[host][metric]
            found.append(SlowFigure(metric=metric, value=value, median=centre, deviations=worse / scale))
    return found


def merged(runs: Sequence[RunRecord]) -> dict[str, MergedOp]:
    """All streams of all runs together, by operation."""
    parts: dict[str, list[Op]] = {}
    for run in runs:
        for stream in run.figures.streams:
            for name, op in (*stream.ops(), *((("fsync", stream.fsync),) if stream.fsync is not None else ())):
                parts.setdefault(name, []).append(op)
    return {name: _merged(ops) for name, ops in parts.items()}


def _merged(ops: Sequence[Op]) -> MergedOp:
    counts: Counter[int] = Counter()
    for op in ops:
        counts.update(dict(_core.histogram_counts(op.latency.histogram)))
    histogram = _core.histogram_of(sorted(counts.items()))
    requests = sum(op.requests for op in ops)
    return MergedOp(
        requests=requests,
        bytes=sum(op.bytes for op in ops),
        iops=sum(op.iops for op in ops),
        bytes_per_s=sum(op.bytes_per_s for op in ops),
        mean_ns=sum(op.latency.mean_ns * op.requests for op in ops) / requests if requests else 0.0,
        min_ns=min(op.latency.min_ns for op in ops),
        max_ns=max(op.latency.max_ns for op in ops),
        percentiles=list(zip(PERCENTILES, _core.histogram_percentiles([histogram], PERCENTILES), strict=True)),
        histogram=histogram,
    )
