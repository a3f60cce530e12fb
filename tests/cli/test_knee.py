"""The sweep ends when throughput has stopped growing, and the knee is where nearly all of it is reached."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from records import figures, op, record, stream
from test_tables import points

from spindle.result.figures import Stopped
from spindle.result.record import Level
from spindle.run import knee
from spindle.run.bench import Measured
from spindle.run.errors import Usage
from spindle.run.resolve import Resolved, resolve

READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0")]


class FakeBench:
    """A device with a mean service time and a number of servers: throughput grows until all are busy."""

    def __init__(self, servers: int, stop_at: int | None = None) -> None:
        self.servers = servers
        self.stop_at = stop_at
        self.asked: list[int] = []

    def measure(self, resolved: Resolved, label: str | None = None) -> Measured:
        outstanding = resolved.spec.outstanding
        self.asked.append(outstanding)
        iops = 100.0 * min(outstanding, self.servers)
        found = figures(stream(op(iops, 5.0, mean_ms=1000 * outstanding / iops), seconds=5.0), seconds=5.0)
        stopped = outstanding == self.stop_at
        if stopped:
            found = replace(found, ended_by=Stopped())
        return Measured(replace(record(found), workload=resolved.spec), stopped)


def sweep(servers: int, **changes) -> tuple[knee.Sweep, FakeBench]:
    bench = FakeBench(servers, changes.pop("stop_at", None))
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
    with pytest.raises(Usage, match="--find-knee: stream main is bound by its rate"):
        knee.sweep(FakeBench(1), resolve("randomio", [("rate", "100 IOPS")]))


def test_a_knee_needs_nearly_all_of_the_throughput() -> None:
    found = knee.knee_of(points((1, 100, 10), (2, 180, 11), (4, 290, 14), (8, 300, 27), (16, 300, 53)))
    assert found.knee == 4
    assert knee.knee_of([]).knee is None
