"""The search under a bound on latency finds the largest load that keeps it, and says how sure that is."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from spindle import _core
from spindle.base.numbers import plain
from spindle.report.terminal.target import sentences, table_of
from spindle.result.document import decode, encode, schema
from spindle.result.figures import Interval, Stopped, StreamInterval
from spindle.result.record import Level, RunRecord, TargetRecord
from spindle.result.rules import judge
from spindle.result.search import Bound, TargetSearch
from spindle.run import latency_search
from spindle.run.bounds import parse_bounds, seen, wilson
from spindle.run.errors import Usage
from spindle.run.openloop import behind, keeps_up
from spindle.run.resolve import ResolvedWorkload, resolve
from spindle.run.runner import LoadResult
from tests.cli.records import figures, latency, op, record, stream
from tests.documents import present
from tests.program import Invoke

READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0"), ("seconds", "5")]
MS = 1_000_000
DISTURBED = 7
"""Runs before the first in open loop: the sweep for what a closed loop reaches takes as many."""


def exponential(mean_ns: float, count: int) -> str:
    """A stored histogram of latencies whose quantiles are those of the exponential distribution."""
    steps = 2000
    places = [-mean_ns * math.log(1 - (at + 0.5) / steps) for at in range(steps)]
    return _core.histogram_of([(round(ns), max(1, count // steps)) for ns in places])


class Queue:
    """A device of some servers, whose latencies are exponential; `noise` makes each run another one, by its seed."""

    def __init__(
        self,
        servers: int = 8,
        noise: float = 0.0,
        stop_at: int | None = None,
        odd: Callable[[int], float] = lambda outstanding: 1.0,
    ) -> None:
        self.servers, self.noise, self.stop_at, self.odd = servers, noise, stop_at, odd
        self.asked: list[float] = []
        self.seeds: list[int] = []

    def measure(self, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult:
        spec = resolved.spec
        offered = sum(getattr(each.arrival, "rate_iops", 0.0) for each in spec.streams)
        most = 100.0 * self.servers
        if offered:
            iops = min(offered, most)
            mean = 10e6 / max(1 - offered / most, 0.001) if offered < most else 5e9
        else:
            iops = 100.0 * min(spec.outstanding, self.servers)
            mean = 1e9 * spec.outstanding / iops
        mean *= self.odd(spec.outstanding)
        if self.noise:
            mean *= math.exp(random.Random(f"{spec.seed} {spec.outstanding} {offered}").gauss(0, self.noise))
        self.asked.append(offered or spec.outstanding)
        self.seeds.append(spec.seed)
        count = round(iops * 50)
        held = latency(mean / 1e6, sdev_ns=mean, histogram=exponential(mean, count))
        found = figures(stream(op(iops, 50.0, latency=held), seconds=50.0), seconds=50.0, series=[])
        stopped = spec.outstanding == self.stop_at
        made = record(replace(found, ended_by=Stopped()) if stopped else found, id=run_id(len(self.asked)))
        return LoadResult(replace(made, workload=spec), stopped)


class Jammed(Queue):
    """The same, with a queue at the start of each run that lasts `jam_s`: in that time requests take half a second."""

    def __init__(self, jam_s: float) -> None:
        super().__init__()
        self.jam_s = jam_s
        self.ramps: list[float] = []

    def measure(self, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult:
        found = super().measure(resolved, label)
        if not any(getattr(each.arrival, "rate_iops", 0.0) for each in resolved.spec.streams):
            return found
        spec = resolved.spec
        length_s, ramp_s = (spec.end.time_ns or 0) / 1e9, spec.ramp_ns / 1e9
        self.ramps.append(ramp_s)
        iops, calm = found.record.figures.iops, found.record.figures.mean_latency_ns() or 0.0
        means = [500 * MS if ramp_s + at < self.jam_s else calm for at in range(round(length_s))]
        slow = round(iops) * sum(mean > calm for mean in means)
        counts = [(round(calm), max(1, round(iops * length_s) - slow)), *([(500 * MS, slow)] if slow else [])]
        seen_latency = latency(calm / 1e6, histogram=_core.histogram_of(counts))
        series = [
            Interval(
                start_ns=at * 10**9,
                length_ns=10**9,
                streams=[
                    StreamInterval(
                        reads=round(iops), writes=0, read_bytes=0, write_bytes=0, max_latency_ns=round(mean),
                        read_latency_ns=round(round(iops) * mean), write_latency_ns=0,
                    )
                ],
            )
            for at, mean in enumerate(means)
        ]  # fmt: skip
        made = figures(stream(op(iops, length_s, latency=seen_latency), seconds=length_s), seconds=length_s)
        return LoadResult(replace(found.record, figures=replace(made, series=series)), found.stopped)


class OneRate:
    """A search of a single point."""

    open_loop = True

    def first(self) -> float:
        return 100.0

    def higher(self, value: float) -> float | None:
        return None

    def lower(self, value: float) -> float | None:
        return None

    def between(self, low: float, high: float) -> float | None:
        return None

    def at(self, value: float) -> ResolvedWorkload:
        return resolve("randomio", [*READ_ONLY, ("rate", f"{value:g} IOPS")])

    def label(self, value: float) -> str:
        return ""

    def keeps_up(self, record: RunRecord) -> bool:
        return True


def run_id(number: int) -> str:
    return f"20260101T000000Z-{number:06x}"


def search(queue: Queue, *bounds: str, **changes: Any) -> TargetSearch:
    wanted = latency_search.LatencySearch(tuple(parse_bounds(bounds or ("p99:200ms",))), **changes)
    return latency_search.search(queue, resolve("randomio", READ_ONLY), wanted).search


def test_the_largest_depth_that_meets_the_bound_is_found_between_two_tried_depths() -> None:
    # p99 of n outstanding is 4.6 n / 800 s, 200 ms at 34.7.
    found = search(Queue())
    assert found.outcome == "bracketed"
    assert found.held is not None
    assert found.failed is not None
    assert 32 <= found.held < found.failed <= 36
    assert found.monotone
    held = found.at(found.held)
    assert held is not None
    assert held.checks[0].high <= 0.01
    assert present(held.checks[0].latency_ns) < 200 * MS


@pytest.mark.parametrize(("jam_s", "ramps"), [(0, [0.0]), (2, [0.0, 5.0]), (4, [0.0, 5.0]), (100, [0.0])])
def test_a_queue_of_the_start_does_not_decide(jam_s: float, ramps: list[float]) -> None:
    """A queue of 100 s does: no run shows that it ends."""
    queue = Jammed(jam_s)
    [point] = latency_search.search_along(queue, OneRate(), parse_bounds(("p99:200ms",)), "rate").search.points
    assert (point.decision == "held") == (jam_s < 100)
    assert queue.ramps == ramps


def test_a_mean_can_be_bounded() -> None:
    found = search(Queue(), "mean:100ms")
    assert found.held is not None
    assert 70 <= found.held <= 80


def test_all_of_several_bounds_must_be_met() -> None:
    loose, tight = search(Queue(), "p99:1s"), search(Queue(), "p99:1s", "mean:20ms")
    assert tight.held is not None
    assert loose.held is not None
    assert tight.held <= 16 < loose.held


def test_a_bound_that_one_request_cannot_meet_is_reported() -> None:
    found = search(Queue(), "p50:1us")
    assert (found.outcome, found.held) == ("none-held", None)
    assert [each.level for each in latency_search.verdicts(found)] == [Level.WARN]


def test_a_bound_that_is_never_reached_is_beyond_the_search() -> None:
    found = search(Queue(), "p99:1h", largest=64)
    assert (found.outcome, found.held, found.failed) == ("never-failed", 64, None)
    assert "limit is beyond" in latency_search.verdicts(found)[0].advice


def test_a_point_near_the_bound_is_run_again_with_other_requests() -> None:
    queue = Queue(noise=0.05)
    found = search(queue, "p99:184ms")  # the p99 of 32 outstanding
    runs = {point.value: len(point.runs) for point in found.points}
    assert runs[1] == 1
    assert max(runs.values()) > 1
    assert len(set(queue.seeds)) > 1
    assert found.held is None or found.held < 36


@pytest.mark.parametrize("seed", range(8))
def test_noise_moves_the_result_of_the_search_only_little(seed: int) -> None:
    queue = Queue(noise=0.03)
    wanted = latency_search.LatencySearch(tuple(parse_bounds(("p99:200ms",))))
    options = [*READ_ONLY, ("seed", str(100 * seed))]
    found = latency_search.search(queue, resolve("randomio", options), wanted).search
    assert found.held is not None
    assert 26 <= found.held <= 37


def test_a_bound_that_fails_at_a_low_depth_and_is_met_above_is_recognised() -> None:
    # One request alone waits for the device to wake up.
    found = search(Queue(odd=lambda outstanding: 50.0 if outstanding == 1 else 1.0))
    assert found.held is not None
    assert found.held >= 32
    assert not found.monotone
    assert "monotone" in [each.check for each in latency_search.verdicts(found)]


def test_a_search_that_was_stopped_is_partial() -> None:
    found = search(Queue(stop_at=16))
    assert found.outcome == "interrupted"
    assert latency_search.verdicts(found)[0].level is Level.INVALID


def test_rates_are_searched_below_what_a_closed_loop_reaches() -> None:
    # Mean latency 10 ms / (1 - rate / 800): 40 ms at 600 requests a second.
    found = search(Queue(), "mean:40ms", variable="rate")
    assert found.capacity is not None
    assert found.capacity.iops == 800
    assert found.held is not None
    assert found.failed is not None
    assert 560 <= found.held <= 600 <= found.failed * 1.02
    assert found.failed <= 1.06 * found.held


def test_a_rate_that_is_not_served_fails_whatever_the_bound() -> None:
    found = search(Queue(), "p99:1h", variable="rate")
    failed = found.at(found.failed)
    assert failed is not None
    assert not failed.sustained
    assert len(failed.runs) >= 2
    assert found.held is not None
    assert found.held <= 830


def test_one_run_that_was_disturbed_does_not_decide() -> None:
    class Disturbed(Queue):
        def measure(self, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult:
            servers = self.servers
            self.servers = 1 if len(self.asked) == DISTURBED else servers
            try:
                return super().measure(resolved, label)
            finally:
                self.servers = servers

    found = search(Disturbed(), "mean:40ms", variable="rate")
    assert any(len(point.runs) > 1 for point in found.points)
    assert found.held is not None
    assert found.held >= 560


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("p99:5ms", Bound(operation="all", percentile=99.0, limit_ns=5 * MS)),
        ("read:p99.9<20ms", Bound(operation="read", percentile=99.9, limit_ns=20 * MS)),
        ("writes:mean:1ms", Bound(operation="write", percentile=None, limit_ns=MS)),
        ("fsync.max=1s", Bound(operation="fsync", percentile=100.0, limit_ns=1000 * MS)),
        ("both:p50:100us", Bound(operation="all", percentile=50.0, limit_ns=100_000)),
    ],
)
def test_bounds_are_read(text: str, bound: Bound) -> None:
    assert parse_bounds([text]) == [bound]
    assert parse_bounds([bound.asked]) == [bound]


@pytest.mark.parametrize(
    "text", ["", "p99", "p99:", "p99:5", "p0:1ms", "p101:1ms", "q99:1ms", "p99:-1ms", "seek:p99:1ms"]
)
def test_a_wrong_bound_is_one_line(text: str) -> None:
    with pytest.raises(Usage) as error:
        parse_bounds([text])
    assert "`latency_target=`" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bound_on_an_operation_without_requests_is_refused() -> None:
    with pytest.raises(Usage, match="fsyncs is bounded"):
        search(Queue(), "fsync:p99:1ms")


def test_a_paced_workload_is_refused() -> None:
    wanted = latency_search.LatencySearch(tuple(parse_bounds(("p99:1ms",))))
    with pytest.raises(Usage, match="`search=` rate"):
        latency_search.search(Queue(), resolve("randomio", [*READ_ONLY, ("rate", "100 IOPS")]), wanted)
    with pytest.raises(Usage, match="its own pace"):
        latency_search.search(Queue(), resolve("randomio", [*READ_ONLY, ("think", "1ms")]), wanted)


def test_the_interval_is_wilsons() -> None:
    # statsmodels.stats.proportion.proportion_confint(10, 1000, method='wilson'), 0.15.0.
    low, high = wilson(0.01, 1000)
    assert (low, high) == pytest.approx((0.005440754445529249, 0.018309468870314774), rel=1e-12)


def test_the_largest_latency_needs_no_interval() -> None:
    bound = Bound(operation="all", percentile=100.0, limit_ns=10 * MS)

    def decided(counts: list[tuple[int, int]]) -> str:
        held = latency(1.0, histogram=_core.histogram_of(counts))
        return seen(bound, [record(figures(stream(op(100.0, latency=held))))]).decision

    assert decided([(MS, 6000)]) == "held"
    assert decided([(MS, 5999), (11 * MS, 1)]) == "failed"


def test_fios_options_ask_for_a_depth() -> None:
    wanted = latency_search.fio_latency_target(5 * MS, 2_000 * MS, 99.0, 32)
    assert (wanted.variable, wanted.largest, wanted.step_seconds) == ("depth", 32, 2.0)
    assert wanted.bounds == (Bound(operation="all", percentile=99.0, limit_ns=5 * MS),)


def test_on_a_modelled_disk_the_search_is_the_same_each_time(invoke: Invoke, here: Path) -> None:
    asked = ("run", "randomio", "one-sata", "--latency-target", "p90:120ms", "--seconds", "20", "--write-fraction", "0")
    first = invoke(*asked, "-o", "a.json", "-q")
    assert first.status == 0, first.err
    second = invoke(*asked, "-o", "b.json", "-q")
    one, other = (decode((here / name).read_bytes(), name) for name in ("a.json", "b.json"))
    assert isinstance(one, TargetRecord)
    assert isinstance(other, TargetRecord)
    assert one.search == other.search
    assert first.out == second.out
    assert one.search.outcome == "bracketed"
    assert "With p90 at most 120 ms:" in first.out
    for name in ("show a.json", "report a.json -o r.html", "report a.json -o r.md", "report a.json"):
        shown = invoke(*name.split())
        assert shown.status == 0, shown.err
    assert "Throughput within a bound on latency" in (here / "r.html").read_text()
    assert decode(encode(one), "a.json") == one
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(encode(one)))


def test_two_searches_at_once_are_refused(invoke: Invoke) -> None:
    ended = invoke("run", "randomio", "null:1GiB", "--find-knee", "--curve")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    ended = invoke("run", "randomio", "null:1GiB", "--search", "rate")
    assert ended.status == 2
    assert "--latency-target" in ended.err
    ended = invoke(
        "run", "randomio", "null:1GiB", "--latency-target", "p99:1ms", "--until-steady", "--write-fraction", "0"
    )
    assert ended.status == 2
    assert "--until-steady" in ended.err


def test_on_the_null_target_the_generator_is_the_limit(invoke: Invoke, here: Path) -> None:
    ended = invoke(
        *("run", "randomio", "null:1GiB", "--latency-target", "p50:1s", "--seconds", "0.4", "--json", "-q"),
        *("--write-fraction", "0"),
    )
    found = json.loads(ended.out)
    assert found["kind"] == "target"
    assert found["search"]["outcome"] in ("generator", "never-failed")


@pytest.mark.promise(17)
def test_a_rate_with_too_few_arrivals_is_not_called_unserved() -> None:
    spec = resolve("randomio", [*READ_ONLY, ("rate", "0.851 IOPS"), ("seconds", "10")]).spec
    served = figures(stream(op(0.8, 10.0), seconds=10.0), seconds=10.0, series=[])
    found = replace(record(served), workload=spec)
    assert keeps_up(found)
    late = {verdict.check: verdict for verdict in judge(found)}
    assert late["on-time"].level is Level.OK
    fast = resolve("randomio", [*READ_ONLY, ("rate", "100 IOPS"), ("seconds", "10")]).spec
    half = replace(record(figures(stream(op(50.0, 10.0), seconds=10.0), seconds=10.0, series=[])), workload=fast)
    assert not keeps_up(half)


def test_a_stream_of_few_requests_that_falls_behind_is_seen_beside_a_busy_one() -> None:
    spec = resolve("mixed", [("sequential.rate", "20 IOPS"), ("random.rate", "1000 IOPS"), ("seconds", "60")]).spec
    ok = figures(stream(op(20.0), name="sequential"), stream(op(1000.0), name="random"), series=[])
    slow = figures(stream(op(10.0), name="sequential"), stream(op(1000.0), name="random"), series=[])
    assert behind(replace(record(ok), workload=spec)) == []
    assert behind(replace(record(slow), workload=spec)) == ["sequential"]


def test_a_bound_of_one_stream_looks_at_its_requests_alone(invoke: Invoke) -> None:
    (bound,) = parse_bounds(["log/write:p99:5ms"])
    assert (bound.stream, bound.operation, bound.figure) == ("log", "write", "p99 of log writes")
    assert parse_bounds([bound.asked]) == [bound]
    (every,) = parse_bounds(["log/all:p99:5ms"])
    assert every.asked == "log/all:p99.0:5000000ns"
    run = record(
        figures(stream(op(100.0, mean_ms=1.0), name="log"), stream(op(100.0, mean_ms=9.0), name="data"), series=[])
    )
    means = parse_bounds(["log/read:mean:5ms", "data/read:mean:5ms", "read:mean:5ms"])
    assert [seen(each, [run]).latency_ns for each in means] == [1e6, 9e6, 5e6]
    refused = invoke("run", "mixed", "one-sata", "--latency-target", "log/read:p99:5ms", "--seconds", "1")
    assert refused.status == 2
    assert "no stream `log`; there are sequential and random" in refused.err


@pytest.mark.promise(17)
def test_the_message_without_a_result_is_about_the_smallest_load() -> None:
    single = search(Queue(), "p99:20ms")  # one request at a time has a p99 of 46 ms
    assert single.outcome == "none-held"
    said = " ".join(sentences(single))
    assert said == "Not even 1 outstanding keeps p99 at most 20.0 ms: p99 of single requests is 45.8 ms already."
    point = replace(
        single.points[0],
        decision="undecided",
        requests=8,
        checks=[replace(single.points[0].checks[0], latency_ns=19.8e6)],
    )
    few = replace(single, points=[point])
    said = " ".join(sentences(few))
    assert "Not even" not in said
    assert "p99 19.8 ms was seen, which 8 requests cannot distinguish from the bound" in said
    assert "at least 381 are needed" in latency_search.verdicts(few)[0].evidence
    unserved = replace(single, variable="rate", points=[replace(point, sustained=False, decision="failed")])
    assert "were not served as they came" in " ".join(sentences(unserved))


@pytest.mark.promise(17)
@pytest.mark.parametrize(("slow", "fast", "decision"), [(1, 7, "undecided"), (4, 4, "undecided"), (6, 2, "failed")])
def test_a_percentile_fails_by_several_requests_only(slow: int, fast: int, decision: str) -> None:
    bound = Bound(operation="all", percentile=99.0, limit_ns=10 * MS)
    held = latency(1.0, histogram=_core.histogram_of([(MS, fast), (20 * MS, slow)]))
    assert seen(bound, [record(figures(stream(op(1.0, 8.0, latency=held))))]).decision == decision


@pytest.mark.promise(17)
def test_the_search_does_not_go_down_to_rates_with_too_few_requests() -> None:
    queue = Queue()
    found = search(queue, "p99:1ms", variable="rate")
    assert found.outcome == "none-held"
    # Runs of 5 s, five of them: 381 requests are needed.
    assert min(rate for rate in queue.asked[DISTURBED:]) >= 381 / 25


@pytest.mark.promise(17)
def test_tables_have_no_powers_of_ten() -> None:
    assert wilson(0.0, 5000)[0] == 0.0
    found = search(Queue())
    columns, rows = table_of(found)
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if re.search(r"[0-9]e[-+]?[0-9]", cell)]
    assert plain(4.2e-20) == "<0.001"
    assert "100 (" in " ".join(cells) or len(columns) > 5
