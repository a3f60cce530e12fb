"""Campaigns: each trial once, whatever dies on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.store import PlannedTrial, Recording, Sample, Store, StoreRefused, StoreUsage, open_store
from tests.store.made import record

CELLS = [{"scheduler": level} for level in ("none", "bfq", "bfq", "none")]


def planned() -> list[PlannedTrial]:
    return [PlannedTrial(block=at // 2, cell=cell, detail={"seed": at}) for at, cell in enumerate(CELLS)]


def make(store: Store, name: str = "sched") -> None:
    store.campaigns.create(name, plan="[factors]\n", seed=2**63 + 1, trials=planned(), detail={"cap": 3})


def test_a_campaign_comes_back_as_it_was_planned(store: Store, fresh: Callable[[], Store]) -> None:
    make(store)
    with fresh() as again:
        found = again.campaigns.get("sched")
        assert (found.plan, found.seed, found.state, found.detail) == ("[factors]\n", 2**63 + 1, "planned", {"cap": 3})
        assert again.campaigns.find(found.id) == found
        trials = again.campaigns.trials("sched")
        assert [(trial.number, trial.block, trial.cell, trial.detail, trial.state) for trial in trials] == [
            (at + 1, at // 2, cell, {"seed": at}, "planned") for at, cell in enumerate(CELLS)
        ]
    with pytest.raises(StoreUsage, match="it exists already"):
        make(store)
    with pytest.raises(StoreUsage, match="not a name"):
        make(store, "a/b")


def test_trials_are_handed_out_in_order_and_stored_with_their_runs(store: Store) -> None:
    make(store)
    with store.campaigns.hold("sched") as held:
        numbers = []
        while trial := held.next():
            numbers.append(trial.number)
            assert held.finish(trial, record(trial.number)) == record(trial.number).id
        held.set_state("done")
    assert numbers == [1, 2, 3, 4]
    assert store.campaigns.get("sched").state == "done"
    chosen = store.select("campaign:sched/scheduler=bfq")
    assert [(each.trial, each.block, each.cell, each.run_id) for each in chosen] == [
        (2, 0, {"scheduler": "bfq"}, record(2).id),
        (3, 1, {"scheduler": "bfq"}, record(3).id),
    ]
    assert store.select(record(3).id)[0].campaign == "sched"


def test_what_ran_when_its_process_ended_is_handed_out_again_and_what_was_done_is_not(
    store: Store, fresh: Callable[[], Store]
) -> None:
    make(store)
    with store.campaigns.hold("sched") as held:
        first = held.next()
        assert first is not None
        held.finish(first, record(1))
        held.next()
    with fresh() as again, again.campaigns.hold("sched") as held:
        trial = held.next()
        assert trial is not None
        assert (trial.number, trial.attempts) == (2, 1)


def test_an_attempt_that_failed_is_kept_with_its_reason(store: Store) -> None:
    make(store)
    with store.campaigns.hold("sched") as held:
        trial = held.next()
        assert trial is not None
        held.reject(trial, "invalid", "too short", record=record(9), again=True)
        trial = held.next()
        assert trial is not None
        assert (trial.number, trial.attempts) == (1, 2)
        held.reject(trial, "failed", "the device \udcff\0 is gone", again=False)
        following = held.next()
        assert following is not None
        assert following.number == 2
    attempts = store.campaigns.attempts("sched")
    assert [(each.trial, each.attempt, each.state, each.reason, each.run_id) for each in attempts[:2]] == [
        (1, 1, "invalid", "too short", record(9).id),
        (1, 2, "failed", "the device \\xff\\x00 is gone", None),
    ]
    with pytest.raises(StoreUsage, match="no trial of it is done yet"):
        store.select("campaign:sched")


def test_a_campaign_is_held_by_one_at_a_time(store: Store, fresh: Callable[[], Store]) -> None:
    make(store)
    with store.campaigns.hold("sched"), fresh() as other:
        with pytest.raises(StoreRefused, match="another process runs it"), other.campaigns.hold("sched"):
            pass
        make(other, "second")
        with other.campaigns.hold("second"):
            pass
    with fresh() as other, other.campaigns.hold("sched"):
        pass


def test_trials_can_be_added_at_the_end(store: Store) -> None:
    make(store)
    with store.campaigns.hold("sched") as held:
        held.extend([PlannedTrial(block=2, cell={"scheduler": "none"})])
        assert [trial.number for trial in held.trials()] == [1, 2, 3, 4, 5]


def test_fingerprints_are_equal_when_the_same_was_found(store: Store) -> None:
    for name in ("one", "two", "three"):
        make(store, name)
        with store.campaigns.hold(name) as held:
            while trial := held.next():
                if name == "two" and trial.number == 2:
                    trial = held.next()  # as after an interruption
                    assert trial is not None
                held.finish(trial, record(trial.number + (name == "three")))
    prints = [store.campaigns.fingerprint(name) for name in ("one", "two", "three")]
    assert prints[0] == prints[1] != prints[2]


def test_what_the_devices_did_is_kept_with_the_trial(store: Store) -> None:
    make(store)
    with store.campaigns.hold("sched") as held:
        trial = held.next()
        assert trial is not None
        samples = [
            Sample(device="sda", start_ns=at * 10**9, seconds=1.0, iostat={"r/s": 10.0 * at, "rkB/s": 2048.0})
            for at in range(3)
        ]
        held.finish(
            trial, record(1), Recording(started="2026-01-01T00:00:00Z", interval_s=1, about="x", samples=samples)
        )
    columns, rows = store.query("SELECT avg(r_s), avg(rmb_s) FROM samples")
    assert rows == [(10.0, 2.0)]
    assert len(columns) == 2


def test_a_campaign_comes_over_from_another_store_once_and_whole(store: Store, tmp_path: Path) -> None:
    make(store)  # of the same name, another one
    with open_store(tmp_path / "other.db") as other:
        make(other)
        with other.campaigns.hold("sched") as held:
            while trial := held.next():
                sample = Sample(device="sda", start_ns=0, seconds=1.0, iostat={"r/s": 1.0})
                recording = Recording(
                    started="2026-01-01T00:00:00Z", interval_s=1, about="x", samples=[sample], id=f"r{trial.number}"
                )
                if trial.number == 2 and trial.attempts == 1:
                    held.reject(trial, "invalid", "too short", record=record(9), again=True)
                else:
                    held.finish(trial, record(trial.number), recording)
        other.tag("campaign:sched", "kept")
        other.start_recording(Recording(started="2026-01-01T00:00:00Z", interval_s=1, about="monitor"))
        came = store.take_in(other)
        assert (came.new, came.campaigns, came.recordings) == (5, {"sched": "sched.2"}, 1)
        assert store.campaigns.fingerprint("sched.2") == other.campaigns.fingerprint("sched")
        again = store.take_in(other)
        assert (again.new, again.campaigns, again.recordings) == (0, {}, 0)
    assert [each.tags for each in store.select("campaign:sched.2/scheduler=bfq")] == [("kept",)] * 2
    assert [(each.campaign, each.trial) for each in store.recordings()][:4] == [("sched.2", at + 1) for at in range(4)]
    assert store.check().problems == []
