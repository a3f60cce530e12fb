"""Had the figures settled? The steady-state rule of SNIA's PTS on the run's own series, and a trend test beside it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.result import units
from spindle.result.figures import EndedBySteady
from spindle.result.record import Level, RunRecord, Verdict

WORDS = {"iops": "the rate of requests", "bandwidth": "throughput", "latency": "the mean latency"}
"""What a workload's rule looks at."""
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
    return _asked_for(record) if record.workload.end.steady_rule is not None else _seen(record)


def _asked_for(record: RunRecord) -> list[Verdict]:
    """The run was to go on until it was steady, by a rule of its own."""
    found, rule = record.figures.steady, record.workload.end.steady_rule
    assert rule is not None
    what = WORDS[rule.metric]
    if found is None:
        whole = units.seconds(record.figures.measured_s)
        drift = "" if rule.drift_per_minute is None else f", drift {units.percent(rule.drift_per_minute)} a minute"
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=(
                    f"{what} was not steady within {whole} (over {units.seconds(rule.window_ns / 1e9)} or more: range "
                    f"{units.percent(rule.range)}, slope {units.percent(rule.slope)}{drift})"
                ),
                advice="run longer: --seconds; or ask for less: --steady-drift, --steady-range",
                numbers={"seconds": record.figures.measured_s},
            )
        ]
    low, high = (100 * end for end in found.drift_range)
    return [
        Verdict(
            check="steady",
            level=Level.OK,
            evidence=(
                f"{what} was steady from {units.seconds(found.from_ns / 1e9)} to {units.seconds(found.at_ns / 1e9)}: "
                f"its fifths differ by {units.percent(found.range)}, drift {100 * found.drift_per_minute:.2g} % a "
                f"minute ({low:.2g} to {high:.2g} %)"
            ),
            numbers={
                "from_s": found.from_ns / 1e9,
                "at_s": found.at_ns / 1e9,
                "mean": found.mean,
                "range": found.range,
                "slope": found.slope,
                "drift_per_minute": found.drift_per_minute,
                "drift_low": found.drift_range[0],
                "drift_high": found.drift_range[1],
                "looks": float(found.looks),
            },
        )
    ]


def _seen(record: RunRecord) -> list[Verdict]:
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
