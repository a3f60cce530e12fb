"""Each verdict: what brings it about, and what does not."""

from __future__ import annotations

import errno
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.report.terminal import verdicts
from spindle.report.terminal.style import Style
from spindle.result.figures import EndedByError, EndedBySteady, Error, Late, Stopped
from spindle.result.record import Level, RunRecord, Sample, SettingChange, Settings, TemporaryChange, Verdict
from spindle.result.rules import judge
from spindle.result.target import Target
from tests.cli import records
from tests.cli.records import MIB, counters, figures, latency, op, quiet_read, record, series, stream

READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0")]


def verdict(found: RunRecord, check: str) -> Verdict:
    matching = [each for each in judge(found) if each.check == check]
    assert len(matching) == 1, (check, judge(found))
    return matching[0]


def checks(found: RunRecord) -> dict[str, Level]:
    return {each.check: each.level for each in judge(found)}


def test_a_quiet_minute_on_a_saturated_disk_has_nothing_to_complain_about() -> None:
    assert set(checks(quiet_read()).values()) == {Level.OK}


def test_every_warning_says_what_was_seen_in_numbers_and_what_to_do() -> None:
    bad = record(
        figures(stream(op(50.0, 2.0, mean_ms=1.0), seconds=2.0, mean_outstanding=8.0), seconds=2.0),
        devices=[counters(0, 90 * MIB, 2.0)],
        overrides=READ_ONLY,
        settings=Settings(
            before={"a": "1"}, after={"a": "2"}, changed=[SettingChange(name="a", before="1", after="2")]
        ),
    )
    complaints = [each for each in judge(bad) if each.level is not Level.OK]
    assert len(complaints) >= 5
    for each in complaints:
        assert each.numbers
        assert any(char.isdigit() for char in each.evidence)
        assert each.advice


# --- caches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device_share", "level"),
    [(1.0, Level.OK), (1.3, Level.OK), (0.96, Level.OK), (0.9, Level.WARN), (0.7, Level.INVALID)],
)
def test_bytes_that_no_device_moved_came_from_a_cache(device_share: float, level: Level) -> None:
    found = figures(stream(op(16_000.0)))
    moved = found.total_read_bytes * device_share
    seen = verdict(record(found, devices=[counters(moved)], overrides=READ_ONLY), "cache-share")
    assert seen.level is level
    assert seen.numbers["share"] == pytest.approx(max(0.0, 1 - device_share))


def on_file(**extents: Any) -> RunRecord:
    found = figures(stream(op(16_000.0)))
    half = record(found, devices=[counters(found.total_read_bytes / 2)], overrides=READ_ONLY)
    whole = {"size_bytes": 1 << 30, "hole_bytes": 0, "unwritten_bytes": 0, "compressed_bytes": 0, "compresses": ""}
    detail = {**half.target.detail, "extents": {**whole, **extents}}
    return replace(half, target=replace(half.target, kind="file", detail=detail))


@pytest.mark.promise(14)
@pytest.mark.parametrize(
    ("extents", "words"),
    [
        ({"hole_bytes": 1 << 29}, "512 MiB in holes, of the file's 1 GiB"),
        ({"unwritten_bytes": 1 << 29}, "512 MiB allocated but never written"),
        ({"compresses": "btrfs, mounted with compress=zstd"}, "compressed (btrfs, mounted with compress=zstd)"),
        ({}, "although the load is direct"),
    ],
    ids=["sparse", "unwritten", "compressed", "none of these"],
)
def test_direct_reads_that_reach_no_device_get_no_advice_to_use_direct_io(extents: dict[str, Any], words: str) -> None:
    seen = verdict(on_file(**extents), "cache-share")
    assert seen.level is Level.INVALID
    assert words in seen.evidence
    assert "`direct=" not in seen.advice


def test_the_cache_share_is_given_in_bytes_and_percent() -> None:
    found = figures(stream(op(100_000.0, 10.0), seconds=10.0), seconds=10.0)
    seen = verdict(
        record(found, devices=[counters(10 * MIB)], overrides=[*READ_ONLY, ("direct", "false")]), "cache-share"
    )
    assert "3.81 GiB" in seen.evidence
    assert "10 MiB" in seen.evidence
    assert "99.7 %" in seen.evidence
    assert "`direct=True`" in seen.advice


def test_writes_that_are_still_in_the_cache_at_the_end_do_not_count() -> None:
    found = figures(stream(None, op(1000.0, 10.0, size=MIB), seconds=10.0), seconds=10.0)
    seen = verdict(record(found, devices=[counters(0, 100 * MIB)], preset="sdd-write"), "cache-share")
    assert seen.level is Level.INVALID
    assert "still in a cache" in seen.evidence
    assert "`end_fsync=True`" in seen.advice


def test_a_target_without_a_device_is_unknown_and_not_ok() -> None:
    found = figures(stream(op(16_000.0)))
    target = Target(asked="t", kind="file", size_bytes=MIB, has_device=False, detail={"file_system": "tmpfs"})
    seen = verdict(record(found, devices=[], overrides=READ_ONLY, target=target), "cache-share")
    assert seen.level is Level.WARN
    assert "unknown" in seen.evidence
    assert "tmpfs" in seen.evidence


def test_a_loop_device_whose_file_is_cached_is_distinguished_from_its_disk() -> None:
    found = figures(stream(op(16_000.0)))
    loop = counters(found.total_read_bytes, name="loop0")
    disk = counters(0, name="sda", role="below")
    seen = checks(record(found, devices=[loop, disk], overrides=READ_ONLY))
    assert seen["cache-share"] is Level.OK
    assert seen["cache-below"] is Level.WARN


def test_a_file_system_on_two_disks_is_judged_by_both_together() -> None:
    found = figures(stream(op(16_000.0)))
    half = found.total_read_bytes / 2
    both = [counters(half, name="sda"), counters(half, name="sdb")]
    assert verdict(record(found, devices=both, overrides=READ_ONLY), "cache-share").level is Level.OK


def test_a_data_set_that_fits_the_drives_own_cache_is_warned_about() -> None:
    found = quiet_read()
    small = replace(
        found.target, detail={**found.target.detail, "drive_cache_bytes": 64 * MIB, "region_bytes": 10 * MIB}
    )
    assert verdict(replace(found, target=small), "working-set").level is Level.WARN


# --- other traffic ---------------------------------------------------------------------------------------------------


def test_bytes_the_load_did_not_ask_for_are_other_traffic() -> None:
    found = figures(stream(op(16_000.0)))
    seen = verdict(record(found, devices=[counters(found.total_read_bytes * 1.2)], overrides=READ_ONLY), "other-io")
    assert seen.level is Level.WARN
    assert "sda read 768 MiB" in seen.evidence or "sda read 750 MiB" in seen.evidence


def test_a_few_small_writes_of_others_hurt_a_slow_disk() -> None:
    found = figures(stream(op(100.0)))
    busy = counters(found.total_read_bytes, 60 * 20 * 4096)
    assert verdict(record(found, devices=[busy], overrides=READ_ONLY), "other-io").level is Level.WARN


def test_the_same_few_writes_are_nothing_to_a_fast_one() -> None:
    found = figures(stream(op(100_000.0)))
    busy = counters(found.total_read_bytes, 60 * 20 * 4096)
    assert verdict(record(found, devices=[busy], overrides=READ_ONLY), "other-io").level is Level.OK


def test_reads_of_other_programs_do_not_count_for_the_load() -> None:
    found = figures(stream(op(16_000.0)))
    busy = counters(found.total_read_bytes)
    fetched = record(found, devices=[busy], overrides=READ_ONLY, fetched_bytes=10 * MIB)
    assert verdict(fetched, "cache-share").level is Level.INVALID
    assert verdict(fetched, "other-io").level is Level.WARN


def test_the_read_ahead_of_a_buffered_reader_is_its_own() -> None:
    found = figures(stream(op(16_000.0)))
    busy = counters(found.total_read_bytes * 3)
    overrides = [*READ_ONLY, ("direct", "false")]
    assert verdict(record(found, devices=[busy], overrides=overrides), "other-io").level is Level.OK


def test_the_journal_of_a_file_system_counts_for_the_load() -> None:
    found = figures(stream(op(800.0), op(200.0)))
    target = Target(asked="t", kind="file", size_bytes=MIB)
    busy = counters(found.total_read_bytes, found.total_write_bytes * 1.8)
    assert verdict(record(found, devices=[busy], target=target), "other-io").level is Level.OK
    assert verdict(record(found, devices=[busy]), "other-io").level is Level.WARN


def test_zeroings_of_the_load_are_its_own_even_if_a_driver_counts_them_as_writes() -> None:
    zeroed = op(1000.0)
    found = figures(stream(None, zero=zeroed, total_bytes=zeroed.bytes))
    overrides = [*READ_ONLY, ("zero_fraction", "1")]
    assert (
        verdict(record(found, devices=[counters(0, zeroed.bytes)], overrides=overrides), "other-io").level is Level.OK
    )
    more = record(found, devices=[counters(0, zeroed.bytes * 1.5)], overrides=overrides)
    assert verdict(more, "other-io").level is Level.WARN


def test_other_writes_next_to_a_test_file_may_come_from_its_file_system() -> None:
    found = figures(stream(op(800.0), op(200.0)))
    target = Target(asked="t", kind="file", size_bytes=MIB)
    seen = verdict(
        record(found, devices=[counters(found.total_read_bytes, found.total_write_bytes * 3)], target=target),
        "other-io",
    )
    assert seen.level is Level.WARN
    assert "file system" in seen.advice


# --- completeness ----------------------------------------------------------------------------------------------------


def test_a_stopped_run_is_partial_and_says_after_how_long() -> None:
    found = replace(quiet_read(), figures=figures(stream(op(100.0, 5.0), seconds=5.0), seconds=5.0, ended_by=Stopped()))
    seen = verdict(found, "interrupted")
    assert seen.level is Level.INVALID
    assert "after 5 s of 1 min" in seen.evidence


def test_a_run_ended_by_an_error_names_it_and_its_place() -> None:
    end = EndedByError(errno=errno.EIO, op="read", offset=8192, len=4096)
    failed = stream(op(100.0, 5.0), seconds=5.0, errors=[Error(errno=errno.EIO, op="read", count=1, first_offset=8192)])
    found = replace(quiet_read(), figures=figures(failed, seconds=5.0, ended_by=end))
    seen = verdict(found, "interrupted")
    assert seen.level is Level.INVALID
    assert "read of 4 KiB at byte 8192 failed with EIO (Input/output error)" in seen.evidence
    assert "errors" not in checks(found)


@pytest.mark.parametrize(("count", "level"), [(0, Level.OK), (3, Level.WARN), (60_000, Level.INVALID)])
def test_tolerated_errors_are_counted_against_the_requests(count: int, level: Level) -> None:
    errors = [Error(errno=errno.EIO, op="read", count=count, first_offset=4096)] if count else []
    found = replace(quiet_read(), figures=figures(stream(op(16_000.0), errors=errors)))
    assert verdict(found, "errors").level is level


def test_less_than_a_minute_is_short_and_so_are_few_requests() -> None:
    assert verdict(quiet_read(seconds=10.0), "too-short").level is Level.WARN
    assert "too few for a 99th percentile" in verdict(quiet_read(iops=2.0), "too-short").evidence
    assert verdict(quiet_read(), "too-short").level is Level.OK


def test_a_run_without_a_request_is_not_a_measurement() -> None:
    assert verdict(replace(quiet_read(), figures=figures(stream(None))), "too-short").level is Level.INVALID


# --- consistency -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late_ms", "slowest_counted_ms", "hung"),
    [(2500, 8, True), (101, 100, True), (100, 8, False), (2500, 2600, False), (0, 8, False)],
)
def test_a_request_that_hung_at_the_end_is_reported(late_ms: int, slowest_counted_ms: int, hung: bool) -> None:
    found = op(16_000.0, latency=latency(1.0, max_ns=slowest_counted_ms * 10**6))
    seen = checks(
        record(figures(stream(found, late=Late(requests=3, max_latency_ns=late_ms * 10**6))), overrides=READ_ONLY)
    )
    assert ("late" in seen) is hung
    assert seen.get("late", Level.WARN) is Level.WARN


def test_a_slow_fsync_that_counted_explains_a_late_one() -> None:
    slow = op(10.0, latency=latency(1.0, max_ns=3 * 10**9))
    found = stream(op(16_000.0), fsync=slow, late=Late(requests=1, max_latency_ns=2 * 10**9))
    assert "late" not in checks(record(figures(found), overrides=READ_ONLY))


@pytest.mark.parametrize(
    ("factor", "level"), [(1.0, Level.OK), (1.04, Level.OK), (1.1, Level.INVALID), (0.9, Level.INVALID)]
)
def test_rates_and_latencies_must_agree_with_the_requests_under_way(factor: float, level: Level) -> None:
    found = stream(op(16_000.0, mean_ms=1.0), mean_outstanding=16.0 / factor)
    assert verdict(record(figures(found), overrides=READ_ONLY), "littles-law").level is level


def test_littles_law_counts_fsyncs_and_the_service_time_of_an_open_loop() -> None:
    read = replace(op(1000.0, mean_ms=9.0), service=records.latency(1.0))
    found = stream(read, mean_outstanding=1.0 + 2.0, fsync=op(100.0, size=0, mean_ms=20.0))
    assert verdict(record(figures(found), overrides=READ_ONLY), "littles-law").level is Level.OK


def test_a_late_request_at_the_end_is_outstanding_without_a_counted_latency() -> None:
    # Of 16 outstanding requests 8 hung for the last 2 s of 10: 1.6 on average are in no latency.
    hung = stream(
        op(16_000.0, 10.0, mean_ms=0.9),
        seconds=10.0,
        mean_outstanding=16.0,
        late=Late(requests=8, max_latency_ns=2 * 10**9),
    )
    assert verdict(record(figures(hung, seconds=10.0), overrides=READ_ONLY), "littles-law").level is Level.OK
    quick = replace(hung, late=Late(requests=8, max_latency_ns=10**6))
    assert verdict(record(figures(quick, seconds=10.0), overrides=READ_ONLY), "littles-law").level is Level.INVALID


def test_littles_law_says_nothing_where_requests_failed() -> None:
    failed = stream(op(100.0), mean_outstanding=16.0, errors=[Error(errno=5, op="read", count=9, first_offset=0)])
    assert "littles-law" not in checks(record(figures(failed), overrides=READ_ONLY))


def test_littles_law_says_nothing_of_time_stamps_by_batch() -> None:
    found = figures(stream(op(16_000.0), mean_outstanding=1.0))
    batch = replace(found, generator=replace(found.generator, timestamps="batch"))
    assert "littles-law" not in checks(record(batch, overrides=READ_ONLY))


# --- steadiness ------------------------------------------------------------------------------------------------------


def seen_in(rates: list[float], **changes: Any) -> Verdict:
    found = figures(stream(op(16_000.0)), series=series(rates), **changes)
    return verdict(replace(quiet_read(), figures=found), "steady")


def noisy(shape: list[float], deviation: float = 0.03, correlation: float = 0.0, seed: int = 1) -> list[float]:
    draw, state = random.Random(seed), 0.0
    found = []
    for level in shape:
        state = correlation * state + math.sqrt(1 - correlation**2) * draw.gauss(0, 1)
        found.append(max(0.0, 100e6 * (level + deviation * state)))
    return found


@pytest.mark.promise(9)
@pytest.mark.parametrize("at", [6, 15, 30, 45, 54])
@pytest.mark.parametrize("after", [0.0, 0.07, 0.2, 0.7, 1.3, 5.0])
def test_a_change_of_level_is_reported_with_its_time_and_sizes(at: int, after: float) -> None:
    seen = seen_in(noisy([1.0] * at + [after] * (60 - at)))
    assert seen.level is Level.WARN
    assert f"at {at} s of the run" in seen.evidence
    assert ("fell from" if after < 1 else "rose from") in seen.evidence
    assert "100 MB/s" in seen.evidence or "MB/s" in seen.evidence
    assert seen.numbers["at_s"] == at
    assert seen.numbers["change"] == pytest.approx(after - 1, abs=0.06)


@pytest.mark.promise(9)
def test_a_fall_from_3000_to_200_in_mid_run_is_not_steady() -> None:
    seen = seen_in([3000 * 4096.0 + 4096 * 7 * (at % 3) for at in range(30)] + [200 * 4096.0] * 30)
    assert seen.level is Level.WARN
    assert "12.3 MB/s to 819 kB/s (-93.3 %) at 30 s" in seen.evidence


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([1 - at / 120 for at in range(60)], "little by little"),
        ([0.3 if 20 <= at < 23 else 1.0 for at in range(60)], "from 20 s to 23 s of the run and came back"),
        ([1 - 0.5 * (at % 15) / 15 for at in range(60)], "drifted and jumped back at 15 s, 30 s, 45 s"),
        ([1.0 if at // 15 % 2 else 0.6 for at in range(60)], "changed its level 3 times"),
        ([1.0 if at % 2 else 0.6 for at in range(60)], "period of 2 s"),
        ([1 + 0.2 * math.sin(at) for at in range(60)], "swings between"),
        ([1.0 if random.Random(at).random() < 0.5 else 0.5 for at in range(60)], "to and fro between"),
        ([1.0] * 5 + [0.4] * 5, "at 5 s of the run"),
    ],
    ids=["drift", "spike", "sawtooth", "levels", "each second", "wave", "flapping", "ten seconds"],
)
def test_the_departure_of_a_load_from_its_level_is_named(shape: list[float], words: str) -> None:
    seen = seen_in(noisy(shape, 0.02))
    assert seen.level is Level.WARN
    assert words in seen.evidence


@pytest.mark.promise(9)
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("seconds", [10, 30, 60])
def test_noise_is_not_a_change_even_if_neighbours_are_similar(correlation: float, seconds: int) -> None:
    seen = [seen_in(noisy([1.0] * seconds, 0.1, correlation, seed)) for seed in range(100, 200)]
    alarms = sum(each.level is not Level.OK and not each.evidence.startswith("unknown") for each in seen)
    assert alarms <= 8  # 5 % are allowed: more than 8 of 100 have a chance of 6 in 100 at most


@pytest.mark.promise(9)
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize(("seconds", "deviation"), [(10, 0.05), (10, 0.1), (30, 0.1), (60, 0.1)])
@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("after", [0.7, 1.3, 0.5])
def test_a_step_of_30_percent_is_found_or_the_run_is_not_called_steady(
    correlation: float, seconds: int, deviation: float, at: float, after: float
) -> None:
    before = max(1, round(at * seconds))
    shape = [1.0] * before + [after] * (seconds - before)
    called_ok = sum(seen_in(noisy(shape, deviation, correlation, seed)).level is Level.OK for seed in range(1000, 1040))
    assert called_ok <= 4  # 5 % are allowed, 1 % is usual: more than 4 of 40 have a chance of 5 in 100 at most


@pytest.mark.promise(9)
def test_a_run_that_is_too_noisy_to_see_a_step_says_so_and_how_long_to_run() -> None:
    seen = seen_in(noisy([1.0] * 10, 0.15))
    assert seen.level is Level.WARN
    assert seen.evidence.startswith("unknown: 10 intervals of 1 s are too few for their noise: a step of 30 %")
    assert seen.advice == "run longer: `seconds=60`"


@pytest.mark.promise(9)
def test_a_steady_run_says_which_steps_are_ruled_out() -> None:
    seen = seen_in(noisy([1.0] * 60, 0.02))
    assert seen.level is Level.OK
    assert "a step of 4.0 % or more is ruled out" in seen.evidence
    assert seen.numbers["ruled_out"] == pytest.approx(0.04)


@pytest.mark.promise(9)
def test_a_load_with_a_pace_of_its_own_is_not_steady_when_its_latency_changes() -> None:
    found = figures(stream(op(1000.0)), series=series([1000 * 4096.0] * 60))
    slow = [
        replace(each, streams=[replace(each.streams[0], read_latency_ns=10**9 * (1 if at < 30 else 20))])
        for at, each in enumerate(found.series)
    ]
    paced = record(replace(found, series=slow), overrides=[*READ_ONLY, ("rate", "1000 IOPS")])
    seen = verdict(paced, "steady")
    assert seen.level is Level.WARN
    assert "the mean latency rose from 1 ms to 20 ms" in seen.evidence.replace(".00", "").replace(".0 ", " ")


@pytest.mark.parametrize(
    ("rates", "level"),
    [
        ([100e6] * 30, Level.OK),
        ([100e6, 104e6] * 15, Level.OK),
        ([100e6] * 25 + [100e6, 60e6, 100e6, 150e6, 100e6], Level.WARN),
        ([100e6 - 1e6 * at for at in range(30)], Level.WARN),
        ([100e6] * 3, Level.WARN),
    ],
    ids=["flat", "small ripple", "rough end", "slow drift that the SNIA rule accepts", "too few"],
)
def test_a_run_is_steady_when_its_series_is(rates: list[float], level: Level) -> None:
    found = replace(quiet_read(), figures=figures(stream(op(16_000.0)), series=series(rates)))
    assert verdict(found, "steady").level is level


def test_a_run_that_ended_when_steady_gets_no_advice_to_run_until_steady() -> None:
    drift = figures(
        stream(op(16_000.0)), series=series([100e6 - 1e6 * at for at in range(30)]), ended_by=EndedBySteady()
    )
    seen = verdict(replace(quiet_read(), figures=drift), "steady")
    assert seen.level is Level.WARN
    assert "`ramp=" in seen.advice
    assert "`until_steady=" not in seen.advice


def test_an_interval_cut_off_by_the_end_does_not_count() -> None:
    cut = series([100e6] * 20)
    cut.append(replace(cut[-1], length_ns=10**8, streams=[replace(cut[-1].streams[0], read_bytes=0)]))
    found = replace(quiet_read(), figures=figures(stream(op(16_000.0)), series=cut))
    assert verdict(found, "steady").level is Level.OK


# --- limits of control groups ----------------------------------------------------------------------------------------


def limited(io: list[dict[str, Any]], **detail: Any) -> RunRecord:
    found = quiet_read()
    limits = {"io": io, **detail}
    return replace(found, target=replace(found.target, detail={**found.target.detail, "limits": limits}))


@pytest.mark.promise(14)
def test_a_limit_of_a_control_group_that_was_reached_is_named_as_the_cause() -> None:
    reads = {"group": "/job", "device": "sda", "kind": "riops", "value": 16_100}
    seen = verdict(limited([reads]), "group-limit")
    assert seen.level is Level.WARN
    assert "control group /job limits reads of sda to 16 100/s" in seen.evidence
    assert "saturated" not in checks(limited([reads]))


@pytest.mark.promise(14)
@pytest.mark.parametrize(("kind", "value"), [("riops", 40_000), ("wiops", 10), ("rbps", 10**9)])
def test_a_limit_that_was_not_reached_is_not_the_cause(kind: str, value: int) -> None:
    seen = verdict(limited([{"group": "/job", "device": "sda", "kind": kind, "value": value}]), "group-limit")
    assert seen.level is Level.OK


@pytest.mark.promise(14)
def test_memory_at_its_limit_is_reported_for_a_buffered_run_only() -> None:
    direct = limited([], memory_bytes=1 << 30, memory_group="/job")
    direct = replace(direct, activity=replace(direct.activity, group_memory_full=7))
    assert "group-limit" not in checks(direct)
    buffered = replace(direct, workload=record(direct.figures, overrides=[("direct", "false")]).workload)
    assert "/job allows 1 GiB of memory" in verdict(buffered, "group-limit").evidence


@pytest.mark.promise(14)
def test_all_workers_together_may_lack_cpus_though_none_of_them_uses_a_whole_one() -> None:
    found = quiet_read()
    busy = replace(found.figures, cpu=replace(found.figures.cpu, user_ns=50 * 10**9, system_ns=65 * 10**9))
    seen = verdict(replace(found, figures=busy, activity=replace(found.activity, cpus=2.0)), "generator-bound")
    assert seen.level is Level.WARN
    assert "16 workers together used 1.92 of the 2.00 CPUs" in seen.evidence
    spare = replace(found, figures=busy, activity=replace(found.activity, cpus=8.0))
    assert verdict(spare, "generator-bound").level is Level.OK
    half = replace(found.figures, cpu=replace(found.figures.cpu, user_ns=30 * 10**9, system_ns=30 * 10**9))
    full = replace(found, figures=half, activity=replace(found.activity, cpus=2.0, cpus_idle=0.01))
    assert verdict(full, "generator-bound").level is Level.WARN
    assert verdict(replace(full, activity=replace(full.activity, cpus_idle=0.4)), "generator-bound").level is Level.OK


# --- the load --------------------------------------------------------------------------------------------------------


def with_generator(**changes: object) -> RunRecord:
    found = quiet_read()
    return replace(found, figures=replace(found.figures, generator=replace(found.figures.generator, **changes)))


def test_a_worker_that_never_waits_is_the_limit() -> None:
    seen = verdict(with_generator(busiest_worker=0.99, ceiling_iops=16_500.0), "generator-bound")
    assert seen.level is Level.WARN
    assert "99.0 %" in seen.evidence


def test_a_worker_that_polls_is_busy_by_design() -> None:
    found = with_generator(busiest_worker=1.0, features=["iopoll"])
    assert verdict(found, "generator-bound").level is Level.OK


def test_one_small_request_at_a_time_measures_latency() -> None:
    found = record(figures(stream(op(5000.0, mean_ms=0.2))), overrides=[*READ_ONLY, ("workers", "1")])
    seen = verdict(found, "saturated")
    assert seen.level is Level.WARN
    assert "takes 32 at once" in seen.evidence
    assert "`find_knee=True`" in seen.advice


def test_a_device_with_time_to_spare_is_not_saturated() -> None:
    found = figures(stream(op(16_000.0)))
    idle = counters(found.total_read_bytes, iostat={"%util": 60.0, "aqu-sz": 16.0})
    seen = verdict(record(found, devices=[idle], overrides=READ_ONLY), "saturated")
    assert seen.level is Level.WARN
    assert "60 %" in seen.evidence


def test_a_load_with_a_limited_rate_gets_no_advice_to_saturate() -> None:
    found = record(figures(stream(op(100.0))), overrides=[*READ_ONLY, ("rate_limit", "100 IOPS")])
    assert "saturated" not in checks(found)
    assert "achieved-depth" not in checks(found)


def test_fewer_requests_under_way_than_requested_are_reported() -> None:
    found = record(figures(stream(op(16_000.0, mean_ms=0.5))), overrides=READ_ONLY)
    seen = verdict(found, "achieved-depth")
    assert seen.level is Level.WARN
    assert "of 16 outstanding requests 8.00" in seen.evidence


def test_requests_that_wait_above_the_device_are_found() -> None:
    found = figures(stream(op(16_000.0)))
    shallow = counters(found.total_read_bytes, iostat={"%util": 99.0, "aqu-sz": 1.1})
    seen = verdict(record(found, devices=[shallow], overrides=READ_ONLY), "achieved-depth")
    assert seen.level is Level.WARN
    assert "waited above" in seen.evidence


def test_an_open_loop_that_falls_behind_is_reported() -> None:
    overrides = [*READ_ONLY, ("rate", "2000 IOPS")]
    late = record(figures(stream(op(1000.0), max_lag_ns=9 * 10**9)), overrides=overrides)
    assert verdict(late, "on-time").level is Level.WARN
    on_time = record(figures(stream(op(2000.0))), overrides=overrides)
    assert verdict(on_time, "on-time").level is Level.OK


@pytest.mark.parametrize(
    ("spacing", "got", "level"),
    [("poisson", 460.0, Level.OK), ("constant", 460.0, Level.WARN), ("poisson", 420.0, Level.WARN)],
)
def test_random_arrivals_may_be_fewer_by_chance(spacing: str, got: float, level: Level) -> None:
    overrides = [*READ_ONLY, ("rate", "500 IOPS"), ("spacing", spacing)]
    found = figures(stream(op(got, 2.0), seconds=2.0), seconds=2.0)
    assert verdict(record(found, overrides=overrides), "on-time").level is level


def test_an_unsupported_operation_gets_no_advice_to_read_the_kernels_log() -> None:
    ended = EndedByError(errno=errno.EOPNOTSUPP, op="trim", offset=0, len=4096)
    seen = verdict(record(figures(stream(op(1.0)), ended_by=ended)), "interrupted")
    assert "leave the trims out" in seen.advice
    polled = with_generator(features=["iopoll"])
    polled = replace(polled, figures=replace(polled.figures, ended_by=replace(ended, op="read")))
    assert "leave `iopoll=` out" in verdict(polled, "interrupted").advice


# --- conditions ------------------------------------------------------------------------------------------------------


def test_a_setting_that_changed_makes_the_run_invalid() -> None:
    change = SettingChange(name="sda.scheduler", before="none", after="bfq")
    found = replace(
        quiet_read(),
        settings=Settings(before={"sda.scheduler": "none"}, after={"sda.scheduler": "bfq"}, changed=[change]),
    )
    seen = verdict(found, "settings")
    assert seen.level is Level.INVALID
    assert "sda.scheduler: none -> bfq" in seen.evidence


@pytest.mark.promise(14)
@pytest.mark.parametrize(("seconds", "level"), [(1.0, Level.WARN), (20.0, Level.INVALID)])
def test_a_setting_that_was_changed_and_restored_is_reported(seconds: float, level: Level) -> None:
    found = quiet_read()
    passing = TemporaryChange(name="sda.scheduler", before="none", during="bfq", from_s=12.0, to_s=12.0 + seconds)
    seen = verdict(replace(found, settings=replace(found.settings, temporary=[passing])), "settings")
    assert seen.level is level
    assert f"sda.scheduler: none -> bfq from 12 s to {12 + seconds:.0f} s" in seen.evidence


def test_findings_of_the_idle_check_become_a_verdict() -> None:
    finding = {
        "check": "array_sync",
        "level": "invalid",
        "text": "md0 is busy with its resync",
        "evidence": {"done": 0.5},
    }
    seen = verdict(replace(quiet_read(), preflight={"findings": [finding]}), "before-array-sync")
    assert seen.level is Level.INVALID
    assert seen.numbers == {"done": 0.5}


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"throttle_events": 3}, "during-throttling"),
        ({"cpu_steal": 0.1}, "during-steal"),
        ({"cpu_others": 0.5}, "during-cpu"),
    ],
)
def test_disturbances_during_the_run_are_reported(change: dict[str, float], check: str) -> None:
    found = quiet_read()
    assert verdict(replace(found, activity=replace(found.activity, **change)), check).level is Level.WARN


def beside(*samples: Sample, **changes: Any) -> RunRecord:
    """A quiet run with these samples."""
    found = quiet_read()
    return replace(found, activity=replace(found.activity, samples=list(samples), **changes))


def second(number: int, **changes: Any) -> Sample:
    return Sample(at_s=float(number), seconds=1.0, **changes)


def test_a_burst_of_other_programs_is_reported_with_its_time_though_the_mean_is_low() -> None:
    samples = [second(number, cpu_others=0.8 if number in (12, 13, 14) else 0.01) for number in range(1, 61)]
    seen = verdict(beside(*samples, cpu_others=0.05), "during-cpu")
    assert seen.level is Level.WARN
    assert "for 3 s (worst: 80 % at 12 s)" in seen.evidence
    assert seen.numbers["burst_seconds"] == 3
    single = [second(number, cpu_others=0.8 if number == 12 else 0.01) for number in range(1, 61)]
    assert "during-cpu" not in checks(beside(*single, cpu_others=0.02))


def test_an_array_check_during_a_part_of_the_run_makes_it_invalid() -> None:
    working = [second(number, array_actions={"md0": "check"} if 5 <= number <= 9 else {}) for number in range(1, 61)]
    seen = verdict(beside(*working), "during-array-sync")
    assert seen.level is Level.INVALID
    assert "md0 was busy with its check from 4 s to 9 s" in seen.evidence


def test_the_first_second_of_heat_is_named() -> None:
    samples = [second(number, throttle_events=2 if number > 33 else 0) for number in range(1, 61)]
    seen = verdict(beside(*samples, throttle_events=54), "during-throttling")
    assert "54 times during the run, first at 34 s" in seen.evidence


def test_a_drive_at_its_temperature_limit_is_reported_and_one_below_is_not() -> None:
    samples = [second(number, temperatures={"nvme0n1": 40.0 + number}) for number in range(1, 46)]
    seen = verdict(beside(*samples, temperature_limits={"nvme0n1": 82.0}), "during-temperature")
    assert "nvme0n1 reached 85 C at 45 s; from 82 C on" in seen.evidence
    assert "during-temperature" not in checks(beside(*samples, temperature_limits={"nvme0n1": 90.0}))


def test_swapping_during_the_load_is_reported() -> None:
    samples = [second(number, swapped_pages=600 if number == 20 else 0) for number in range(1, 61)]
    seen = verdict(beside(*samples), "during-swap")
    assert "600 pages during the run, most at 20 s" in seen.evidence
    assert "during-swap" not in checks(beside(*[replace(one, swapped_pages=0) for one in samples]))


def test_other_traffic_is_reported_with_its_time_and_the_running_programs() -> None:
    found = quiet_read()
    busy = counters(found.figures.total_read_bytes + 5 * 10**9)
    samples = [second(number, other_read_bytes_per_s=2e9 if number == 7 else 1e7) for number in range(1, 61)]
    during = replace(found.activity, samples=samples, jobs=[{"pid": 31, "name": "dd"}])
    seen = verdict(replace(found, devices=[busy], activity=during), "other-io")
    assert seen.level is Level.WARN
    assert "most at 7 s: 2.00 GB/s; seen moving data there: dd (process 31)" in seen.evidence


def test_unknown_values_of_the_cpus_give_no_verdict() -> None:
    found = beside(second(1), cpu_others=None, cpu_steal=None, cpu_iowait=None)
    assert not [check for check in checks(found) if check.startswith("during-")]


def test_a_target_that_vanished_makes_the_run_invalid() -> None:
    found = quiet_read()
    gone = replace(found.target, detail={**found.target.detail, "trouble": "/dev/sda has disappeared"})
    assert verdict(replace(found, target=gone), "target").level is Level.INVALID


def test_the_null_target_measures_the_generators_own_cost() -> None:
    found = replace(quiet_read(), target=Target(asked="null:1GiB", kind="null", size_bytes=1 << 30, has_device=False))
    assert checks(found) == {"generator-bound": Level.OK}


def test_every_check_is_on_the_page_about_verdicts() -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs/reference/verdicts.md").read_text()
    sources = [*(root / "python/spindle/result/rules").glob("*.py"), root / "python/spindle/run/knee.py"]
    named = {name for path in sources for name in re.findall(r'check="([a-z-]+)"', path.read_text())}
    assert len(named) > 15
    for check in named:
        assert f"`{check}`" in page, check


def test_discards_that_do_not_reach_the_device_are_reported() -> None:
    trimmed = figures(replace(stream(None), trim=op(100.0, 60.0, size=MIB)))

    def found(moved: float, name: str = "sda") -> Level | None:
        own = replace(counters(), name=name)
        own = replace(own, delta={**own.delta, "discard_bytes": moved})
        seen = judge(record(trimmed, devices=[own], overrides=[("trim_fraction", "1"), ("write_fraction", "0")]))
        return next((each.level for each in seen if each.check == "discards"), None)

    assert found(6000 * MIB) is Level.OK
    assert found(3000 * MIB) is Level.WARN
    assert found(0, "zram0") is None


@pytest.mark.promise(18)
def test_a_check_that_warns_of_one_device_is_not_ok_because_of_another() -> None:
    found = [
        Verdict(check="other-io", level=Level.WARN, evidence="sda is busy"),
        Verdict(check="other-io", level=Level.OK, evidence="sdb is quiet"),
        Verdict(check="throttled", level=Level.OK, evidence="not"),
    ]
    assert verdicts.passed(found, Style()) == ["ok      throttled"]


@pytest.mark.promise(9)
def test_a_search_shows_a_detected_change_before_a_possible_one() -> None:
    unknown = seen_in(noisy([1.0] * 10, 0.15))
    found = seen_in(noisy([1.0] * 30 + [0.5] * 30))
    assert verdicts.warnings([unknown, found], Style())[0].startswith("warn    steady: throughput fell")
