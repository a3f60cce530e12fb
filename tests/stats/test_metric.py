"""The numbers of a record by name."""

from __future__ import annotations

import pytest

import spindle
from spindle import _core
from spindle.host import diskstats
from spindle.result.figures import Cpu, Latency, figures_from_json
from spindle.result.record import Knee, KneePoint, KneeRecord, Tool
from spindle.run import quick
from spindle.stats import metric, names
from spindle.stats.names import Direction
from tests.cli.records import figures, op, quiet_read, record, stream


def measured(service_ns: int) -> Latency:
    """A latency with a real histogram: every request takes the same time."""
    workload = _core.Workload.parse("requests=200\n[[stream]]\nsize='4KiB'\n", "test", "test", [])

    read = figures_from_json(_core.Run.null(workload, 1 << 20, service_ns).figures()).streams[0].read
    assert read is not None
    return read.latency


def test_a_run_has_throughput_latency_and_cost_by_name() -> None:
    found = metric.values(quiet_read(iops=1000.0, mean_ms=2.0))
    assert found["iops"] == 1000.0
    assert found["read.iops"] == 1000.0
    assert found["bytes_per_s"] == 4096e3
    assert found["read.mean_ns"] == found["mean_ns"] == 2e6
    assert found["read.p99_ns"] == pytest.approx(2e6 * (0.5 + 99 / 50))
    assert found["cpu_ns_per_request"] == pytest.approx(3e9 / 60_000)
    assert found["cpu_percent"] == pytest.approx(100 * 3 / 60)
    assert found["device.%util"] == 99.0
    assert "write.iops" not in found
    assert metric.value(quiet_read(), "write.iops") is None


def test_streams_of_a_mix_have_names_of_their_own() -> None:
    first, second = stream(op(100.0), name="db"), stream(op(300.0, mean_ms=3.0), name="backup")
    found = metric.values(record(figures(first, second)))
    assert found["db/read.iops"] == found["db/iops"] == 100.0
    assert found["backup/read.mean_ns"] == 3e6
    assert found["read.iops"] == found["iops"] == 400.0
    assert found["read.mean_ns"] == pytest.approx((100 * 1e6 + 300 * 3e6) / 400)


def test_percentiles_of_several_streams_come_from_their_histograms_together() -> None:
    fast, slow = measured(0), measured(2_000_000)
    some = stream(op(300.0, latency=fast), name="fast")
    few = stream(op(300.0, latency=slow), name="slow")
    found = metric.values(record(figures(some, few)))
    assert found["read.p90_ns"] >= 2e6 > found["read.p50_ns"]
    assert found["read.p90_ns"] == _core.histogram_percentiles([fast.histogram, slow.histogram], [90.0])[0]


def test_streams_with_damaged_histograms_have_no_common_percentile() -> None:
    found = metric.values(record(figures(stream(op(100.0), name="a"), stream(op(100.0), name="b"))))
    assert "read.p99_ns" not in found
    assert "a/read.p99_ns" in found


def test_a_damaged_histogram_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="histogram"):
        _core.histogram_percentiles(["HISTF"], [50.0])


def test_a_sweep_has_its_knee() -> None:
    point = KneePoint(outstanding=8, iops=500.0, bytes_per_s=5e6, mean_latency_ns=1e6, p99_latency_ns=None, run="x")
    sweep = Knee(points=[point], knee=8, levelled_off=True)
    made = KneeRecord(
        id="20260101T000000Z-abcdef", started="", tool=Tool(version="0"), sweep=sweep, runs=[], verdicts=[]
    )
    assert metric.values(made) == {"knee.iops": 500.0, "knee.bytes_per_s": 5e6, "knee.outstanding": 8.0}


@pytest.mark.parametrize(
    ("name", "unit", "better", "words"),
    [
        ("iops", "1/s", Direction.HIGHER, "IOPS"),
        ("write.bytes_per_s", "B/s", Direction.HIGHER, "throughput of writes"),
        ("read.p99.9_ns", "ns", Direction.LOWER, "p99.9 latency of reads"),
        ("db/read.service.mean_ns", "ns", Direction.LOWER, "mean service time of reads, db"),
        ("device.r_await", "ms", Direction.LOWER, "r_await of the device"),
        ("device.rMB/s", "MiB/s", Direction.HIGHER, "rMB/s of the device"),
        ("device.%util", "%", Direction.NEITHER, "%util of the device"),
        ("my own", "", Direction.NEITHER, "my own"),
    ],
)
def test_a_name_has_a_unit_and_a_better_direction(name: str, unit: str, better: Direction, words: str) -> None:
    found = names.metric(name)
    assert (found.unit, found.better, found.words) == (unit, better, words)


def test_every_number_of_a_record_is_in_the_table() -> None:
    nothing = diskstats.Snapshot(0, {"sda": diskstats.Counters()})
    device = diskstats.delta(nothing, nothing)["sda"].iostat()
    mixed = figures(stream(op(100.0), name="db"), stream(op(300.0, mean_ms=3.0), name="backup"))
    for found in (metric.values(quiet_read()), metric.values(record(mixed)), device):
        for name in found:
            assert names.known(name) or names.known(f"device.{name}"), name


def test_the_steps_of_a_quick_look_have_their_names() -> None:
    assert {name for name, _ in quick._loads(quick.A_MINUTE, True, True)} == set(names.STEPS)


def test_no_two_entries_have_the_same_name() -> None:
    every = [name for entry in names.METRICS for name in entry.names]
    assert sorted(every) == sorted(set(every))
    for entry in names.METRICS:
        assert [names.known(name) for name in entry.names] == [entry] * len(entry.names)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("iosp", "iops"),
        ("raed.p99_ns", "read.p99_ns"),
        ("backup/write.bytes_per_sec", "backup/write.bytes_per_s"),
        ("device.r_wait", "device.r_await"),
        ("nothing like it", None),
    ],
)
def test_a_misspelt_name_is_not_known_and_has_a_nearest_one(written: str, meant: str | None) -> None:
    assert names.known(written) is None
    assert names.nearest(written) == meant


def test_large_requests_are_judged_by_bytes_small_ones_by_requests() -> None:
    small = metric.values(quiet_read())
    assert metric.main_metrics(list(small), small) == ["iops", "read.p99_ns"]
    large = metric.values(record(figures(stream(op(100.0, size=1 << 20)))))
    assert metric.main_metrics(list(large), large)[0] == "bytes_per_s"


def test_phases_of_another_tool_are_compared_each_for_itself() -> None:
    found = ["block-read/bytes_per_s", "block-read/read.bytes_per_s", "create/iops", "create/mean_ns"]
    assert metric.main_metrics(found) == ["block-read/bytes_per_s", "create/iops"]
    assert metric.main_metrics(["random-read.iops", "sequential-read.iops"]) == [
        "sequential-read.bytes_per_s",
        "random-read.iops",
    ]


def test_a_load_with_a_log_is_compared_by_its_commits_and_not_by_bytes() -> None:
    durable = spindle.run("wal", "one-sata-ssd", seconds=1).record
    found = metric.values(durable)
    assert found["dsync/commit.p99_ns"] == found["dsync/write.p99_ns"]
    assert found["fdatasync/commit.p99_ns"] == found["fdatasync/fsync.p99_ns"]
    assert found["group/commits_per_s"] > 4 * found["dsync/commits_per_s"]
    phases = ["dsync", "fdatasync", "append", "group"]
    wanted = [*(f"{each}/commits_per_s" for each in phases), *(f"{each}/commit.p99_ns" for each in phases)]
    assert metric.main_metrics(list(found), found) == wanted


def test_the_slowest_of_several_logs_counts() -> None:
    found = metric.values(spindle.run("mysql", "one-sata-ssd", seconds=2).record)
    assert found["commits_per_s"] == min(found["redo/write.iops"], found["binlog/write.iops"])
    assert found["commit.p99_ns"] == max(found["redo/write.p99_ns"], found["binlog/write.p99_ns"])
    assert metric.main_metrics(list(found), found) == ["commits_per_s", "commit.p99_ns", "iops", "read.p99_ns"]


def test_random_writes_that_are_durable_are_no_log() -> None:
    found = metric.values(spindle.run("vm-host", "one-sata-ssd", seconds=2).record)
    assert "commits_per_s" not in found


def test_a_modelled_machine_has_no_figures_of_the_cpu() -> None:
    idle = Cpu(user_ns=0, system_ns=0, voluntary_switches=0, involuntary_switches=0)
    found = metric.values(record(figures(stream(op(100.0)), cpu=idle)))
    assert "iops" in found
    assert not found.keys() & {"cpu_percent", "cpu_ns_per_request", "switches_per_request"}
