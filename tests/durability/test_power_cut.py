"""Power is cut while writers run, on a disk of which it is known what it keeps: loss is found where syncs are ignored,
and none where they are honoured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durability.crash import Crash, Outcome

PowerCut = Callable[[Crash], Outcome]

RAW = [
    Crash(sync="fsync", cut_syncs=50, seed=1),
    Crash(sync="fdatasync", pattern="random", cut_syncs=200, seed=2, receiver=True),
    Crash(sync="dsync", pattern="append", seed=3),
    Crash(sync="fua", seed=4, buffered=True),
]
EXT4 = [
    Crash(file_system="ext4", sync="fsync", buffered=True, seed=5, receiver=True),
    Crash(file_system="ext4", sync="fdatasync", seed=6),
]


def named(case: Crash) -> str:
    place = case.file_system or "device"
    way = "buffered" if case.buffered else "direct"
    return f"{place}-{case.sync}-{way}-{'tcp' if case.receiver else 'file'}"


def with_mode(case: Crash, mode: str) -> Crash:
    return Crash(**{**vars(case), "mode": mode})


@pytest.mark.parametrize("case", [*RAW, *EXT4], ids=named)
def test_nothing_is_lost_where_syncs_are_honoured(power_cut: PowerCut, case: Crash) -> None:
    outcome = power_cut(case)
    assert (outcome.status, outcome.verdict) == (0, "kept"), outcome.out
    assert outcome.findings["order_kept"] is True
    assert outcome.findings["blocks"]["kept"] > 0
    assert outcome.findings["journal"]["end"] == "error"  # the writer saw its target vanish


@pytest.mark.parametrize("case", [*RAW, *EXT4], ids=named)
def test_loss_is_found_where_syncs_are_ignored(power_cut: PowerCut, case: Crash) -> None:
    outcome = power_cut(with_mode(case, "lying"))
    assert (outcome.status, outcome.verdict) == (1, "lost"), outcome.out
    assert outcome.findings["blocks"]["lost"] > 0
    # All later writes are forgotten alike: what is there is an earlier state.
    assert outcome.findings["order_kept"] is True
    first, last = outcome.findings["first_lost_ns"], outcome.findings["last_lost_ns"]
    assert 0 < first < last <= outcome.findings["journal"]["last_ns"]


def test_a_disk_that_keeps_later_writes_but_not_earlier_ones_has_broken_order(power_cut: PowerCut) -> None:
    outcome = power_cut(Crash(mode="reordering", seed=7))
    assert (outcome.status, outcome.verdict) == (1, "lost")
    assert outcome.findings["order_kept"] is False
    broken = outcome.findings["reorderings"][0]
    assert broken["missing_write"] < broken["present_write"]


def test_an_acknowledged_write_that_is_torn_is_lost(power_cut: PowerCut) -> None:
    outcome = power_cut(Crash(mode="torn", seed=8, options=("--workers", "1")))
    assert (outcome.status, outcome.verdict) == (1, "lost")
    assert outcome.findings["instead"] == [{"found": "torn", "blocks": 1}]
    assert outcome.findings["blocks"]["lost"] == 1


def test_writes_that_were_never_synced_are_lost_on_an_honest_disk(power_cut: PowerCut) -> None:
    outcome = power_cut(Crash(sync="none", seed=9))
    assert (outcome.status, outcome.verdict) == (1, "lost")
    assert outcome.findings["order_kept"] is None


def test_a_cache_that_the_kernel_takes_for_write_through_gets_no_flushes_and_is_named(power_cut: PowerCut) -> None:
    outcome = power_cut(Crash(write_cache="write through", seed=10))
    assert (outcome.status, outcome.verdict) == (1, "lost")
    assert any("write_cache" in note for note in outcome.notes)
