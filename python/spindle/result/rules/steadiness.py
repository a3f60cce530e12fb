"""Had the figures settled? The steady-state rule of SNIA's PTS on the run's own series, and a trend test beside it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.result import units
from spindle.result.figures import EndedBySteady
from spindle.result.record import Level, RunRecord, Verdict

WHOLE = 0.9
"""Share of an interval from which on it counts as one: the last one is cut off by the end."""
DRIFT = 0.10
"""Drift over the whole run that matters: as much as the PTS allows over its window."""
CHANCE = 0.01
"""A trend more likely than this without any drift is not called one."""


class Window(Struct, frozen=True):
    """What the PTS rule looked at."""

    rounds: int
    range: float
    slope: float


class Trend(Struct, frozen=True):
    """Mann-Kendall test with Sen's slope."""

    windows: int
    p_value: float
    relative_slope: float


class Report(Struct, frozen=True):
    """The core's report on a series."""

    steady: bool
    last: Window | None
    trend: Trend | None


def series_of(record: RunRecord) -> list[float]:
    """Throughput of each whole interval, bytes/s, all streams."""
    figures = record.figures
    return [
        sum(stream.read_bytes + stream.write_bytes for stream in interval.streams) / (interval.length_ns / 1e9)
        for interval in figures.series
        if interval.length_ns >= WHOLE * figures.interval_ns
    ]


def steady(record: RunRecord) -> list[Verdict]:
    """A mean over a change is a figure of neither side of it."""
    series = series_of(record)
    report = msgspec.json.decode(_core.steady(series), type=Report)
    each = units.seconds(record.figures.interval_ns / 1e9)
    if report.last is None:
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=f"unknown: {len(series)} intervals of {each} are too few to tell",
                advice="give it at least ten seconds: --seconds 60",
                numbers={"intervals": float(len(series))},
            )
        ]
    numbers = {"intervals": float(len(series)), "range": report.last.range, "slope": report.last.slope}
    drift = 0.0
    if report.trend is not None:
        drift = report.trend.relative_slope * (report.trend.windows - 1)
        numbers |= {"drift": drift, "trend_p": report.trend.p_value}
    window = f"the last {report.last.rounds} intervals of {each}"
    if not report.steady:
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=(
                    f"{window} differ by {units.percent(report.last.range)} of their mean and drift by "
                    f"{units.percent(abs(report.last.slope))} (SNIA PTS allows 20 % and 10 %)"
                ),
                advice="run longer, or with --ramp 10s to leave the start out",
                numbers=numbers,
            )
        ]
    if report.trend is not None and report.trend.p_value < CHANCE and abs(drift) > DRIFT:
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=(
                    f"throughput {'rose' if drift > 0 else 'fell'} by {units.percent(abs(drift))} over the run "
                    f"(Mann-Kendall, p {report.trend.p_value:.1g})"
                ),
                advice="leave the start out: --ramp 10s"
                if isinstance(record.figures.ended_by, EndedBySteady)
                else "run longer, until it has settled: --until-steady, or --ramp 10s to leave the start out",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="steady",
            level=Level.OK,
            evidence=f"{window} differ by {units.percent(report.last.range)} of their mean",
            numbers=numbers,
        )
    ]
