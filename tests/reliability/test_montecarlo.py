"""The Monte Carlo simulation agrees with the chain; `make bench-reliability` does it for 1000 random arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spindle.reliability.cases import random_cases
from spindle.reliability.group import Group
from spindle.reliability.loss import loss, yearly_loss
from spindle.reliability.montecarlo import Estimate, estimate, interval


def array(**changes: Any) -> Group:
    return Group(
        **{"level": "raid6", "drives": 12, "afr": 0.01, "capacity_bytes": 4e12, "rebuild_hours": 10.0, **changes}
    )


def test_the_chain_is_inside_the_interval_as_often_as_it_should_be() -> None:
    inside = 0
    for number, group in enumerate(random_cases(40, seed=7)):
        found = estimate(group, lives=8_000, seed=number)
        inside += found.low <= yearly_loss(group) <= found.high
    assert inside >= 34, f"{inside} of 40: with 95 % each, fewer have a probability of 1 %"


def test_a_billionth_a_year_is_estimated_to_20_percent() -> None:
    group = array(replace_hours=2.0, ure_per_bit=0.0, spares=2)
    exact = yearly_loss(group)
    assert 3e-10 < exact < 3e-9
    found = estimate(group, within=0.2)
    assert found.relative_error <= 0.2
    assert found.probability == pytest.approx(exact, rel=0.3)


def test_the_interval_of_skewed_weights_misses_on_both_sides_alike() -> None:
    """Samples of 100 exponential numbers: the symmetric interval is too low three times as often as too high."""
    count = 100
    draws = np.random.default_rng(1).exponential(size=(20_000, count))
    means, squares, cubes = ((draws**power).mean(axis=1).tolist() for power in (1, 2, 3))
    ends = np.array([interval(count, *each) for each in zip(means, squares, cubes, strict=True)])
    half = 1.96 * draws.std(axis=1) / np.sqrt(count)
    low, high = (ends[:, 1] < 1).mean(), (ends[:, 0] > 1).mean()
    usual_low, usual_high = (means + half < 1).mean(), (means - half > 1).mean()
    assert usual_low > 3 * usual_high
    assert low == pytest.approx(high, abs=0.01)
    assert low + high < usual_low + usual_high


def test_the_interval_without_skewness_is_the_usual_one() -> None:
    """A sample of -1 and 1, as often as each other, and one of equal numbers."""
    assert interval(100, 0.0, 1.0, 0.0) == pytest.approx((-0.1959964, 0.1959964))
    assert interval(100, 2.0, 4.0, 8.0) == (2.0, 2.0), "equal numbers"


def test_both_causes_agree_with_the_chain() -> None:
    group = array(level="raid5", drives=8, afr=0.05, ure_per_bit=1e-16, rebuild_hours=40.0)
    exact, found = loss(group), estimate(group, lives=60_000)
    assert found.by_sectors == pytest.approx(exact.by_sectors, rel=0.1)
    assert found.by_drives == pytest.approx(exact.by_drives, rel=0.1)


def test_rebuilds_of_a_fixed_time_lose_as_often_as_the_formula_says() -> None:
    """Without a wait, three failures overlap with probability n (n - 1) (n - 2) (rate T)^2 rate / 2 in an hour."""
    group = array(replace_hours=0.0, ure_per_bit=0.0, rebuild_stages=1)
    rate, hours = group.failure_rate, group.rebuild_hours
    found = estimate(group, lives=60_000, fixed=True)
    first = 12 * 11 * 10 * rate**3 * hours**2 / 2 * 8766
    assert found.probability == pytest.approx(first, rel=0.15)
    assert yearly_loss(group) == pytest.approx(2 * first, rel=0.05), "exponential times lose twice as often"


def test_the_same_seed_gives_the_same_estimate() -> None:
    def run(seed: int) -> Estimate:
        return estimate(array(), lives=2_000, seed=seed)

    assert run(3) == run(3)
    assert run(3) != run(4)
