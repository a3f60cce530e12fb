"""Trials that break a bound are ended, and their figures count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.campaign import bounds
from spindle.campaign.bounds import BoundWatch
from spindle.campaign.goal import limit_of
from spindle.store import open_store
from tests.program import Ended
from tests.queue import Queue
from tests.tune.killed import on_loop
from tests.workbench import Workbench

LIMITS = (limit_of("read.p99<20ms"), limit_of("iops>100"))


def test_a_bound_is_broken_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("spindle.campaign.bounds.time.monotonic", lambda: clock[0])
    watch = BoundWatch(LIMITS, _clock=0.0)
    ends = []
    for at, p99 in enumerate((30e6, 10e6, 30e6, 40e6, 50e6, 60e6)):
        clock[0] = float(at)
        ends.append(watch.look({"read.p99_ns": p99, "iops": 500.0}))
    assert ends == [False, False, False, False, False, True]
    assert watch.reason == "broke read.p99<20ms: 60 ms after 5 s"


@pytest.mark.parametrize(("limit", "decision"), [("300ms", "better"), ("3ms", "keep")])
def test_settings_that_meet_a_bound_are_better_than_a_start_that_breaks_it(
    tmp_path: Path, invoke: Callable[..., Ended], limit: str, decision: str
) -> None:
    """Two commands at a time bring the longest reads from 510 to 240 ms and cost a third of the IOPS."""
    done = invoke(
        "tune", "one-sata", "randomio", "--bound", f"read.p99<{limit}", "--only",
        "--knob", "scheduler=none,mq-deadline,bfq", "--knob", "queue_depth=1..32", "--set", "options.seconds=5",
        "--set", "options.write_fraction=0", "--set", "options.fsync_fraction=0",
        "--trials", "24", "--confirm", "8", "--json", "--store", str(tmp_path / "store.db"),
    )  # fmt: skip
    found = json.loads(done.out)
    assert found["decision"] == decision
    if decision == "keep":
        assert "none of the settings tried is likely to meet read.p99<3ms; those of the start do not" in found["reason"]
        return
    assert int(found["winner"]["queue_depth"]) <= 3
    assert found["change"] < 0
    [bound] = found["bounds"]
    assert bound["holds"]
    assert bound["broken_at_start"] > 300e6
    assert found["sentence"].startswith("meets read.p99<300ms; the settings of the start do not (")


def test_a_share_of_a_cpu_can_be_bounded() -> None:
    found = limit_of("cpu<30%")
    assert (found.metric, found.upper, found.limit) == ("cpu_percent", True, 30.0)


def test_a_metric_that_is_not_there_yet_breaks_nothing() -> None:
    assert not BoundWatch(LIMITS, _clock=-100).look({})


@pytest.mark.parametrize("with_command", [False, True])
def test_a_trial_that_breaks_a_bound_is_ended_and_its_figures_count(
    bench: Workbench, tmp_path: Path, invoke: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, with_command: bool
) -> None:
    """No settings reach so many requests; a trial of 60 s would make the search last half an hour."""
    monkeypatch.setattr(bounds, "PATIENCE_S", 0.5)
    monkeypatch.setattr(bounds, "LOOK_S", 0.1)
    device = bench.loop()
    queue = Queue(Path(device).name)
    before = queue.values()
    if with_command:
        words = [*on_loop(tmp_path, device), "--bound", "device.r/s>1000000000"]
    else:
        words = [
            device,
            "randomio",
            "--only",
            "--knob",
            "read_ahead_kb=64,128,256",
            "--set",
            "options.write_fraction=0",
            "--set",
            "options.fsync_fraction=0",
            "--bound",
            "iops>1000000000",
            "--set",
            "trials.tolerate=settings,working-set",
            "--trials",
            "4",
            "--confirm",
            "3",
            "--set",
            "search.race=3",
        ]
    length = "load.interval=60s" if with_command else "options.seconds=60"
    store = tmp_path / "store.db"
    plan = invoke("tune", *words, "--plan")
    assert plan.status == 0, plan.err
    monkeypatch.setattr("spindle.campaign.execution._Run._limits", lambda self, trial: self.ready.plan.search.limits)
    done = invoke("tune", *words, "--set", length, "--store", str(store), "-q", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["decision"] == "keep"
    assert {one["state"] for one in found["trials"]} == {"failed"}
    measured = [one["value"] for one in found["trials"]]
    assert None not in measured, "what was measured until then counts"
    assert any(measured)  # half a second on a busy machine can be without a request
    assert queue.values() == before
    with open_store(store) as opened:
        reasons = {one.reason.partition(":")[0] for one in opened.campaigns.trials("tune")}
    assert reasons == {f"broke {words[words.index('--bound') + 1]}"}, reasons
