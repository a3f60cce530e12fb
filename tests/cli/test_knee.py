"""The sweep ends when throughput has stopped growing, and the knee is where nearly all of it is reached."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.report.terminal.sweep import sentence
from spindle.result.figures import Stopped
from spindle.result.record import Knee, KneePoint, Level
from spindle.run import knee
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload, resolve
from spindle.run.runner import LoadResult
from tests.cli.records import figures, op, record, series, stream
from tests.cli.test_tables import points

READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0")]


class FakeRunner:
    """A device with a mean service time and a number of servers: throughput grows until all are busy."""

    def __init__(self, servers: int, stop_at: int | None = None) -> None:
        self.servers = servers
        self.stop_at = stop_at
        self.asked: list[int] = []

    def measure(self, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult:
        outstanding = resolved.spec.outstanding
        self.asked.append(outstanding)
        iops = 100.0 * min(outstanding, self.servers)
        found = figures(stream(op(iops, 5.0, mean_ms=1000 * outstanding / iops), seconds=5.0), seconds=5.0)
        stopped = outstanding == self.stop_at
        if stopped:
            found = replace(found, ended_by=Stopped())
        return LoadResult(replace(record(found), workload=resolved.spec), stopped)


def sweep(servers: int, **changes: Any) -> tuple[knee.Sweep, FakeRunner]:
    bench = FakeRunner(servers, changes.pop("stop_at", None))
    return knee.sweep(bench, resolve("randomio", READ_ONLY), **changes), bench


@pytest.mark.parametrize("servers", [1, 4, 32])
def test_the_knee_of_a_device_with_n_servers_is_at_n(servers: int) -> None:
    found, _ = sweep(servers)
    assert found.knee.knee == servers
    assert found.knee.levelled_off


def test_the_sweep_doubles_and_ends_two_steps_after_the_last_gain() -> None:
    _, bench = sweep(8)
    assert bench.asked == [1, 2, 4, 8, 16, 32]


def test_a_device_that_never_levels_off_has_its_knee_beyond_the_sweep() -> None:
    found, bench = sweep(10**6, largest=64)
    assert bench.asked[-1] == 64
    assert not found.knee.levelled_off
    assert [each.level for each in knee.verdicts(found.knee, stopped=False)] == [Level.WARN]


def test_a_stopped_sweep_keeps_the_steps_before() -> None:
    found, _ = sweep(32, stop_at=8)
    assert found.stopped
    assert [point.outstanding for point in found.knee.points] == [1, 2, 4]
    assert knee.verdicts(found.knee, stopped=True)[0].level is Level.INVALID


def test_concurrency_is_spread_over_workers_without_changing_its_sum() -> None:
    for outstanding in (1, 2, 8, 64, 1024):
        found = dict(knee.concurrency(outstanding))
        assert int(found["workers"]) * int(found["depth"]) == outstanding


def test_a_load_that_is_paced_has_no_knee() -> None:
    with pytest.raises(Usage, match="`find_knee=`: stream main is bound by its rate"):
        knee.sweep(FakeRunner(1), resolve("randomio", [("rate", "100 IOPS")]))


def test_a_knee_needs_nearly_all_of_the_throughput() -> None:
    found = knee.knee_of(points((1, 100, 10), (2, 180, 11), (4, 290, 14), (8, 300, 27), (16, 300, 53)))
    assert found.knee == 4
    assert knee.knee_of([]).knee is None


@pytest.mark.promise(30)
def test_the_knee_has_an_interval_as_wide_as_the_throughput_scatters() -> None:
    def found(deviation: float) -> Knee:
        draw = random.Random(3)

        def step(outstanding: int) -> KneePoint:
            mean = 4096.0 * 100 * min(outstanding, 8.3)
            rates = [mean * (1 + draw.gauss(0, deviation)) for _ in range(10)]
            one = record(figures(stream(op(mean / 4096, 10.0)), series=series(rates), seconds=10.0))
            return knee.point_of(one, outstanding)

        return knee.knee_of([step(2**power) for power in range(6)])

    sure, unsure = found(0.005), found(0.2)
    assert sure.knee_range == (8, 8)
    assert unsure.knee_range is not None
    assert unsure.knee_range[0] < unsure.knee_range[1]
    assert "(95 % interval: 8)" in sentence(sure)


@pytest.mark.promise(30)
def test_steps_without_intervals_give_no_interval() -> None:
    found, _ = sweep(8)
    assert found.knee.knee_range is None
    assert "no interval" in sentence(found.knee)
