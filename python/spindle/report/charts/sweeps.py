"""Throughput and latency against outstanding requests, with the knee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import parts
from spindle.report.charts.theme import SERIES
from spindle.report.document.alike import alike_runs
from spindle.report.document.entry import Entry
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.traits import THREADS
from spindle.report.document.trial import Case, is_streaming, label_of
from spindle.report.terminal import sweep as terminal
from spindle.report.terminal.table import Column
from spindle.result.record import Knee, KneePoint, KneeRecord, Level, QuickRecord, RunRecord
from spindle.run.knee import knee_of, point_of
from spindle.stats.estimate import mean_of_trials


@dataclass(frozen=True)
class Sweep:
    """One curve."""

    label: str
    knee: Knee
    levels: Sequence[Level]
    """The worst verdict of each point."""
    first: RunRecord
    """First of its runs, for the settings."""

    @property
    def streaming(self) -> bool:
        """True if it is about bytes per second."""
        return is_streaming(self.first)


def sweeps_of(entries: Sequence[Entry], cases: Sequence[Case]) -> list[Sweep]:
    """Return the knee searches, and sweeps made of cases that differ only in concurrency."""
    found = [sweep for entry in entries if (sweep := _searched(entry, entries)) is not None]
    return [*found, *_made_of(cases)]


def _searched(entry: Entry, among: Sequence[Entry]) -> Sweep | None:
    record = entry.record
    if not isinstance(record, KneeRecord | QuickRecord):
        return None
    knee = record.sweep
    if knee is None or len(knee.points) < 2:
        return None
    runs = {run.id: run for run in record.runs}
    first = runs.get(knee.points[0].run)
    if first is None:
        return None
    label = f"{first.workload.name} on {first.target.place}"
    if entry.cell:
        label = label_of(entry.cell)
    elif entry.tags:
        label = f"{', '.join(entry.tags)}: {label}"
    same = [other for other in among if other is not entry and _name(other) == _name(entry) and not other.cell]
    if same and not entry.cell:
        label = f"{label} ({entry.source})"
    levels = [runs[point.run].level if point.run in runs else Level.OK for point in knee.points]
    return Sweep(label, knee, levels, first)


def _name(entry: Entry) -> tuple[str, str, tuple[str, ...]] | None:
    runs = entry.record.runs if isinstance(entry.record, KneeRecord | QuickRecord) else []
    return (runs[0].workload.name, runs[0].target.asked, entry.tags) if runs else None


def _made_of(cases: Sequence[Case]) -> list[Sweep]:
    groups: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in cases:
        rest = tuple((name, value) for name, value in case.traits.items() if not _is_concurrency(name))
        groups.setdefault(rest, []).append(case)
    found = []
    for rest, members in groups.items():
        by_outstanding = {case.trials[0].run.workload.outstanding: case for case in members}
        if len(by_outstanding) < 3 or len(by_outstanding) != len(members):
            continue
        ordered = [case for _, case in sorted(by_outstanding.items())]
        label = label_of(dict(rest)) or ordered[0].trials[0].run.workload.name
        first = ordered[0].trials[0].run
        found.append(Sweep(label, knee_of([_mean(case) for case in ordered]), [case.level for case in ordered], first))
    return found


def _is_concurrency(name: str) -> bool:
    return name in THREADS or name.rpartition(".")[2] in THREADS or name.rpartition(" ")[2] in THREADS


def _mean(case: Case) -> KneePoint:
    runs = [trial.run for trial in case.trials]
    points = [point_of(run, run.workload.outstanding) for run in runs]
    tails = [point.p99_latency_ns for point in points if point.p99_latency_ns is not None]
    errors = [point.bytes_per_s_error for point in points if point.bytes_per_s_error is not None]
    return KneePoint(
        outstanding=points[0].outstanding,
        iops=mean_of_trials([point.iops for point in points]),
        bytes_per_s=mean_of_trials([point.bytes_per_s for point in points]),
        mean_latency_ns=mean_of_trials([point.mean_latency_ns for point in points]),
        p99_latency_ns=max(tails, default=None),
        run=points[0].run,
        bytes_per_s_error=None if len(errors) < len(points) else sum(error**2 for error in errors) ** 0.5 / len(points),
    )


def charts(sweeps: Sequence[Sweep]) -> list[Chart]:
    """Return a chart for each kind of work, with as many curves as are distinguishable."""
    together = [
        [sweeps[at] for at in members[start : start + SERIES]]
        for members in alike_runs([sweep.first for sweep in sweeps])
        for start in range(0, len(members), SERIES)
    ]
    return [_chart(found, at) for at, found in enumerate(together)]


def _chart(sweeps: Sequence[Sweep], at: int) -> Chart:
    streaming = all(sweep.streaming for sweep in sweeps)
    unit, factor = ("MB/s", 1e6) if streaming else ("IOPS", 1.0)
    labels = parts.shortened([sweep.label for sweep in sweeps])
    values: list[dict[str, Any]] = [
        {
            "case": label,
            "outstanding": point.outstanding,
            "rate": (point.bytes_per_s if streaming else point.iops) / factor,
            "latency": point.mean_latency_ns / 1e6 or None,
            "knee": _at_knee(sweep.knee, point),
            "invalid": level is Level.INVALID,
        }
        for sweep, label in zip(sweeps, labels, strict=True)
        for point, level in zip(sweep.knee.points, sweep.levels, strict=True)
    ]
    largest = max(value["outstanding"] for value in values)
    ticks = [2**power for power in range(17) if 2**power <= largest]
    x = parts.number("outstanding", "Requests under way (count)", log=2, axis={"values": ticks}, scale={"nice": False})
    rate = parts.number("rate", f"Throughput ({unit})")
    latencies = [value["latency"] for value in values if isinstance(value["latency"], float)]
    latency = parts.number(
        "latency",
        "Mean latency (ms)",
        log=10,
        scale=parts.log_scale(latencies),
        axis={"values": parts.decades(latencies)},
    )
    curve = parts.series("case", "Curve", labels)
    at_knee = {"filter": "datum.knee != null"}
    specification = parts.whole(
        data={"values": values},
        vconcat=[
            {
                "width": parts.WIDTH,
                "height": parts.HEIGHT,
                "layer": [
                    {"mark": "line", "encoding": {"x": x, "y": rate, **_without(curve, "shape")}},
                    {"mark": "point", "encoding": {"x": x, "y": rate, **_without(curve, "strokeDash")}},
                    {
                        "transform": [at_knee],
                        "mark": {"type": "point", "size": 260, "filled": False, "strokeWidth": 2, "stroke": "@ink"},
                        "encoding": {"x": x, "y": rate},
                    },
                    {
                        "transform": [at_knee],
                        "mark": {"type": "text", "dy": -17, "fontWeight": "bold"},
                        "encoding": {"x": x, "y": rate, "text": {"field": "knee"}},
                    },
                    parts.crosses(x, rate),
                ],
            },
            {
                "width": parts.WIDTH,
                "height": parts.HEIGHT * 0.6,
                "layer": [
                    {"mark": "line", "encoding": {"x": x, "y": latency, **_without(curve, "shape")}},
                    {"mark": "point", "encoding": {"x": x, "y": latency, **_without(curve, "strokeDash")}},
                ],
            },
        ],
    )
    says = " ".join((f"{sweep.label}: " if len(sweeps) > 1 else "") + terminal.sentence(sweep.knee) for sweep in sweeps)
    if any(value["invalid"] for value in values):
        says += " A red cross marks a point whose verdict is invalid."
    return Chart(
        key=f"threads-{at + 1}" if at else "threads",
        title=f"Throughput against concurrency{f' ({at + 1})' if at else ''}",
        says=says,
        specification=specification,
        sheet=_sheet(sweeps),
    )


def _at_knee(knee: Knee, point: KneePoint) -> str | None:
    """Mark the knee only if throughput levelled off: else it is at the last point, or beyond."""
    return f"knee {point.outstanding}" if knee.levelled_off and point.outstanding == knee.knee else None


def _without(encoding: dict[str, object], channel: str) -> dict[str, object]:
    return {name: value for name, value in encoding.items() if name != channel}


def _sheet(sweeps: Sequence[Sweep]) -> Sheet:
    rows = [
        [
            sweep.label,
            str(point.outstanding),
            plain(point.iops),
            plain(point.bytes_per_s / 1e6),
            plain(point.mean_latency_ns / 1e6),
            "" if point.p99_latency_ns is None else plain(point.p99_latency_ns / 1e6),
            "knee" if point.outstanding == sweep.knee.knee else "",
            level,
        ]
        for sweep in sweeps
        for point, level in zip(sweep.knee.points, sweep.levels, strict=True)
    ]
    heads = [Column(head) for head in ("under way", "IOPS", "MB/s", "mean ms", "p99 ms")]
    columns = [Column("curve", words=True), *heads, Column("", words=True), Column("verdict", words=True)]
    return Sheet("Points of the curves", columns, rows, folded=True)
