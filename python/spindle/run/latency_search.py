"""Latency search: the highest throughput within bounds on latency, by bisection over outstanding requests or their
rate.

A point near a bound is run again, with other random requests, until its interval is on one side of the bound, at most
five times; a point that is undecided then counts as failed. The search climbs until two points in a row fail, so that
one failure below points that hold does not end it, and then bisects between the highest point that held and the next
failed one above it, to within 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from spindle.base.words import listed
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.search import Bound, Capacity, Decision, TargetPoint, TargetSearch
from spindle.result.workload import Open, Workload, WorkloadStream
from spindle.run import knee, openloop
from spindle.run.bounds import needed, seen
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import Measurer

RUNS = 5
"""Most runs of one point."""
RESOLUTION = 1.05
"""The bracket is narrow enough: throughput is hardly repeatable to less."""
FAILURES = 2
"""Failed points in a row that end the climb: one may be an exception."""
NO_GAIN = 3
"""Steps without gain in throughput that end the search at the load generator's limit."""
STEP_SECONDS = 5.0
"""Default length of a run."""
BUSY = 0.90
"""Share of a CPU from which on a worker is the limit, as in the verdict `generator-bound`."""
CALMER = 2
"""Most runs with a longer ramp."""
CALM = 0.5
"""Latency in the last third of a run, as a share of that in the first third, below which it still falls."""
FEWEST = 30
"""Least requests in each third for this comparison."""
FIRST_SHARE = 0.5
CLIMB = 1.25
DESCENT = 0.25
LEAST_SHARE = 1e-3
"""Smallest rate of the search, as a share of the closed loop's."""
MOST_SHARE = 2.0


@dataclass(frozen=True)
class LatencySearch:
    """The parameters of a search."""

    bounds: tuple[Bound, ...]
    variable: Literal["depth", "rate"] = "depth"
    largest: int = knee.LARGEST
    """Most outstanding requests of each stream."""
    step_seconds: float = STEP_SECONDS
    spacing: str | None = None
    """Spacing of the requests in open loop: `constant` or `poisson`; None: the workload's."""


@dataclass(frozen=True)
class SearchResult:
    """A finished search."""

    search: TargetSearch
    runs: list[RunRecord]


def fio_latency_target(
    latency_target_ns: int, latency_window_ns: int = 0, latency_percentile: float = 100.0, iodepth: int = 1
) -> LatencySearch:
    """The search of fio's options with these names: the highest depth, up to `iodepth`, at which
    `latency_percentile` of the requests take at most `latency_target`, each depth being tried for `latency_window`
    (fio: 0 is the run's time).
    """
    bound = Bound(operation="all", percentile=latency_percentile, limit_ns=latency_target_ns)
    seconds = latency_window_ns / 1e9 if latency_window_ns > 0 else STEP_SECONDS
    return LatencySearch((bound,), "depth", max(1, iodepth), seconds)


def search(
    runner: Measurer,
    resolved: ResolvedWorkload,
    wanted: LatencySearch,
    *,
    on_point: Callable[[TargetPoint], None] = lambda point: None,
) -> SearchResult:
    """Search. Raises Usage if the workload paces itself."""
    runs: list[RunRecord] = []
    openloop.refuse_paced(resolved, "latency_target", open_loop=wanted.variable == "rate")
    _refuse_unasked(resolved, wanted.bounds)
    capacity: Capacity | None = None
    axis: Axis | None = None
    if wanted.variable == "depth":
        axis = _Depth(resolved, wanted.largest)
    elif (shares := openloop.shares_of(runner, resolved, runs, spacing=wanted.spacing)) is not None:
        capacity = shares.capacity
        axis = _Rate(resolved, shares)
    course = _Course(runner, wanted.bounds, axis, runs, on_point) if axis is not None else None
    if course is not None:
        course.run()
    return SearchResult(_found(wanted.bounds, wanted.variable, course, capacity), runs)


def search_along(
    runner: Measurer,
    axis: Axis,
    bounds: Sequence[Bound],
    variable: Literal["depth", "rate", "need"],
    on_point: Callable[[TargetPoint], None] = lambda point: None,
) -> SearchResult:
    """Search along another variable."""
    course = _Course(runner, tuple(bounds), axis, [], on_point)
    course.run()
    return SearchResult(_found(course.bounds, variable, course, None), course.runs)


def _refuse_unasked(resolved: ResolvedWorkload, bounds: Sequence[Bound]) -> None:
    for bound in bounds:
        streams = [stream for stream in resolved.spec.streams if bound.stream in (None, stream.name)]
        if not streams:
            names = listed([stream.name for stream in resolved.spec.streams])
            raise Usage(f"`latency_target=`: no stream `{bound.stream}`; there are {names}")
        if not _makes(streams, bound.operation):
            raise Usage(f"`latency_target=`: {bound.figure} is bounded, but the workload makes none of them")


def _makes(streams: Sequence[WorkloadStream], operation: str) -> bool:
    match operation:
        case "read":
            return any(stream.reads for stream in streams)
        case "write":
            return any(stream.mix.write > 0 for stream in streams)
        case "trim":
            return any(stream.mix.trim > 0 for stream in streams)
        case "zero":
            return any(stream.mix.zero > 0 for stream in streams)
        case "fsync":
            return any(
                stream.sync.fsync_every > 0 or stream.sync.fdatasync_every > 0 or stream.sync.fsync_fraction > 0
                for stream in streams
            )
    return True


class Axis(Protocol):
    """The variable of a search."""

    open_loop: bool

    def first(self) -> float: ...
    def higher(self, value: float) -> float | None: ...
    def lower(self, value: float) -> float | None:
        """The next lower value, if nothing held yet."""

    def between(self, low: float, high: float) -> float | None:
        """None: they are near enough."""

    def at(self, value: float) -> ResolvedWorkload: ...
    def label(self, value: float) -> str: ...
    def keeps_up(self, record: RunRecord) -> bool:
        """True if a run in open loop served its requests as they came."""


@dataclass
class _Depth:
    """Outstanding requests of each stream; values count all streams."""

    resolved: ResolvedWorkload
    largest: int
    open_loop: bool = False

    def first(self) -> float:
        return self._all(1)

    def higher(self, value: float) -> float | None:
        each = self._each(value)
        return self._all(min(2 * each, self.largest)) if each < self.largest else None

    def lower(self, value: float) -> float | None:
        return None

    def between(self, low: float, high: float) -> float | None:
        below, above = self._each(low), self._each(high)
        if above <= below + 1 or above <= RESOLUTION * below:
            return None
        middle = (below + above) // 2
        # A multiple of a power of two, so that it can be spread over CPUs.
        grain = 1 << max(0, middle.bit_length() - 5)
        middle = max(middle // grain * grain, below + 1)
        return self._all(middle) if below < middle < above else None

    def at(self, value: float) -> ResolvedWorkload:
        return self.resolved.with_overrides(_spread(self._each(value)))

    def label(self, value: float) -> str:
        return f"{self.resolved.spec.name} with {value:.0f} outstanding"

    def keeps_up(self, record: RunRecord) -> bool:
        return True

    def _all(self, each: int) -> float:
        return float(each * len(self.resolved.spec.streams))

    def _each(self, value: float) -> int:
        return round(value) // len(self.resolved.spec.streams)


def _spread(outstanding: int) -> list[tuple[str, str]]:
    """Options that use all CPUs, with the same depth for each worker."""
    options = dict(knee.concurrency(outstanding))
    workers = int(options["workers"])
    while outstanding % workers:
        workers //= 2
    return [("workers", str(workers)), ("depth", str(outstanding // workers))]


@dataclass
class _Rate:
    """Requests a second of all streams."""

    resolved: ResolvedWorkload
    shares: openloop.Shares
    open_loop: bool = True

    @property
    def whole(self) -> float:
        """The closed loop's rate, the base of the search."""
        if self.shares.capacity is not None:
            return self.shares.capacity.iops
        return sum(getattr(stream.arrival, "rate_iops", 0.0) for stream in self.resolved.spec.streams)

    def first(self) -> float:
        return FIRST_SHARE * self.whole

    def higher(self, value: float) -> float | None:
        return CLIMB * value if value < MOST_SHARE * self.whole else None

    def lower(self, value: float) -> float | None:
        return DESCENT * value if value > LEAST_SHARE * self.whole else None

    def between(self, low: float, high: float) -> float | None:
        return (low * high) ** 0.5 if high > RESOLUTION * low else None

    def at(self, value: float) -> ResolvedWorkload:
        return openloop.at_rate(self.resolved, self.shares, value)

    def label(self, value: float) -> str:
        return f"{self.resolved.spec.name} at {value:.6g} requests/s"

    def keeps_up(self, record: RunRecord) -> bool:
        return openloop.keeps_up(record)


@dataclass
class _Course:
    """The state of the search."""

    runner: Measurer
    bounds: tuple[Bound, ...]
    axis: Axis
    runs: list[RunRecord]
    on_point: Callable[[TargetPoint], None]
    points: dict[float, TargetPoint] = field(default_factory=dict)
    stopped: bool = False
    broken: bool = False
    """True if a load ended with an error: the next ones would too."""
    generator: bool = False
    """True if the load generator, not the target, was the limit."""

    def run(self) -> None:
        """Climb, descend if nothing holds, then bisect."""
        self._climb()
        if not self._held() and not self._over():
            self._descend()
        while not self._over() and (value := self._middle()) is not None:
            self._measure(value)

    def _over(self) -> bool:
        return self.stopped or self.broken

    def _held(self) -> list[float]:
        return [value for value, point in self.points.items() if point.decision == "held"]

    def _climb(self) -> None:
        value: float | None = self.axis.first()
        failures, flat, best = 0, 0, 0.0
        while value is not None and failures < FAILURES and not self._over():
            point = self._measure(value)
            if point is None:
                return
            failures = 0 if point.decision == "held" else failures + 1
            if self.axis.open_loop and not point.sustained:
                return  # requests arrive faster than they are served: higher rates are pointless
            flat = 0 if point.bytes_per_s >= knee.GROWTH * best else flat + 1
            best = max(best, point.bytes_per_s)
            if point.decision == "held" and flat >= NO_GAIN and self._is_generator(point):
                self.generator = True
                return
            value = self.axis.higher(value)

    def _descend(self) -> None:
        value = self.axis.lower(min(self.points))
        while value is not None and not self._over() and self._tells(value):
            point = self._measure(value)
            if point is None or point.decision == "held":
                return
            value = self.axis.lower(value)

    def _tells(self, value: float) -> bool:
        """True if the runs of a point could have enough requests for an answer."""
        spec = self.axis.at(value).spec
        if not self.axis.open_loop or spec.end.time_ns is None:
            return True
        runs_s = spec.end.time_ns / 1e9 * RUNS
        return all(_arrivals(spec, bound) * runs_s >= needed(bound) for bound in self.bounds)

    def _middle(self) -> float | None:
        held = max(self._held(), default=None)
        above = [value for value in self.points if held is not None and value > held]
        return self.axis.between(held, min(above)) if held is not None and above else None

    def _is_generator(self, point: TargetPoint) -> bool:
        record = next(run for run in self.runs if run.id == point.runs[-1])
        return not record.target.traits.does_io or record.figures.generator.busiest_worker >= BUSY

    def _measure(self, value: float) -> TargetPoint | None:
        """One point; None: there are no figures."""
        asked = self.axis.at(value)
        found, records = self._decided(value, asked)
        for _ in range(CALMER):
            if found is None or found.decision != "failed" or not found.sustained or self._over():
                break
            if not self.axis.open_loop or not all(map(latency_falls, records)):
                break
            asked = _with_longer_ramp(asked)
            again, records = self._decided(value, asked)
            found = again or found
        if found is not None:
            self.points[value] = found
            self.on_point(found)
        return found

    def _decided(self, value: float, asked: ResolvedWorkload) -> tuple[TargetPoint | None, list[RunRecord]]:
        """A point, run until it is decided, and its runs."""
        records: list[RunRecord] = []
        found: TargetPoint | None = None
        for number in range(RUNS):
            step = asked.with_overrides([("seed", str(asked.spec.seed + number))]) if number else asked
            again = f", run {number + 1}" if number else ""
            measured = self.runner.measure(step, self.axis.label(value) + again)
            self.stopped = measured.stopped
            self.runs.append(measured.record)
            if measured.stopped:
                break
            if measured.record.figures.is_partial or measured.record.figures.requests == 0:
                self.broken = True
                break
            records.append(measured.record)
            found = self._point(value, records)
            if found.decision != "undecided":
                break
        return found, records

    def _point(self, value: float, records: list[RunRecord]) -> TargetPoint:
        served = [record for record in records if not self.axis.open_loop or self.axis.keeps_up(record)]
        behind = len(records) - len(served)
        # One run that falls behind may have been disturbed: two are needed, and more than half.
        sustained = behind < 2 or 2 * behind <= len(records)
        about = [seen(bound, served if served and sustained else records) for bound in self.bounds]
        decisions = [each.decision for each in about]
        decision: Decision = "held"
        if not sustained:
            decision = "failed"
        elif 0 < 2 * behind >= len(records):
            decision = "undecided"
        elif "failed" in decisions:
            decision = "failed"
        elif "undecided" in decisions:
            decision = "undecided"
        count = len(records)
        requests = sum(record.figures.requests for record in records)
        latency = sum(record.figures.requests * (record.figures.mean_latency_ns() or 0.0) for record in records)
        return TargetPoint(
            value=value,
            iops=sum(record.figures.iops for record in records) / count,
            bytes_per_s=sum(record.figures.bytes_per_s for record in records) / count,
            mean_latency_ns=latency / requests if requests else 0.0,
            checks=about,
            sustained=sustained,
            decision=decision,
            runs=[record.id for record in records],
            requests=requests,
        )


def latency_falls(record: RunRecord) -> bool:
    """True if requests at the end of a run took much less time than those at its beginning."""
    series = record.figures.series
    third = len(series) // 3
    first, last = ([one for interval in part for one in interval.streams] for part in (series[:third], series[-third:]))
    counts = [sum(one.reads + one.writes for one in part) for part in (first, last)]
    if third == 0 or min(counts) < FEWEST:
        return False
    sums = [sum(one.read_latency_ns + one.write_latency_ns for one in part) for part in (first, last)]
    return sums[1] / counts[1] < CALM * sums[0] / counts[0]


def _with_longer_ramp(asked: ResolvedWorkload) -> ResolvedWorkload:
    """Twice as long, after a ramp as long as the run with its ramp."""
    length_s, ramp_s = (ns / 1e9 for ns in (asked.spec.end.time_ns or 0, asked.spec.ramp_ns))
    return asked.with_overrides([("seconds", f"{2 * length_s:g}"), ("ramp", f"{length_s + ramp_s:g}s")])


def _arrivals(spec: Workload, bound: Bound) -> float:
    """Requests a second of the streams that a bound is about, in open loop."""
    named = [stream for stream in spec.streams if bound.stream in (None, stream.name)]
    return sum(stream.arrival.rate_iops for stream in named if isinstance(stream.arrival, Open))


def _found(
    bounds: tuple[Bound, ...],
    variable: Literal["depth", "rate", "need"],
    course: _Course | None,
    capacity: Capacity | None,
) -> TargetSearch:
    points = sorted(course.points.values(), key=lambda point: point.value) if course is not None else []
    held = max((point.value for point in points if point.decision == "held"), default=None)
    above = [point.value for point in points if point.decision != "held" and (held is None or point.value > held)]
    below = [point for point in points if point.decision == "failed" and held is not None and point.value < held]
    outcome: Literal["bracketed", "none-held", "never-failed", "generator", "interrupted", "nothing"] = "bracketed"
    if course is None or course.stopped:
        outcome = "interrupted" if course is None or points else "nothing"
    elif not points:
        outcome = "nothing"
    elif held is None:
        outcome = "none-held"
    elif course.generator:
        outcome = "generator"
    elif not above:
        outcome = "never-failed"
    return TargetSearch(
        bounds=list(bounds),
        variable=variable,
        points=points,
        held=held,
        failed=min(above, default=None),
        outcome=outcome,
        monotone=not below,
        capacity=capacity,
    )


def _none_held(search: TargetSearch) -> tuple[Level, str, str]:
    """Level, evidence and advice, from the smallest load."""
    least = search.points[0] if search.points else None
    if least is None or (least.decision == "failed" and least.sustained):
        advice = "the target cannot; allow more latency, or make the requests smaller"
        return Level.WARN, "not even the smallest load that was tried kept the bounds", advice
    if not least.sustained:
        return Level.WARN, "not even the smallest rate was served as it came", "look for what else uses the target"
    wanted = max(needed(bound) for bound in search.bounds)
    evidence = (
        f"no load could be shown to keep the bounds: the smallest had {least.requests} requests, at least {wanted} are "
        "needed"
    )
    return Level.WARN, evidence, "give each run more time: `seconds=30`"


def verdicts(search: TargetSearch) -> list[Verdict]:
    """Verdicts on the search as a whole."""
    found = []
    numbers = {"points": float(len(search.points))}
    most = search.points[-1].value if search.points else 0.0
    what = f"{most:.0f} outstanding requests" if search.variable == "depth" else f"{most:.6g} requests a second"
    trouble = {
        "interrupted": (Level.INVALID, "stopped before the end: the search is partial", "run it again to its end"),
        "nothing": (Level.INVALID, "nothing was measured", "give it more time: `seconds=`"),
        "none-held": _none_held(search),
        "never-failed": (Level.WARN, f"the bounds still held at {what}", "the limit is beyond the search"),
        "generator": (
            Level.WARN,
            f"the load generator reached its own limit at {what} while the bounds still held",
            "spread the load over more `workers=` on other CPUs; the target can do more",
        ),
    }.get(search.outcome)
    if trouble is not None:
        level, evidence, advice = trouble
        found.append(Verdict(check="target", level=level, evidence=evidence, advice=advice, numbers=numbers))
    if not search.monotone:
        found.append(
            Verdict(
                check="monotone",
                level=Level.WARN,
                evidence="a bound failed at a smaller load than the largest at which all held",
                advice="latency does not simply rise with load here (power saving, batching, or a disturbance): see "
                "the table, run it again",
            )
        )
    undecided = sum(point.decision == "undecided" for point in search.points)
    if undecided:
        found.append(
            Verdict(
                check="undecided",
                level=Level.WARN,
                evidence=f"{undecided} of {len(search.points)} points are too close to a bound, or had too few "
                f"requests, for a decision after {RUNS} runs; they count as failed",
                advice="give each run more time: `seconds=30`",
                numbers={"undecided": float(undecided)},
            )
        )
    return found
