"""Checks that the load kept its level: distinguishes drift, steps, pulses, waves and several levels from noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from spindle import _core
from spindle.base import units
from spindle.base.decoding import decode_json
from spindle.result.figures import EndedBySteady, Interval
from spindle.result.record import Level, RunRecord, Verdict

WORDS = {"iops": "the rate of requests", "bandwidth": "throughput", "latency": "the mean latency"}
"""The metric of a workload's rule."""
WHOLE = 0.9
"""Share of an interval from which on it counts: the end cuts the last one off."""
STEP = 0.05
"""Change of the level that matters, as a share of the higher level."""
SWING = 0.10
"""Drift over the whole run, or size of a temporary change, that matters: as much as the PTS allows over its window."""
SPIKE = 0.30
"""The same for a change of a few intervals: it hardly moves the mean, and noise with tails often causes smaller
ones.
"""
MOMENT = 3
"""Intervals."""
HIDDEN = 0.30
"""Step up or down, as a share of the level before it, that a series must exclude to be called steady."""
EARLY = 0.25
"""Part of the run in which a change belongs to its start."""
NAMED = 4
"""Number of levels that are named; the numbers count all of them."""
LATENCY_FACTOR = 2.0
"""A mean latency varies more from second to second than a rate, and matters less."""


class Window(Struct, frozen=True):
    """The last window of the PTS rule."""

    rounds: int
    range: float
    slope: float


class Report(Struct, frozen=True):
    """The core's report on a series by the PTS rule."""

    steady: bool
    last: Window | None


class Departure(Struct, frozen=True):
    """`measure::departure::Departure`."""

    kind: Literal["drift", "step", "pulse", "wave", "levels", "sawtooth", "flapping"]
    strength: float
    places: list[int]
    levels: list[float]
    period: float | None
    share: float | None

    @property
    def size(self) -> float:
        """Size of the change, as a share of the higher level."""
        return _size(self.levels)


def _size(levels: Sequence[float]) -> float:
    highest = max(levels, default=0.0)
    return (highest - min(levels)) / highest if highest > 0 else 0.0


class Series(Struct, frozen=True):
    """A metric that should keep its level, interval by interval."""

    what: str
    values: list[float]
    is_latency: bool = False
    in_bytes: bool = True

    def text(self, value: float) -> str:
        """A value for people."""
        if self.is_latency:
            return units.duration(max(0.0, value))
        return units.rate(max(0.0, value)) if self.in_bytes else f"{units.count(max(0.0, value))} IOPS"

    def matters(self, found: Departure) -> bool:
        """True if the change is large enough to report; a change of a few intervals must be larger."""
        factor = LATENCY_FACTOR if self.is_latency else 1.0
        if found.kind not in ("pulse", "levels"):
            return found.size >= factor * (STEP if found.kind == "step" else SWING)
        ends = [0, *found.places, len(self.values)]
        lasting = [
            level for level, (begin, end) in zip(found.levels, pairwise(ends), strict=True) if end - begin > MOMENT
        ]
        least = SWING if found.kind == "pulse" else STEP
        return found.size >= factor * SPIKE or _size(lasting) >= factor * least


def steady(record: RunRecord) -> list[Verdict]:
    """A mean over a change describes neither side of it."""
    return _asked_for(record) if record.workload.end.steady_rule is not None else _seen(record)


def _asked_for(record: RunRecord) -> list[Verdict]:
    """The run was to go on until steady, by a rule of its own."""
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
                advice="run longer: `seconds=`; or ask for less: `steady_drift=`, `steady_range=`",
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
                "evaluations": float(found.evaluations),
            },
        )
    ]


def _seen(record: RunRecord) -> list[Verdict]:
    intervals = _whole_intervals(record)
    each = units.seconds(record.figures.interval_ns / 1e9)
    every = list(_series_of(record, intervals))
    report = decode_json(_core.steady(every[0].values), Report)
    numbers = {"intervals": float(len(intervals))}
    if report.last is None:
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=f"unknown: {len(intervals)} intervals of {each} are too few",
                advice="give it at least ten seconds: `seconds=60`",
                numbers=numbers,
            )
        ]
    numbers |= {"range": report.last.range, "slope": report.last.slope}
    found = strongest(every)
    if found is not None:
        series, departure = found
        words = _DepartureWords(series, departure, [interval.start_ns / 1e9 for interval in intervals], intervals[-1])
        return [
            Verdict(
                check="steady",
                level=Level.WARN,
                evidence=words.evidence(),
                advice=words.advice(isinstance(record.figures.ended_by, EndedBySteady)),
                numbers=numbers | words.numbers(),
            )
        ]
    least = _core.step_ruled_out(every[0].values)
    if least is not None:
        numbers["ruled_out"] = least
    if could_hide(least):
        return [_unseen(least, len(intervals), record.figures.interval_ns / 1e9, numbers)]
    assert least is not None
    seen = (
        f"no drift and no change of level in {len(intervals)} intervals of {each}, a step of {units.percent(least)} or "
        f"more is ruled out; the last {report.last.rounds} differ by {units.percent(report.last.range)} of their mean"
    )
    if not report.steady:
        seen += f" and drift by {units.percent(abs(report.last.slope))}, as noise does (SNIA PTS allows 20 % and 10 %)"
    return [Verdict(check="steady", level=Level.OK, evidence=seen, numbers=numbers)]


def could_hide(least: float | None) -> bool:
    """True if noise could hide a step that matters, in a series that excludes steps from `least` on."""
    return least is None or least > HIDDEN + 1e-9


def _unseen(least: float | None, count: int, interval_s: float, numbers: dict[str, float]) -> Verdict:
    """Nothing was detected, and nothing is excluded."""
    known = "even one of 100 % could" if least is None else f"only one of {units.percent(least)} or more could not"
    longer = max(60, 10 * math.ceil(4 * count * interval_s / 10))
    return Verdict(
        check="steady",
        level=Level.WARN,
        evidence=(
            f"unknown: {count} intervals of {units.seconds(interval_s)} are too few for their noise: a step of "
            f"{units.percent(HIDDEN)} could hide in it ({known})"
        ),
        advice=f"run longer: `seconds={longer}`",
        numbers=numbers,
    )


def _whole_intervals(record: RunRecord) -> list[Interval]:
    figures = record.figures
    return [interval for interval in figures.series if interval.length_ns >= WHOLE * figures.interval_ns]


def _series_of(record: RunRecord, intervals: Sequence[Interval]) -> Iterator[Series]:
    """Throughput of all streams first, then of each stream if there are several; then the mean latency of paced
    loads, whose throughput stays as asked while the target slows down.
    """
    streams = range(len(record.workload.streams))
    yield _throughput("throughput", intervals, streams)
    if len(streams) > 1:
        for at in streams:
            yield _throughput(f"throughput of {record.workload.streams[at].name}", intervals, [at])
    for at in streams:
        if record.workload.streams[at].paced and (values := _latencies(intervals, at)):
            of = f" of {record.workload.streams[at].name}" if len(streams) > 1 else ""
            yield Series(f"the mean latency{of}", values, is_latency=True)


def _throughput(what: str, intervals: Sequence[Interval], streams: Sequence[int]) -> Series:
    """Bytes a second; requests a second where none moves bytes (discards)."""
    parts = [[interval.streams[at] for at in streams if at < len(interval.streams)] for interval in intervals]
    seconds = [interval.length_ns / 1e9 for interval in intervals]
    moved = [sum(part.read_bytes + part.write_bytes for part in found) for found in parts]
    if any(moved):
        return Series(what, [value / length for value, length in zip(moved, seconds, strict=True)])
    done = [sum(part.reads + part.writes for part in found) for found in parts]
    return Series(what, [value / length for value, length in zip(done, seconds, strict=True)], in_bytes=False)


def _latencies(intervals: Sequence[Interval], stream: int) -> list[float]:
    """ns; empty if an interval has no request."""
    found = []
    for interval in intervals:
        part = interval.streams[stream] if stream < len(interval.streams) else None
        requests = part.reads + part.writes if part is not None else 0
        if part is None or not requests:
            return []
        found.append((part.read_latency_ns + part.write_latency_ns) / requests)
    return found


def strongest(every: Sequence[Series]) -> tuple[Series, Departure] | None:
    """The most significant change that matters; among series with equal evidence the first: all streams together."""
    found = []
    for series in every:
        seen = decode_json(_core.departures(series.values, len(every) - 1), list[Departure])
        large = [departure for departure in seen if series.matters(departure)]
        found += [(series, large[0])] if large else []
    return max(found, key=lambda pair: pair[1].strength, default=None)


class _DepartureWords:
    """A departure in words and numbers."""

    def __init__(self, series: Series, found: Departure, starts_s: Sequence[float], last: Interval) -> None:
        self._series, self._found = series, found
        end_s = (last.start_ns + last.length_ns) / 1e9
        self._begin_s, self._length_s = starts_s[0], end_s - starts_s[0]
        self._interval_s = self._length_s / len(starts_s)
        self._at_s = [round(starts_s[place], 3) for place in found.places]
        self._before, self._after = found.levels[0], found.levels[1]

    def evidence(self) -> str:
        """The change, with times and sizes."""
        what, before, after = self._series.what, self._text(self._before), self._text(self._after)
        verb = "rose" if self._after > self._before else "fell"
        moved = f"{what} {verb} from {before} to {after} ({self._change()})"
        match self._found.kind:
            case "drift":
                return f"{moved} little by little over the run"
            case "step":
                return f"{moved} at {self._time(0)} of the run and stayed there"
            case "pulse":
                return f"{moved} from {self._time(0)} to {self._time(1)} of the run and came back"
            case "wave":
                period = units.seconds(round((self._found.period or 0.0) * self._interval_s, 1))
                return f"{what} swings between {before} and {after} ({self._change()}) with a period of {period}"
            case "levels":
                return f"{what} changed its level {len(self._at_s)} times: {self._levels()}"
            case "sawtooth":
                times = ", ".join(self._time(at) for at in range(len(self._at_s))[:NAMED])
                more = f" and {len(self._at_s) - NAMED} more" if len(self._at_s) > NAMED else ""
                return f"{what} drifted and jumped back at {times}{more} of the run, between {before} and {after}"
            case "flapping":
                share = units.percent(self._found.share or 0.0)
                return f"{what} went to and fro between {before} and {after}, where it was {share} of the time"

    def _levels(self) -> str:
        named = [
            f"{self._text(level)} until {self._time(at)}" for at, level in enumerate(self._found.levels[:-1][:NAMED])
        ]
        left = len(self._found.levels) - len(named)
        rest = f"then {self._text(self._found.levels[-1])}" if left == 1 else f"and {left} more"
        return ", ".join([*named, rest])

    def advice(self, ended_by_steady: bool) -> str:
        """The remedy."""
        if self._found.kind == "drift":
            ramp = '`ramp="10s"` to leave the start out'
            return ramp if ended_by_steady else f"run longer, until it has settled: `until_steady=True`, or {ramp}"
        early = self._found.kind == "step" and self._at_s[0] - self._begin_s <= EARLY * self._length_s
        if early:
            return 'leave the start out: `ramp="10s"`, and run longer'
        return (
            "the mean describes neither level: find out what changed then (heat, a full cache, a limit, other load; "
            "the record has the seconds), or give figures of each part"
        )

    def numbers(self) -> dict[str, float]:
        """Numbers for the record."""
        found = {
            "before": self._before,
            "after": self._after,
            "change": self._ratio(),
            "strength": self._found.strength,
        }
        found["changes"] = float(len(self._at_s))
        if self._at_s:
            found |= {"at_s": self._at_s[0], "last_at_s": self._at_s[-1]}
        if self._found.period is not None:
            found["period_s"] = self._found.period * self._interval_s
        return found

    def _ratio(self) -> float:
        return self._after / self._before - 1 if self._before > 0 else 0.0

    def _change(self) -> str:
        ratio = self._ratio()
        return f"{'+' if ratio > 0 else '-'}{units.percent(abs(ratio))}"

    def _text(self, value: float) -> str:
        return self._series.text(value)

    def _time(self, place: int) -> str:
        return units.seconds(round(self._at_s[place], 1))
