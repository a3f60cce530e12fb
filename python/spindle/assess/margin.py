"""Search for the largest multiple of a need that a target takes.

The need itself is run first, then larger multiples until two in a row fail, or smaller ones; then the search bisects
to within 5 %, as a latency search does. At the smallest multiple that failed the stream farthest from its bound runs
alone as well: it shows if the other streams are the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spindle.assess.need import LOG_SHARE, Need
from spindle.base import units
from spindle.base.numbers import written
from spindle.result.record import RunRecord, TargetRecord
from spindle.result.search import TargetPoint, TargetSearch
from spindle.result.starved import clients
from spindle.run import latency_search, openloop
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadRunner, Measurer
from spindle.run.searching import target_record, with_ramp

CLIMB = 1.5
MOST_TIMES = 16.0
"""Largest multiple of the search."""
DESCENT = 0.5
LEAST_TIMES = 1 / 8


@dataclass(frozen=True)
class Alone:
    """A stream that ran alone at a multiple of the need."""

    stream: str
    point: TargetPoint | None
    runs: list[RunRecord]


@dataclass
class NeedSearch:
    """The search over multiples of a need, as `run.order` carries out."""

    need: Need
    alone: Alone | None = None
    """The result of the stream alone, after the search."""
    option = "tps"

    @property
    def step_seconds(self) -> float:
        """Length of a run."""
        return self.need.length_s

    def carry_out(self, opened: LoadRunner, resolved: ResolvedWorkload) -> TargetRecord:
        """Search. Raises `Usage`."""
        region = region_options(self.need, opened.target(resolved.spec).size_bytes, opened)
        run_id, started = opened.identity(resolved, repr(self.need))
        found = latency_search.search_along(opened, Multiples(self.need, region), self.need.bounds, "need")
        runs = list(found.runs)
        failed, stream = too_much(found.search), worst_stream(found.search)
        if failed is not None and stream is not None and len(self.need.streams) > 1 and not _is_stopped(runs):
            self.alone = run_alone(opened, self.need, region, stream, failed.value)
            runs += self.alone.runs
        return target_record(opened, resolved, (run_id, started), replace(found, runs=runs), verdicts=[])


def _is_stopped(runs: list[RunRecord]) -> bool:
    return any(run.figures.is_partial for run in runs)


def region_options(need: Need, size_bytes: int, opened: LoadRunner) -> list[tuple[str, str]]:
    """Options that keep the streams in a part of the target as large as the data. Raises `Usage`."""
    if need.data_bytes is None or opened.target().created:
        return []
    whole = need.data_bytes / (1 - LOG_SHARE)
    if whole > size_bytes:
        raise Usage(
            f"{opened.place}: has {units.size(size_bytes)}, too little for data of {units.size(need.data_bytes)} and "
            f"its logs ({units.size(whole)}); give a larger target, or less with `data=`"
        )
    share = whole / size_bytes
    found = []
    for stream in need.load().spec.streams:
        start, end = (getattr(place, "fraction", 0.0) for place in (stream.region.offset, stream.region.end))
        found.append((f"{stream.name}.region", f"{written(100 * share * start)}%-{written(100 * share * end)}%"))
    return found


def worst_stream(search: TargetSearch) -> str | None:
    """The stream farthest from its bound at the smallest multiple that failed; None: none did."""
    point = too_much(search)
    if point is None:
        return None
    over = [
        ((check.latency_ns or 0.0) / bound.limit_ns, bound.stream)
        for bound, check in zip(search.bounds, point.checks, strict=True)
    ]
    return max(over)[1] if over else None


def too_much(search: TargetSearch) -> TargetPoint | None:
    """The smallest multiple above all that held that failed, or at least was not shown to hold."""
    above = [point for point in search.points if point.decision == "failed" and point.value > (search.held or 0.0)]
    return min(above, key=lambda point: point.value, default=search.at(search.failed))


def run_alone(runner: Measurer, need: Need, region: list[tuple[str, str]], stream: str, multiple: float) -> Alone:
    """Run one stream without the others."""
    bounds = [bound for bound in need.bounds if bound.stream == stream]
    own = [(key, value) for key, value in region if key.startswith(f"{stream}.")]
    axis = Multiples(need, own, only=stream, just=multiple)
    found = latency_search.search_along(runner, axis, bounds, "need")
    return Alone(stream, found.search.points[0] if found.search.points else None, found.runs)


@dataclass
class Multiples:
    """Multiples of a need as the variable of a search."""

    need: Need
    region: list[tuple[str, str]] = field(default_factory=list)
    only: str | None = None
    just: float | None = None
    """The only multiple; None: all."""
    open_loop: bool = True

    def first(self) -> float:
        """As `latency_search.Axis`."""
        return 1.0 if self.just is None else self.just

    def higher(self, value: float) -> float | None:
        """As `latency_search.Axis`."""
        if self.just is not None or value >= MOST_TIMES:
            return None
        return self._another(value, min(MOST_TIMES, CLIMB * value), 1)

    def lower(self, value: float) -> float | None:
        """As `latency_search.Axis`."""
        if self.just is not None or value <= LEAST_TIMES:
            return None
        found = self._another(value, DESCENT * value, -1)
        return (
            found if self.need.clients(found) != self.need.clients(value) or self.need.clients(value) is None else None
        )

    def between(self, low: float, high: float) -> float | None:
        """As `latency_search.Axis`."""
        if self.just is not None or high <= latency_search.RESOLUTION * low:
            return None
        middle = float((low * high) ** 0.5)
        there = self.need.clients(middle)
        if there is not None and there in (self.need.clients(low), self.need.clients(high)):
            return self._between_clients(low, high)
        return middle

    def _between_clients(self, low: float, high: float) -> float | None:
        """A multiple with other numbers of clients than both; None: there is none."""
        steps = 16
        for step in range(1, steps):
            middle = low + (high - low) * step / steps
            if self.need.clients(middle) not in (self.need.clients(low), self.need.clients(high)):
                return middle
        return None

    def _another(self, value: float, wanted: float, sign: int) -> float:
        """A multiple near `wanted` with other numbers of clients than `value`."""
        if self.need.clients(wanted) is None or self.need.clients(wanted) != self.need.clients(value):
            return wanted
        largest = max(self.need.clients(value) or (1,))
        return max(LEAST_TIMES, value + sign * value / largest)

    def at(self, value: float) -> ResolvedWorkload:
        """As `latency_search.Axis`."""
        return with_ramp(self.need.load(value, self.only).with_overrides(self.region))

    def label(self, value: float) -> str:
        """As `latency_search.Axis`."""
        alone = "" if self.only is None else f", {self.only} alone"
        return f"{self.need.purpose.name}: {value:.3g} times the need{alone}"

    def keeps_up(self, record: RunRecord) -> bool:
        """As `latency_search.Axis`: no stream falls behind, and no client."""
        return openloop.keeps_up(record) and not starving(record)


def starving(record: RunRecord) -> list[str]:
    """Streams of which a client gets less than its rate, or more than one in a hundred pieces too late."""
    pairs = zip(record.workload.streams, record.figures.streams, strict=True)
    return [asked.name for asked, got in pairs if any(each.starved for each in clients(asked, got))]
