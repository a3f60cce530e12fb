"""Every column against values worked out by hand with iostat's formulas, from pairs of /proc/diskstats lines."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from spindle.host.devices import DevNumber
from spindle.monitor import CGROUP, DISK, HOST, Sample, Summary, between
from spindle.monitor.cgroups import CgroupIo, Groups, Key
from spindle.monitor.summary import GroupOnDevice
from tests.monitor.moments import sample

# 2 s in between: 200 reads of 16 000 sectors (8 000 KiB) in 400 ms and 50 merged; 60 writes of 4 800 sectors in 600 ms
# and 40 merged; 4 discards of 8 000 sectors in 40 ms and 1 merged; 2 flushes in 8 ms; 750 ms busy; 1 100 ms weighted.
BEFORE = "   8       0 sda 100 10 8000 500 200 20 16000 900 0 1000 1500 5 1 4000 60 7 40"
AFTER = "   8       0 sda 300 60 24000 900 260 60 20800 1500 2 1750 2600 9 2 12000 100 9 48"
BY_HAND = {
    "r/s": 100.0,
    "rkB/s": 4000.0,
    "rrqm/s": 25.0,
    "%rrqm": 20.0,
    "r_await": 2.0,
    "rareq-sz": 40.0,
    "w/s": 30.0,
    "wkB/s": 1200.0,
    "wrqm/s": 20.0,
    "%wrqm": 40.0,
    "w_await": 10.0,
    "wareq-sz": 40.0,
    "d/s": 2.0,
    "dkB/s": 2000.0,
    "drqm/s": 0.5,
    "%drqm": 20.0,
    "d_await": 10.0,
    "dareq-sz": 1000.0,
    "f/s": 1.0,
    "f_await": 4.0,
    "aqu-sz": 0.55,
    "%util": 37.5,
}
# Captured 1.000 s apart from Linux 6.18 with fio on a loop device: 4 KiB reads and writes, 8 outstanding, an fdatasync
# after every 32 writes; and a second job that writes 64 KiB requests.
REAL_BEFORE = (
    "7 0 loop0 9463645 198 205200281 296509 216112 54132 52354248 106689 0 63540 411138 286 0 42331832 764 19191 7174"
)
REAL_AFTER = (
    "7 0 loop0 9464546 198 205207489 296564 217083 55710 52374384 106886 2 63720 411528 286 0 42331832 764 19223 7313"
)


def columns(before: str, after: str, seconds: float) -> dict[str, float | None]:
    interval = between(sample(before, 10.0), sample(after, 10.0 + seconds))
    return next(iter(interval.disks.values())).columns()


def test_every_column_is_what_the_formulas_give() -> None:
    assert columns(BEFORE, AFTER, 2.0) == pytest.approx(BY_HAND)


def test_the_columns_are_those_of_iostat_in_its_order() -> None:
    header = (
        "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
        "d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util"
    )
    assert [column.name for column in DISK] == header.split() == list(columns(BEFORE, AFTER, 2.0))


def test_a_pair_from_a_real_kernel_gives_what_was_worked_out_from_it() -> None:
    found = columns(REAL_BEFORE, REAL_AFTER, 1.0)
    assert (found["r/s"], found["w/s"], found["d/s"], found["f/s"]) == (901, 971, 0, 32)
    assert (found["rkB/s"], found["wkB/s"]) == (3604, 10068)  # 7 208 and 20 136 sectors
    assert found["rareq-sz"] == 4
    assert found["wareq-sz"] == pytest.approx(10.3687, abs=1e-4)
    assert (found["rrqm/s"], found["wrqm/s"]) == (0, 1578)
    assert found["%wrqm"] == pytest.approx(61.9066, abs=1e-4)  # of 2 549
    assert found["r_await"] == pytest.approx(0.0610, abs=1e-4)  # 55 ms
    assert found["w_await"] == pytest.approx(0.2029, abs=1e-4)  # 197 ms
    assert found["f_await"] == pytest.approx(4.34375)  # 139 ms
    assert found["aqu-sz"] == pytest.approx(0.39)
    assert found["%util"] == pytest.approx(18)


def test_the_time_that_really_passed_counts_not_the_interval_asked_for() -> None:
    assert columns(BEFORE, AFTER, 2.5)["r/s"] == pytest.approx(80)
    assert columns(BEFORE, AFTER, 2.5)["%util"] == pytest.approx(30)


def test_nothing_done_is_zero_in_every_column() -> None:
    assert set(columns(BEFORE, BEFORE, 1.0).values()) == {0.0}


def test_util_is_never_above_a_hundred() -> None:
    assert columns(BEFORE, BEFORE.replace(" 1000 1500 ", " 2004 1500 "), 1.0)["%util"] == 100


def fields(**values: int) -> str:
    order = ["reads", "rmerge", "rsect", "rms", "writes", "wmerge", "wsect", "wms", "now", "busy", "weighted"]
    return "8 0 sda " + " ".join(str(values.get(name, 0)) for name in order)


TOP = 1 << 32


@pytest.mark.parametrize(
    ("before", "after", "column", "value"),
    [
        ({"reads": 1, "rms": TOP - 5}, {"reads": 2, "rms": 10}, "r_await", 15.0),
        ({"writes": 1, "wms": TOP - 1}, {"writes": 3, "wms": 5}, "w_await", 3.0),
        ({"busy": TOP - 100}, {"busy": 150}, "%util", 25.0),
        ({"weighted": TOP - 1000}, {"weighted": 1000}, "aqu-sz", 2.0),
        ({"reads": TOP - 3}, {"reads": 7}, "r/s", 10.0),
        ({"rsect": TOP - 8}, {"rsect": 12}, "rkB/s", 10.0),
        ({"wsect": TOP - 8}, {"wsect": 12}, "wkB/s", 10.0),
        ({"reads": TOP + 3}, {"reads": TOP + 13}, "r/s", 10.0),
        ({"rsect": TOP - 8}, {"rsect": TOP + 12}, "rkB/s", 10.0),
    ],
)
def test_a_counter_that_wraps_at_32_bits_goes_on(
    before: dict[str, int], after: dict[str, int], column: str, value: float
) -> None:
    assert columns(fields(**before), fields(**after), 1.0)[column] == pytest.approx(value)


@pytest.mark.parametrize("reads", [5_000, TOP + 5_000])
def test_a_count_that_falls_back_is_no_wrap(reads: int) -> None:
    found = columns(fields(reads=reads, busy=10), fields(reads=10, busy=20), 1.0)
    assert set(found.values()) == {None}


def test_what_an_old_kernel_does_not_count_is_unknown_not_zero() -> None:
    def cut(line: str, count: int) -> str:
        return " ".join(line.split()[: 3 + count])

    linux_4_17 = columns(cut(BEFORE, 11), cut(AFTER, 11), 2.0)
    linux_5_4 = columns(cut(BEFORE, 15), cut(AFTER, 15), 2.0)
    for name, value in BY_HAND.items():
        discard, flush = name in ("d/s", "dkB/s", "drqm/s", "%drqm", "d_await", "dareq-sz"), name in ("f/s", "f_await")
        assert linux_4_17[name] == (None if discard or flush else pytest.approx(value)), name
        assert linux_5_4[name] == (None if flush else pytest.approx(value)), name


def test_fields_of_a_later_kernel_are_passed_over() -> None:
    assert columns(BEFORE + " 1 2 3 x", AFTER + " 1 2 3 y", 2.0) == pytest.approx(BY_HAND)


# --- the machine -----------------------------------------------------------------------------------------------------

STAT = "cpu  {} 10 30 {} 50 4 6 {} 0 0\nprocs_running {}\nprocs_blocked {}\n"
PSI = "some avg10={} avg60=0 avg300=0 total={}\nfull avg10={} avg60=0 avg300=0 total={}\n"


def host(before: str, after: str, psi: tuple[str, str] = ("", ""), seconds: float = 2.0) -> dict[str, float | None]:
    return between(sample("", 0, before, psi[0]), sample("", seconds, after, psi[1])).host


def test_vmstats_columns_are_shares_of_all_cpu_time_and_tasks_of_the_moment() -> None:
    found = host(STAT.format(100, 1000, 0, 1, 0), STAT.format(150, 1140, 10, 5, 3))
    assert found["us"] == pytest.approx(25)
    assert found["id"] == pytest.approx(70)
    assert found["st"] == pytest.approx(5)
    assert (found["sy"], found["wa"]) == (0, 0)
    assert (found["r"], found["b"]) == (5, 3)
    assert list(found) == [column.name for column in HOST]


def test_nice_counts_as_user_and_interrupts_as_system() -> None:
    found = host("cpu 0 0 0 0 0 0 0 0\n", "cpu 10 20 5 50 5 3 4 3\n")
    assert [found[name] for name in ("us", "sy", "id", "wa", "st")] == [30, 12, 50, 5, 3]


def test_idle_time_that_goes_back_counts_as_none() -> None:
    found = host("cpu 0 0 0 100 100 0 0 0\n", "cpu 50 0 50 100 99 0 0 0\n")
    assert [found[name] for name in ("us", "sy", "id", "wa", "st")] == [50, 50, 0, 0, 0]


def test_pressure_is_the_kernels_average_and_the_share_of_the_interval() -> None:
    found = host("", "", (PSI.format("1.00", 1_000_000, "0.10", 0), PSI.format("2.50", 1_500_000, "0.20", 200_000)))
    assert [found[name] for name in ("some10", "some", "full10", "full")] == pytest.approx([2.5, 25, 0.2, 10])


def test_where_psi_is_off_pressure_is_unknown() -> None:
    found = host(STAT.format(1, 1, 0, 1, 0), STAT.format(2, 2, 0, 1, 0))
    assert {found[name] for name in ("some10", "some", "full10", "full")} == {None}


# --- control groups --------------------------------------------------------------------------------------------------


def with_groups(at_s: float, groups: dict[Key, CgroupIo] | None) -> Sample:
    known = None if groups is None else Groups({DevNumber(8, 0): "sda"}, groups)
    return replace(sample(BEFORE, at_s), cgroups=known)


def test_a_groups_rates_are_its_differences_over_the_time_the_busiest_first() -> None:
    sda = DevNumber(8, 0)
    before = {Key("/a", sda): CgroupIo(10, 40960, 5, 5120), Key("/idle", sda): CgroupIo(1, 1)}
    after = {
        Key("/a", sda): CgroupIo(30, 122880, 9, 9216, 2, 4096),
        Key("/idle", sda): CgroupIo(1, 1),
        Key("/new", sda): CgroupIo(writes=4, write_bytes=1 << 20),
    }
    found = between(with_groups(0, before), with_groups(2, after)).cgroups
    assert found is not None
    assert [(rates.group, rates.device) for rates in found] == [("/new", "sda"), ("/a", "sda")]
    assert [found[1].columns()[column.name] for column in CGROUP] == [10, 40, 2, 2, 1, 2]
    assert found[0].columns()["wkB/s"] == 512


def test_a_group_made_anew_begins_at_nothing() -> None:
    key = Key("/a", DevNumber(8, 0))
    found = between(with_groups(0, {key: CgroupIo(1000, 4096000)}), with_groups(1, {key: CgroupIo(3, 3072)})).cgroups
    assert found is not None
    assert found[0].columns()["r/s"] == 3


def test_groups_that_are_not_known_stay_unknown() -> None:
    assert between(with_groups(0, None), with_groups(1, None)).cgroups is None


# --- summary ---------------------------------------------------------------------------------------------------------


def test_the_mean_of_a_column_is_the_column_of_the_whole_time_and_the_maximum_that_of_an_interval() -> None:
    middle = "8 0 sda 110 10 8080 600 200 20 16000 900 0 1200 1600 5 1 4000 60 7 40"
    moments = [sample(BEFORE, 0.0), sample(middle, 0.5), sample(AFTER, 2.0)]
    summary = Summary()
    for old, new in pairwise(moments):
        summary.add(between(old, new))
    found = summary.disks["sda"]
    assert {name: extent.mean for name, extent in found.items()} == pytest.approx(BY_HAND)
    assert found["r/s"].maximum == pytest.approx(190 / 1.5)
    assert found["r_await"].maximum == pytest.approx(10)
    assert found["%util"].maximum == pytest.approx(40)
    assert (summary.intervals, summary.seconds) == (2, 2.0)


def test_means_of_the_machine_are_weighted_with_time_and_leave_out_what_was_unknown() -> None:
    summary = Summary()
    for begin, end, blocked in ((0.0, 1.0, 4), (1.0, 4.0, 0)):
        stat = f"procs_blocked {blocked}\n"
        summary.add(between(sample("", begin, stat), sample("", end, stat)))
    assert (summary.host["b"].mean, summary.host["b"].maximum) == (1.0, 4.0)
    assert (summary.host["us"].mean, summary.host["us"].maximum) == (None, None)


def test_a_groups_quiet_intervals_count_in_its_mean() -> None:
    key = Key("/a", DevNumber(8, 0))
    counts: list[dict[Key, CgroupIo]] = [{}, {key: CgroupIo(8, 8192)}, {key: CgroupIo(8, 8192)}]
    moments = [with_groups(float(at), groups) for at, groups in enumerate(counts)]
    summary = Summary()
    for old, new in pairwise(moments):
        summary.add(between(old, new))
    extent: Any = summary.cgroups[GroupOnDevice("/a", "sda")]["r/s"]
    assert (extent.mean, extent.maximum) == (4, 8)
