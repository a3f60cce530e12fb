"""Intervals, the worth of a series, and the number of trials."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spindle.stats.autocorrelation import lag_one, long_run, mean_inflation
from spindle.stats.estimate import interval, kind_of_mean, mean_of_trials, of_trials
from spindle.stats.power import detectable, trials_needed
from tests.documents import present
from tests.stats.noise import autoregressive


def test_the_interval_of_a_few_trials_is_students() -> None:
    found = interval([9.0, 10.0, 11.0, math.nan])
    assert found.n == 3
    assert found.estimate == 10.0
    assert found.high - 10.0 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert found.relative == pytest.approx(0.2484138, rel=1e-6)
    assert interval([9.0, 10.0, 11.0], 0.5).relative < found.relative


def test_one_value_says_nothing_of_its_spread_and_none_is_an_error() -> None:
    assert interval([5.0]).relative == math.inf
    assert interval([5.0, 5.0]).relative == 0.0
    with pytest.raises(ValueError, match="no values"):
        interval([math.nan])
    with pytest.raises(ValueError, match="confidence"):
        interval([1.0], 95)


def test_a_wild_value_does_not_move_the_trimmed_mean() -> None:
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 10.1, 9.9, 10.0, 500.0]
    assert interval(values, method="trimmed").relative < 0.02
    assert interval(values).relative > 1


def test_a_series_is_worth_fewer_values_than_it_has() -> None:
    loose = interval(list(autoregressive(300, 0.0, 1) + 100), series=True)
    tight = interval(list(autoregressive(300, 0.9, 1) + 100), series=True)
    assert loose.method == tight.method == "series"
    assert loose.effective_n > 200
    assert tight.effective_n < 40
    assert interval([1.0, 2.0, 3.0], series=True).relative == math.inf, "too short to know its own correlation"


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.8])
def test_intervals_of_correlated_series_hold_the_true_mean_as_often_as_they_say(rho: float) -> None:
    """900 series of a minute; binomial sd of the share is 0.7 %."""
    missed = 0
    for seed in range(900):
        found = interval(list(autoregressive(60, rho, seed)), series=True)
        missed += not found.low <= 0 <= found.high
    assert missed / 900 <= 0.07


def test_correlation_of_neighbours_is_seen_without_the_bias_of_short_series() -> None:
    found = [lag_one(autoregressive(25, 0.5, seed)) for seed in range(400)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.04)
    assert lag_one(np.full(30, 7.0)) == 0.0
    assert mean_inflation(0.5, 1) == 1.0
    assert mean_inflation(0.5, 10_000) == pytest.approx(3.0, rel=1e-3)
    assert long_run(np.full(30, 7.0)).effective == 30


def test_trials_needed_are_those_of_the_power_formula() -> None:
    """5 % under 3 %: statsmodels' TTestIndPower().solve_power(log(1.05)/0.03, alpha=0.05, power=0.9) is 9.02."""
    assert trials_needed(0.05, 0.03) == 10
    assert trials_needed(-0.05, 0.03) == 9
    assert trials_needed(0.05, 0.03, blocks=True) == 12, (
        "TTestPower() with the noise of a pair: 10.06; few blocks, surer"
    )
    assert present(trials_needed(0.05, 0.06, blocks=True)) > present(trials_needed(0.05, 0.06))
    assert detectable(10, 0.03) == pytest.approx(0.0472, abs=0.0005)
    assert trials_needed(0.05, 0.03, comparisons=10) == 15


def test_noise_seen_in_few_trials_asks_for_more() -> None:
    known = trials_needed(0.05, 0.03)
    asked = [trials_needed(0.05, 0.03, noise_freedom=freedom) for freedom in (4, 20, 1000)]
    assert known is not None
    assert asked == sorted(asked, key=lambda n: -(n or 0))
    assert (asked[0] or 0) > 1.5 * known >= (asked[2] or 0)


def test_the_extremes_of_planning_are_answered() -> None:
    assert trials_needed(0.0001, 5.0) is None
    assert trials_needed(10.0, 0.001) == 2
    assert trials_needed(0.05, 0.0) == 2
    assert detectable(1, 0.03) is None
    assert detectable(3, 0.0) == 0.0
    for difference, noise in ((0.0, 0.1), (0.1, -1.0)):
        with pytest.raises(ValueError, match=r"difference|noise"):
            trials_needed(difference, noise)


@pytest.mark.promise(15)
def test_trials_have_one_kind_of_mean_whose_interval_stays_above_zero() -> None:
    found = of_trials([100.0, 1000.0, 4000.0])
    assert found.method == "geometric"
    assert found.estimate == pytest.approx(mean_of_trials([100.0, 1000.0, 4000.0])) == pytest.approx(736.8, rel=1e-3)
    assert 0 < found.low < found.estimate < found.high
    logs = interval([math.log(value) for value in (100.0, 1000.0, 4000.0)])
    assert (found.low, found.high) == (pytest.approx(math.exp(logs.low)), pytest.approx(math.exp(logs.high)))
    assert of_trials([0.0, 5.0]).estimate == mean_of_trials([0.0, 5.0]) == 2.5
    assert of_trials([5.0]).relative == math.inf
    assert kind_of_mean([1.0], [2.0]) == "geometric means"
    assert kind_of_mean([0.0], [2.0]) == "geometric means (arithmetic where a value is 0)"
