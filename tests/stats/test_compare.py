"""Claims about differences whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats as reference

from spindle.stats.compare import common_metrics, compare
from spindle.stats.difference import Difference
from spindle.stats.errors import Incomparable
from spindle.stats.study import study
from spindle.stats.trial import Side, Trial, trial_of, valid
from tests.documents import present
from tests.stats.campaign import in_random_blocks, run, sides
from tests.stats.noise import autoregressive


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_trials_in_turns_are_welchs_t_test_on_logarithms() -> None:
    draw = draws(1)
    a, b = 1000 * np.exp(0.02 * draw.normal(size=7)), 1100 * np.exp(0.06 * draw.normal(size=7))
    found = compare(sides({"A": a, "B": b}), ["iops"]).findings[0].difference
    welch = reference.ttest_ind(np.log(b), np.log(a), equal_var=False)
    low, high = welch.confidence_interval()
    assert found.p == pytest.approx(welch.pvalue)
    assert (found.low, found.high) == (pytest.approx(math.expm1(low)), pytest.approx(math.expm1(high)))
    assert found.basis == "trials"


def test_blocks_are_compared_as_pairs() -> None:
    """The machine is twice as fast in one block as in another; within blocks B is 2 % faster."""
    draw = draws(2)
    machine = np.linspace(1000, 2000, 12)
    a, b = machine * np.exp(0.004 * draw.normal(size=12)), 1.02 * machine * np.exp(0.004 * draw.normal(size=12))
    found = compare(sides({"A": a, "B": b}, blocks=True), ["iops"]).findings[0]
    paired = reference.ttest_rel(np.log(b), np.log(a))
    assert found.difference.p == pytest.approx(paired.pvalue)
    assert found.difference.basis == "blocks"
    assert found.outcome == "better"
    assert not compare(sides({"A": a, "B": b}), ["iops"]).findings[0].difference.significant


def test_a_missing_trial_leaves_its_block_out_of_the_pairs() -> None:
    a = [100.0, 110.0, 121.0, 90.0, 105.0, 112.0, 99.0, 130.0, 118.0, 104.0, 111.0, 125.0, 97.0]
    b = [1.1 * value + at % 3 for at, value in enumerate(a)][:-1]
    short = sides({"A": a, "B": b}, blocks=True)
    found = compare(short, ["iops"]).findings[0].difference
    paired = reference.ttest_rel(np.log(b), np.log(a[:-1]))
    assert found.p == pytest.approx(paired.pvalue)
    assert (found.trials_a, found.trials_b) == (13, 12)


def test_equal_alternatives_in_random_blocks_rarely_differ_significantly() -> None:
    """A/A: 400 campaigns of six blocks on a machine whose speed wanders; the sd of the rate is 1.1 %."""
    claimed = 0
    for seed in range(400):
        values = in_random_blocks([0.0, 0.0], 6, 0.03, 0.8, draws(seed))
        claimed += compare(sides(values, blocks=True), ["iops"]).findings[0].difference.significant
    assert claimed / 400 <= 0.07


def test_many_equal_alternatives_rarely_differ_significantly_in_any_of_many_comparisons() -> None:
    """200 campaigns of eight cells; the sd of a rate of 5 % is 1.5 %."""
    claimed = 0
    for seed in range(200):
        values = in_random_blocks([0.0] * 8, 5, 0.03, 0.5, draws(seed))
        claimed += any(each.difference.significant for each in compare(sides(values, blocks=True), ["iops"]).findings)
    assert claimed / 200 <= 0.07


def width(found: Difference) -> float:
    return present(found.high) - present(found.low)


def test_correlated_trials_one_side_after_the_other_widen_the_interval_where_order_is_trusted() -> None:
    draw = draws(5)
    values = {key: 1000 * np.exp(0.03 * autoregressive(40, 0.8, draw)) for key in "AB"}
    after = compare(sides(values, interleaved=False), ["iops"], across_time=True)
    turns = compare(sides(values), ["iops"])
    widths = [found.findings[0].difference for found in (after, turns)]
    assert widths[0].correlation > 0.4
    assert width(widths[0]) > 1.5 * width(widths[1])
    assert any("resemble each other" in note for note in after.notes)
    assert any("assumes that the machine did not change" in note for note in after.notes)


def test_a_single_run_is_held_against_the_spread_of_the_others_where_order_is_trusted() -> None:
    several = [100.0, 101.0, 99.0, 100.5, 99.5]
    far = compare(sides({"A": several, "B": [120.0]}), ["iops"], across_time=True)
    near = compare(sides({"A": several, "B": [101.0]}), ["iops"], across_time=True)
    assert far.findings[0].outcome == "better"
    assert far.findings[0].difference.basis == "one-run"
    assert near.findings[0].outcome == "alike"
    assert any("single run" in note for note in far.notes)
    assert compare(sides({"A": several, "B": [120.0]}), ["iops"]).findings[0].outcome == "unknown"


def test_two_single_runs_speak_for_themselves_only() -> None:
    fast, slow = (trial_of(run(rate, rates=rate + 20 * autoregressive(60, 0.5, 1))) for rate in (1100.0, 1000.0))
    found = compare([Side("A", [slow]), Side("B", [fast])], ["iops", "read.p99_ns"])
    rate, tail = found.findings
    assert rate.difference.basis == "within-run"
    assert "in these two runs B is 10 % faster" in rate.words
    assert tail.outcome == "unknown", "percentiles have no series"
    assert tail.difference.low is None
    assert any("nothing is claimed beyond these two runs" in note for note in found.notes)


def test_seconds_that_resemble_each_other_are_not_taken_for_independent() -> None:
    """A/A of single runs of a minute whose speed wanders: 300 pairs, the sd of the rate is 1.3 %."""
    claimed = 0
    for seed in range(300):
        pair = [
            trial_of(run(rates.mean(), rates=rates))
            for rates in (1000 + 50 * autoregressive(60, 0.7, 2 * seed + at) for at in (0, 1))
        ]
        found = compare([Side("A", pair[:1]), Side("B", pair[1:])], ["iops"])
        claimed += found.findings[0].difference.significant
    assert claimed / 300 <= 0.07


def test_holm_decides_and_the_interval_agrees_with_the_decision() -> None:
    draw = draws(7)
    for seed in range(30):
        draw = draws(seed)
        values = {"A": 100 * np.exp(0.03 * draw.normal(size=5))}
        values |= {f"B{at}": 100 * (1 + 0.02 * at) * np.exp(0.03 * draw.normal(size=5)) for at in range(5)}
        found = [finding.difference for finding in compare(sides(values), ["iops"]).findings]
        ordered = sorted(present(each.p) for each in found)
        adjusted = np.minimum(1, np.maximum.accumulate([(5 - at) * p for at, p in enumerate(ordered)]))
        assert sorted(present(each.p_adjusted) for each in found) == pytest.approx(list(adjusted))
        for each in found:
            assert each.significant == (present(each.p_adjusted) < 0.05)
        assert each.significant == (not present(each.low) <= 0 <= present(each.high))


@pytest.mark.parametrize(
    ("a", "b", "outcome", "words"),
    [
        ([100, 101, 99, 100], [112, 113, 111, 112], "better", "B is 12 % faster than A"),
        ([112, 113, 111, 112], [100, 101, 99, 100], "worse", "B is 11 % slower than A"),
        ([100, 101, 99, 100], [100, 100, 101, 99], "alike", "is at most"),
        ([0, 1, 0, 2], [1, 0, 0, 1], "alike", "do not differ significantly"),
        ([5, 5, 5], [5, 5, 5], "alike", "is at most 23 %"),
        ([500, 500, 500], [600, 600, 600], "better", "20 % faster than A (95 % interval"),
        ([5], [6], "unknown", "do not show how much of that is chance"),
        ([1, 1000], [500, 2], "alike", "no difference is detectable"),
    ],
)
def test_a_difference_is_said_in_words(a: list[float], b: list[float], outcome: str, words: str) -> None:
    found = compare(sides({"A": a, "B": b}), ["iops"]).findings[0]
    assert found.outcome == outcome
    assert words in found.words


def test_latency_is_lower_or_higher_and_lower_is_better() -> None:
    found = compare(sides({"A": [100, 101, 99], "B": [50, 51, 49]}, metric="read.p99_ns"), ["read.p99_ns"])
    assert "B is 50 % lower than A" in found.findings[0].words
    assert found.findings[0].outcome == "better"
    moved = compare(sides({"A": [1, 1.1, 0.9], "B": [5, 5.1, 4.9]}, metric="device.%util"), ["device.%util"])
    assert moved.findings[0].outcome == "different"


def test_what_is_not_a_number_is_left_out_with_a_note() -> None:
    found = compare(sides({"A": [100, 101, math.nan, 99], "B": [110, 111, 112]}), ["iops"])
    assert (found.findings[0].difference.trials_a, found.findings[0].difference.left_out) == (3, 1)
    assert any(note.startswith("1 trial has not every metric") for note in found.notes)


def test_more_trials_are_asked_for_than_there_are_where_the_difference_is_small() -> None:
    draw = draws(11)
    values = {key: 100 * np.exp(0.05 * draw.normal(size=4)) for key in "AB"}
    small = compare(sides(values), ["iops"], apart=0.02).findings[0].planning
    large = compare(sides(values), ["iops"], apart=0.30).findings[0].planning
    assert present(small.needed) > 50 > present(large.needed) >= 2
    assert 0.05 < present(small.finds) < 0.5


def test_invalid_runs_do_not_count() -> None:
    side = Side("A", [trial_of(run(100.0)), trial_of(run(900.0, number=1, invalid=True))])
    assert [trial.values["iops"] for trial in valid(side).trials] == [100.0]


def test_sides_without_a_common_metric_cannot_be_compared() -> None:
    a, b = sides({"A": [1.0, 2.0]}), sides({"B": [1.0, 2.0]}, metric="knee.iops")
    with pytest.raises(Incomparable, match="A, B: no common metric"):
        study([*a, *b])
    with pytest.raises(Incomparable, match=r"`metric=` iop: no run has it; near to it are iops"):
        study(sides({"A": [1.0, 2.0], "B": [1.0, 2.0]}), ["iop"])


def test_trials_of_different_workloads_are_compared_within_each() -> None:
    """B is 10 % faster in both workloads, which differ by a factor of a hundred."""
    draw = draws(13)
    parts = []
    for label, factor in (("A", 1.0), ("B", 1.1)):
        trials = [
            Trial(
                id=f"{label}{kind}{number}",
                values={"iops": level * factor * float(np.exp(0.01 * draw.normal()))},
                workload=kind,
                order=(f"{number:02}{label}", 0),
            )
            for kind, level in (("small", 100.0), ("large", 10_000.0))
            for number in range(4)
        ]
        parts.append(Side(label, trials))
    found = compare(parts, ["iops"]).findings[0]
    assert found.outcome == "better"
    assert found.difference.change == pytest.approx(0.1, abs=0.02)


def test_what_differs_besides_is_said() -> None:
    plain = run(100.0)
    wide = replace(plain, workload=replace(plain.workload, streams=[replace(plain.workload.streams[0], workers=99)]))
    tuned = replace(plain, settings=replace(plain.settings, before={"sda.scheduler": "bfq"}))
    other = replace(plain, target=replace(plain.target, asked="/dev/sdb"))
    likeness = [
        compare([Side("A", [trial_of(plain)]), Side("B", [trial_of(each)])], ["iops"]).likeness
        for each in (plain, wide, tuned, other)
    ]
    assert likeness[0].words == []
    assert likeness[1].words == ["Not the same workload: workers 16 against 99"]
    assert likeness[2].words == ["Settings differ: sda.scheduler none against bfq"]
    assert likeness[3].words == ["Not the same target: target /dev/sda against /dev/sdb"]


def test_what_is_zero_in_every_trial_is_compared_only_when_asked_for() -> None:
    def side(label: str, reads: float) -> Side:
        values = {"device.r/s": reads, "device.w/s": 0.0}
        return Side(label, [Trial(id=f"{label}{number}", values=values) for number in range(2)])

    both = [side("A", 100.0), side("B", 110.0)]
    assert common_metrics(both) == ["device.r/s"]
    assert {each.difference.metric for each in compare(both, ["device.w/s"]).findings} == {"device.w/s"}


@pytest.mark.promise(18)
def test_equal_figures_of_a_real_device_are_rounded_and_not_exact() -> None:
    """One request in two seconds is what a window of two seconds can resolve."""

    def side(label: str, requests: int) -> Side:
        records = [run(requests / 2, number=2 * at + (label == "B"), seconds=2) for at in range(4)]
        return Side(label, [trial_of(each) for each in records])

    found = compare([side("A", 20), side("B", 22)], ["iops"])
    difference = found.findings[0].difference
    assert "exactly" not in found.findings[0].words
    assert not difference.identical
    assert width(difference) >= 0.04, "half a request of 20, and half of 22, to either side"
    assert any("rounded, not equal" in note for note in found.notes)
    one = compare([side("A", 20), side("B", 21)], ["iops"]).findings[0]
    assert one.outcome == "alike", "a single request is not resolved"


@pytest.mark.promise(18)
def test_only_a_model_is_exact() -> None:
    def side(label: str, iops: float) -> Side:
        records = [run(iops, number=at) for at in range(3)]
        modelled = [replace(each, target=replace(each.target, kind="model")) for each in records]
        return Side(label, [trial_of(each) for each in modelled])

    assert "20 % faster than A, exactly" in compare([side("A", 500), side("B", 600)], ["iops"]).findings[0].words
    assert "equal to the last digit" in compare([side("A", 500), side("B", 500)], ["iops"]).findings[0].words
