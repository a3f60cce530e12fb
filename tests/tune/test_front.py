"""Several objectives: the front is found, confirmed in fresh trials, and shown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.campaign.adaptive import SearchSchedule, Stage, Step
from spindle.campaign.source import read_plan
from spindle.run.errors import Usage
from spindle.search.front import mixed, scored, weights
from spindle.search.trials import TrialPoint
from tests.program import Ended
from tests.tune.landscapes import KNOBS, Levels, noisy

SEARCH = 'trials = 32\nscreen = 8\nfinalists = 5\nconfirm = 4\nalso = ["minimise read.p99"]'


def rate(levels: Levels) -> float:
    """More requests in the queue are faster."""
    return 1000 * {"16": 0.6, "32": 0.7, "64": 0.8, "128": 0.9, "256": 0.97, "512": 1.0}[levels["requests"]]


def tail(levels: Levels) -> float:
    """... and have longer tails; bfq has longer ones still."""
    own = 1e6 * {"16": 4, "32": 5, "64": 7, "128": 10, "256": 16, "512": 30}[levels["requests"]]
    return own * (2 if levels["scheduler"] == "bfq" else 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_ends_of_the_front_and_points_between_are_confirmed(seed: int) -> None:
    schedule = SearchSchedule(read_plan(KNOBS.format(seed=seed, metric="iops", search=SEARCH), "k.toml", "k"))
    noise, steps = random.Random(seed), list[Step]()
    while batch := schedule.next(steps):
        steps += [
            Step(one.stage, one.block, one.levels, noisy(rate(one.levels), noise, 0.02), (),
                 (noisy(tail(one.levels), noise, 0.02),))
            for one in batch
        ]  # fmt: skip
    assert len(steps) <= schedule.most
    confirmed = [one for one in steps if one.stage is Stage.CONFIRM]
    requests = {one.levels["requests"] for one in confirmed}
    assert {"16", "512"} <= requests
    assert len(requests) >= 4
    choices = {tuple(one.levels.values()): one.levels for one in confirmed}.values()
    assert sum(one["scheduler"] == "bfq" for one in choices) <= 1
    assert len(choices) <= len(requests) + 1, "no choice twice, with other settings that do nothing"
    assert not any(one.stage is Stage.RACE for one in steps)


def test_a_mixture_is_of_both_objectives() -> None:
    trials = [TrialPoint((at,), 0, 1.0) for at in range(3)]
    found = scored(trials, [(100.0, 1e6), (200.0, 2e6), (None, None)], (True, False))
    both = [one.value for one in mixed(found, (0.5, 0.5))]
    first = [one.value for one in mixed(found, (1.0, 0.0))]
    second = [one.value for one in mixed(found, (0.0, 1.0))]
    assert both[0] == both[1]
    assert first[1] is not None
    assert first[0] is not None
    assert first[1] > first[0]
    assert second[1] is not None
    assert second[0] is not None
    assert second[0] > second[1]
    assert both[2] is None
    assert {weights(at, 2) for at in range(5)} == {(1, 0), (0.5, 0.5), (0, 1), (0.75, 0.25), (0.25, 0.75)}


def test_the_page_has_a_table_and_a_plot_and_json_the_same(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    store = ("--store", str(tmp_path / "store.db"), "-q")
    done = invoke(
        "tune", "one-sata", "randomio", "--maximise", "iops", "--minimise", "read.p99", "--only",
        "--knob", "scheduler=none,bfq", "--knob", "queue_depth=1,4,32", "--set", "options.write_fraction=0",
        "--set", "options.fsync_fraction=0", "--set", "options.seconds=5", "--trials", "10", "--confirm", "4", *store,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "choice" in done.out.splitlines()[0]
    assert "read.p99 (ms) over iops (1/s); s: the start; better: right and down" in done.out
    found = json.loads(invoke("tune", "--resume", "tune", "--json", *store).out)
    assert found["decision"] == "front"
    assert [one["start"] for one in found["front"]].count(True) == 1
    rates = [one["values"]["iops"] for one in found["front"]]
    assert rates == sorted(rates)
    kept = [one for one in found["front"] if not one["beaten"]]
    tails = [one["values"]["read.p99_ns"] for one in kept]
    assert tails == sorted(tails), "who is faster and not beaten has the longer tail"
    assert any(one["gains"] for one in kept)
    refused = invoke("tune", "--resume", "tune", "--apply", *store)
    assert refused.status == 2
    assert "a front has no single best" in refused.err


def test_a_setting_that_makes_no_difference_is_no_choice_of_its_own(
    tmp_path: Path, invoke: Callable[..., Ended]
) -> None:
    """At one command at a time any queue of requests does the same: the search confirms several such points."""
    done = invoke(
        "tune", "one-sata", "randomio", "--maximise", "iops", "--minimise", "read.p99", "--only",
        "--knob", "scheduler=none,mq-deadline,bfq", "--knob", "queue_depth=1..32", "--knob", "nr_requests=8..256",
        "--set", "options.seconds=5", "--trials", "32", "--json", "--store", str(tmp_path / "store.db"),
    )  # fmt: skip
    rows = json.loads(done.out)["front"]
    [start] = [one["levels"] for one in rows if one["start"]]
    changes = [set(one["levels"].items()) - set(start.items()) for one in rows if not one["start"]]
    assert len(changes) >= 2
    assert not [(few, many) for few in changes for many in changes if few < many]


@pytest.mark.parametrize(
    ("also", "complaint"),
    [("read.p99", "write for example minimise read.p99"), ("minimise read.tail", "no metric"),
     ("maximise iops", "is the goal already")],
)  # fmt: skip
def test_a_wrong_objective_is_one_line(also: str, complaint: str) -> None:
    with pytest.raises(Usage, match=complaint):
        read_plan(KNOBS.format(seed=1, metric="iops", search=f'also = ["{also}"]'), "k.toml", "k")
