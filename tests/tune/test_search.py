"""Searches over landscapes with known truth: what is found, what is never recommended, what a drift cannot do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import islice, product

import numpy as np
import pytest

from spindle.campaign.adaptive import SearchSchedule, Stage, Step
from spindle.search.choice import has_two_modes
from spindle.search.curves import influences
from spindle.search.process import fitted
from spindle.search.space import IGNORED, Space, axis
from spindle.search.strategies import ExpectedImprovement, Grid, Random, Strategy
from spindle.search.trials import Goal, TrialPoint
from tests.tune.landscapes import noisy, plan, searched

Levels = Mapping[str, str]


def truth(levels: Levels) -> float:
    """Best: mq-deadline with batches of 4 and 64 requests, 30 % above the start; the number of requests matters
    little."""
    elevator = {"none": 1.0, "mq-deadline": 1.1, "bfq": 0.9}[levels["scheduler"]]
    batch = {"-": 1.0, "1": 1.05, "4": 1.15, "16": 1.0, "64": 0.9}[levels["batch"]]
    requests = {"16": 0.95, "32": 1.0, "64": 1.03, "128": 1.0, "256": 0.99, "512": 0.98}[levels["requests"]]
    return 1000 * elevator * batch * requests


def test_the_best_settings_are_found_and_confirmed() -> None:
    regrets = []
    for seed in range(5):
        found = searched(plan(seed), lambda levels, noise: noisy(truth(levels), noise, 0.03))
        assert found.recommended
        assert found.winner is not None
        regrets.append(1 - truth(found.schedule.levels(found.winner)) / (1000 * 1.1 * 1.15 * 1.03))
    assert np.mean(regrets) < 0.03, regrets


def test_less_may_be_better() -> None:
    found = searched(plan(metric="read.p99_ns"), lambda levels, noise: noisy(1e12 / truth(levels), noise, 0.03))
    assert found.recommended
    assert found.change < -0.2


def test_settings_that_do_nothing_leave_all_as_it_is() -> None:
    """At most 5 of 100 searches over nothing but noise recommend a change."""
    small = "trials = 8\nscreen = 8\nfinalists = 2\nrace = 3"
    wrong = sum(searched(plan(seed, search=small), lambda _, noise: noisy(1000, noise, 0.05)).recommended
                for seed in range(100))  # fmt: skip
    assert wrong <= 5


def test_settings_with_two_modes_are_never_recommended() -> None:
    """bfq is 15 % better in half of its trials, and 15 % worse in the others."""

    def measure(levels: Levels, noise: random.Random) -> float:
        mode = noise.choice((1.15, 0.85)) if levels["scheduler"] == "bfq" else 1.0
        return noisy(1000 * mode, noise, 0.02)

    small = "trials = 16\nscreen = 8\nfinalists = 2"
    for seed in range(12):
        found = searched(plan(seed, search=small), measure)
        assert not (found.recommended and found.schedule.levels(found.winner)["scheduler"] == "bfq")  # type: ignore[arg-type]


def test_a_drift_does_not_pass_for_a_gain() -> None:
    """The machine gets 2 % faster with each block, and no setting does anything."""
    small = "trials = 24\nscreen = 8"
    wrong = sum(
        searched(
            plan(seed, search=small), lambda _, noise: noisy(1000, noise, 0.01), drift=lambda block: 1.02**block
        ).recommended
        for seed in range(8)
    )
    assert wrong <= 1


def test_settings_beyond_a_bound_are_not_chosen() -> None:
    """The fastest elevator has the longest latencies."""
    search = 'trials = 32\nscreen = 8\nbounds = ["read.p99<20ms"]'

    def bounded(levels: Levels) -> tuple[float]:
        return (30e6 if levels["scheduler"] == "mq-deadline" else 10e6,)

    for seed in range(2):
        found = searched(plan(seed, search=search), lambda levels, noise: noisy(truth(levels), noise, 0.02),
                         bounded=bounded)  # fmt: skip
        finalists = {one.levels["scheduler"] for one in found.steps if one.stage in (Stage.RACE, Stage.CONFIRM)}
        assert "mq-deadline" not in finalists


@pytest.mark.parametrize(("gain", "least", "most"), [(1.03, 13, 36), (1.5, 12, 12)])
def test_a_small_gain_is_confirmed_by_more_trials(gain: float, least: int, most: int) -> None:
    """12 trials at 3 % of noise show 3 % of gain in two of three searches only."""

    def measure(levels: Levels, noise: random.Random) -> float:
        return noisy(1000 * (gain if levels["scheduler"] == "mq-deadline" else 1.0), noise, 0.03)

    counts = []
    for seed in range(4):
        found = searched(plan(seed, search="trials = 48"), measure)
        assert len(found.steps) <= found.schedule.most
        counts.append(sum(one.stage is Stage.CONFIRM for one in found.steps) // 2)
    assert least <= np.median([one for one in counts if one]) <= most, counts


def test_a_peak_beside_a_plateau_is_tried() -> None:
    """Variations that change nothing are not all that a search tries: 32 requests alone are 10 % better."""

    def measure(levels: Levels, noise: random.Random) -> float:
        peak = 1.1 if levels["requests"] == "32" else 1.0
        return noisy(1000 * peak * (3.0 if levels["scheduler"] == "mq-deadline" else 1.0), noise, 0.02)

    for seed in range(4):
        found = searched(plan(seed, search="trials = 32"), measure)
        assert found.winner is not None
        assert found.schedule.levels(found.winner)["requests"] == "32"


def test_the_start_is_in_every_block_and_confirmation_blocks_are_fresh() -> None:
    found = searched(plan(), lambda levels, noise: noisy(truth(levels), noise, 0.02))
    blocks: dict[int, list[Step]] = {}
    for one in found.steps:
        blocks.setdefault(one.block, []).append(one)
    for block in blocks.values():
        assert sum(found.schedule.point(one.levels) == found.schedule.start for one in block) == 1
        assert len({str(one.levels) for one in block}) == len(block), "no settings twice in a block"
        assert len({one.stage in (Stage.SCREEN, Stage.SEARCH) for one in block}) == 1
    first = {one.block for one in found.steps if one.stage is not Stage.CONFIRM}
    assert first.isdisjoint(one.block for one in found.steps if one.stage is Stage.CONFIRM)


def test_the_next_trial_is_a_function_of_the_plan_and_of_the_trials() -> None:
    whole = searched(plan(3), lambda levels, noise: noisy(truth(levels), noise, 0.03))
    again = SearchSchedule(plan(3))
    for count in (0, 9, 17, 30, 31):
        expected = [(one.levels, one.block) for one in whole.steps[count:]]
        found = [(one.levels, one.block) for one in again.next(whole.steps[:count])]
        assert found == expected[: len(found)]
        assert found


def test_a_failed_trial_does_not_end_the_search_and_is_not_chosen() -> None:
    schedule = SearchSchedule(plan(search="trials = 24\nscreen = 8"))
    steps: list[Step] = []
    while batch := schedule.next(steps):
        steps += [
            Step(one.stage, one.block, one.levels, None if one.levels["scheduler"] == "bfq" else truth(one.levels))
            for one in batch
        ]
    assert len(steps) > 24
    assert all(one.levels["scheduler"] != "bfq" for one in steps if one.stage is not Stage.SCREEN
               and one.stage is not Stage.SEARCH)  # fmt: skip


SPACE = Space((axis("depth", [str(2**at) for at in range(8)], str.isdigit), axis("mode", ["a", "b", "c"], str.isdigit)))


def test_the_process_finds_the_shape_behind_the_noise() -> None:
    noise = np.random.default_rng(1)
    points = [point for point in SPACE.every() for _ in range(2)]
    value = {point: -((point[0] - 5) ** 2) / 25 + (0.3 if point[1] == 1 else 0) for point in points}
    blocks = [at // 6 for at in range(len(points))]
    values = [value[point] + 0.05 * noise.normal() + 0.1 * (at % 2) for point, at in zip(points, blocks, strict=True)]
    process = fitted(SPACE, points, values, blocks)
    mean, error = process.at(list(value))
    off = mean - np.asarray(list(value.values()))
    assert np.std(off) < 0.05
    assert 0.02 < process.noise < 0.12
    assert np.mean(np.abs(off - off.mean()) < 2.5 * error) > 0.8
    found = {one.name: one for one in influences(process, (5, 1))}
    assert found["mode"].best == "b"
    assert not found["mode"].is_flat
    assert found["depth"].best in ("16", "32", "64")
    assert not any(one.untried for one in found.values())


def test_an_axis_without_effect_is_flat() -> None:
    noise = np.random.default_rng(2)
    points = list(SPACE.every())
    values = [0.1 * point[0] + 0.02 * noise.normal() for point in points]
    found = {one.name: one for one in influences(fitted(SPACE, points, values, [0] * len(points)), (7, 0))}
    assert found["mode"].is_flat
    assert not found["depth"].is_flat
    assert found["depth"].best == "128"


def test_equal_values_are_no_error() -> None:
    points = list(SPACE.every())
    mean, error = fitted(SPACE, points, [7.0] * len(points), [0] * len(points)).at(points)
    assert mean == pytest.approx(7.0)
    assert np.isfinite(error).all()


@pytest.mark.parametrize("strategy", [Grid(SPACE), Random(SPACE, 1), ExpectedImprovement(SPACE, Goal(higher=True), 1)])
def test_a_strategy_asks_for_points_of_the_space_but_none_of_the_block(strategy: Strategy) -> None:
    trials: list[TrialPoint] = []
    for at in range(24):
        taken = {one.point for one in trials if one.block == at // 8}
        point = strategy.ask(trials, taken)
        assert point is not None
        assert point not in taken
        assert point in set(SPACE.every())
        trials.append(TrialPoint(point, at // 8, float(point[0] + 1)))
    if isinstance(strategy, Grid):
        assert {one.point for one in trials} == set(SPACE.every())


def test_a_design_spreads_over_every_level() -> None:
    points = SPACE.design(8, "seed")
    assert {point[0] for point in points} == set(range(8))
    assert {point[1] for point in points} == {0, 1, 2}
    assert points == SPACE.design(8, "seed")


def test_an_axis_without_effect_somewhere_is_ignored_there() -> None:
    space = Space(SPACE.axes, {(1, 0): frozenset({0})})
    assert space.canonical((3, 0)) == (IGNORED, 0)
    assert len(list(space.every())) == 1 + 2 * 8
    assert all((point[0] == IGNORED) == (point[1] == 0) for point in space.design(8, "seed"))


def test_every_point_comes_once_whatever_has_no_effect_where() -> None:
    by = random.Random(5)
    for _ in range(200):
        axes = tuple(axis(f"a{at}", "abcd"[: by.randint(1, 4)], lambda label: False) for at in range(by.randint(1, 5)))
        ignores = {
            (at, level): frozenset(by.sample([other for other in range(len(axes)) if other != at], k=by.randint(0, 1)))
            for at, one in enumerate(axes)
            for level in range(len(one.labels))
            if len(axes) > 1
        }
        space = Space(axes, ignores)
        combinations = product(*(range(len(one.labels)) for one in axes))
        assert list(space.every()) == list(dict.fromkeys(map(space.canonical, combinations)))


def test_the_first_points_of_a_huge_space_come_at_once() -> None:
    """The first level of the first axis takes the effect of all others: 10^18 combinations, one point."""
    axes = tuple(axis(f"a{at}", "0123456789", str.isdigit) for at in range(19))
    space = Space(axes, {(0, 0): frozenset(range(1, 19))})
    assert list(islice(space.every(), 2)) == [(0, *[IGNORED] * 18), (1, *[0] * 18)]
    assert Grid(space).ask([TrialPoint((0, *[IGNORED] * 18), 0, 1.0)], set()) == (1, *[0] * 18)


def test_two_modes_are_noticed_and_noise_is_not() -> None:
    noise = np.random.default_rng(3)
    calm = [list(0.03 * noise.normal(size=4)) for _ in range(3)]
    assert has_two_modes([0.15, -0.15, 0.14, -0.16], calm)
    assert has_two_modes([0.15, -0.15, -0.14, -0.16], calm)
    assert not has_two_modes([0.5, 0.52, 0.49, 0.51], calm)
    wrong = sum(has_two_modes(list(0.03 * noise.normal(size=4)), calm) for _ in range(500))
    assert wrong <= 10
