"""`spindle check`: a gate that lets changes pass or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spindle.cli.exits import Exit
from spindle.library.checking import tagged
from spindle.result.record import RunRecord
from spindle.stats.errors import Incomparable
from spindle.stats.gate import Gate, gate
from spindle.stats.trial import Side
from spindle.store import open_store
from tests.program import Ended
from tests.stats.campaign import run, sides


def judged(made: list[Side], metric: str = "iops", threshold: float = 0.05) -> Gate:
    """The second side against the first."""
    return gate(made[0], made[1], [metric], threshold=threshold)


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]
) -> Callable[[Sequence[RunRecord], Sequence[RunRecord], Sequence[str]], Ended]:
    """Hold results against a baseline."""

    def call(baseline: Sequence[RunRecord], now: Sequence[RunRecord], options: Sequence[str] = ()) -> Ended:
        monkeypatch.setenv("SPINDLE_STORE", str(tmp_path / "store.db"))
        with open_store() as store:
            store.add_all(baseline, tags=["good"])
            store.add_all(now, tags=["now"])
        return invoke("check", "tag:now", "--baseline", "good", *options)

    return call


def noisy(mean: float, count: int, turn: int, noise: float = 0.01, day: int = 1) -> list[RunRecord]:
    """Runs of one side; those of turns 1 and 2 took turns."""
    draw = np.random.default_rng(turn)
    return [run(mean * float(np.exp(noise * draw.normal())), number=2 * n + turn % 2, day=day) for n in range(count)]


def test_a_loss_beyond_the_threshold_fails(check: Callable[..., Ended]) -> None:
    ended = check(noisy(1000, 8, 1), noisy(850, 8, 2))
    assert ended.status == Exit.FAILED
    assert ended.out.startswith("tag:now lost more than 5 % against tag:good; geometric means, 95 % confidence")
    assert "iops: lost 1" in ended.out


def test_a_loss_within_the_threshold_and_a_gain_pass(check: Callable[..., Ended]) -> None:
    ended = check(noisy(1000, 8, 1), noisy(990, 8, 2))
    assert ended.status == Exit.FINE
    assert "a loss beyond 5 % is excluded" in ended.out


def test_a_gain_passes(check: Callable[..., Ended]) -> None:
    ended = check(noisy(1000, 6, 1), noisy(1200, 6, 2))
    assert ended.status == Exit.FINE
    assert "iops: fine: a gain of" in ended.out


def test_a_single_new_run_can_fail_where_the_machine_is_taken_to_be_the_same(check: Callable[..., Ended]) -> None:
    sides = noisy(1000, 8, 1), noisy(800, 1, 2, day=2)
    assert check(*sides).status == Exit.FINE
    assert check(*sides, ["--fail-unclear"]).status == Exit.FAILED
    ended = check(*sides, ["--across-time"])
    assert ended.status == Exit.FAILED
    assert "assumes that the machine did not change" in " ".join(ended.out.split())


@pytest.mark.promise(10)
def test_a_baseline_of_another_day_is_not_tested_and_says_how_to(check: Callable[..., Ended]) -> None:
    ended = check(noisy(1000, 8, 1), noisy(500, 8, 2, day=2))
    assert ended.status == Exit.FINE
    assert ended.out.startswith("tag:now against tag:good: not tested")
    words = " ".join(ended.out.split())
    assert "iops: not tested: a loss of 50 % was seen, but they ran one after the other" in words
    assert "let them take turns" in words
    assert "--across-time" in words


def nights(speeds: Sequence[float], runs: int = 3) -> list[RunRecord]:
    """Some runs in each night, a minute apart; a night's runs share its speed."""
    draw = np.random.default_rng(5)
    return [
        run(1000 * speed * float(np.exp(0.002 * draw.normal())), number=number, day=1 + night)
        for night, speed in enumerate(speeds)
        for number in range(runs)
    ]


NIGHTS = [1.0, 1.01, 0.99, 1.005, 0.995, 1.01, 0.99, 1.0]


@pytest.mark.promise(10)
def test_a_loss_against_many_earlier_nights_fails_by_itself(check: Callable[..., Ended]) -> None:
    made = nights([*NIGHTS, 0.8])
    ended = check(made[:-3], made[-3:], ["--metric", "iops"])
    assert ended.status == Exit.FAILED
    words = " ".join(ended.out.split())
    assert "iops: lost 20 %, significantly more than 1" in words
    assert "from earlier sessions: their differences count as noise" in words


@pytest.mark.promise(10)
def test_a_night_like_the_others_passes_and_excludes_a_loss(check: Callable[..., Ended]) -> None:
    made = nights([*NIGHTS, 0.99])
    ended = check(made[:-3], made[-3:], ["--metric", "iops", "--fail-unclear"])
    assert ended.status == Exit.FINE
    assert "a loss beyond 5 % is excluded" in ended.out


@pytest.mark.promise(10)
def test_runs_of_one_night_are_no_history_however_many(check: Callable[..., Ended]) -> None:
    ended = check(nights([1.0], runs=12), [run(500, number=0, day=2)], ["--metric", "iops"])
    assert ended.status == Exit.FINE
    words = " ".join(ended.out.split())
    assert "iops: not tested" in words
    assert "A baseline of 5 earlier sessions and more" in words


@pytest.mark.promise(10)
def test_nights_do_not_show_how_days_differ(check: Callable[..., Ended]) -> None:
    ended = check(nights(NIGHTS), [run(500, number=12 * 60, day=9)], ["--metric", "iops"])
    assert "iops: not tested" in ended.out


@pytest.mark.promise(10)
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 1.0])
def test_nights_of_a_machine_that_wanders_rarely_fail(correlation: float) -> None:
    """400 gates of eight earlier sessions, threshold 0."""
    alarms = 0
    for seed in range(400):
        draw, state = np.random.default_rng(seed), 0.0
        speeds = []
        for _ in range(9):
            state = correlation * state + float(draw.normal())
            speeds.append(1000 * float(np.exp(0.03 * state)))
        made = sides({"A": speeds[:-1], "B": speeds[-1:]}, interleaved=False)
        days = [
            replace(trial, order=(f"2026-01-{1 + at:02}T02:00:00Z", 0))
            for at, trial in enumerate([*made[0].trials, *made[1].trials])
        ]
        alarms += gate(Side("A", days[:-1]), Side("B", days[-1:]), ["iops"], threshold=0.0).outcome == "lost"
    assert alarms / 400 <= 0.07


def test_too_few_runs_are_said_and_fail_only_if_asked(check: Callable[..., Ended]) -> None:
    baseline, now = noisy(1000, 2, 1, noise=0.1), noisy(900, 2, 2, noise=0.1)
    ended = check(baseline, now, ["--metric", "iops"])
    assert ended.status == Exit.FINE
    assert "the runs cannot decide whether more than 5 % were lost" in ended.out
    assert "trials of each would decide" in ended.out
    assert check(baseline, now, ["--metric", "iops", "--fail-unclear"]).status == Exit.FAILED


@pytest.mark.promise(30)
def test_one_run_on_each_side_proves_nothing(check: Callable[..., Ended]) -> None:
    ended = check(noisy(1000, 1, 1), noisy(500, 1, 2))
    assert ended.status == Exit.FINE
    words = " ".join(ended.out.split())
    assert "not tested: a loss of 50 % was seen, but one run on each side does not show" in words
    assert "unless --fail-unclear is given; use it in continuous integration" in words
    assert check(noisy(1000, 1, 1), noisy(500, 1, 2), ["--fail-unclear"]).status == Exit.FAILED


def test_the_threshold_and_the_metric_are_the_users(check: Callable[..., Ended]) -> None:
    baseline, now = noisy(1000, 10, 1, noise=0.005), noisy(940, 10, 2, noise=0.005)
    assert check(baseline, now, ["--threshold", "3%"]).status == Exit.FAILED
    assert check(baseline, now, ["--threshold", "10%"]).status == Exit.FINE
    found = json.loads(check(baseline, now, ["--threshold", "3%", "--metric", "read.mean_ns", "--json"]).out)
    assert [each["metric"] for each in found["checks"]] == ["read.mean_ns"]
    assert found["outcome"] == "lost"
    assert found["checks"][0]["at_least"] > 0.03


def test_a_baseline_may_be_any_selection() -> None:
    assert tagged("good") == "tag:good"
    assert tagged("v1.2-rc") == "tag:v1.2-rc"
    for other in ("tag:good", "campaign:x/a=b", "last:3", "last", "20260101T000000Z-00", "old.json"):
        assert tagged(other) == other


def test_the_same_thing_again_rarely_fails_and_a_planted_loss_is_found() -> None:
    """400 gates each, ten runs a side under 3 % noise; threshold 0. The sd of the first rate is 1.1 %."""
    alarms = found = 0
    for seed in range(400):
        draw = np.random.default_rng(seed)
        a, b = (1000 * np.exp(0.03 * draw.normal(size=10)) for _ in range(2))
        alarms += judged(sides({"A": a, "B": b}), threshold=0.0).outcome == "lost"
        found += judged(sides({"A": a, "B": b * 0.95}), threshold=0.0).outcome == "lost"
    assert alarms / 400 <= 0.07
    assert found / 400 >= 0.9


def test_what_nobody_can_judge_is_refused() -> None:
    made = sides({"A": [1.0, 2.0], "B": [1.0, 2.0]}, metric="device.%util")
    with pytest.raises(Incomparable, match="neither more nor less"):
        judged(made, "device.%util")


def test_zeros_and_runs_without_spread_are_answered() -> None:
    outcomes = [
        judged(sides({"A": a, "B": b})).outcome
        for a, b in (([0, 0, 0], [1, 2, 3]), ([500] * 3, [500] * 3), ([500] * 3, [400] * 3), ([0, 2, 4], [0, 0, 1]))
    ]
    assert outcomes == ["unclear", "fine", "lost", "unclear"]
