"""Warm-up, drift and changes of level."""

from __future__ import annotations

import numpy as np
import pytest

from spindle.stats.change import changes, drift, warm_up
from spindle.stats.compare import compare
from spindle.stats.trial import Side, trial_of
from tests.stats.campaign import run, sides
from tests.stats.noise import autoregressive


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_a_steady_series_has_neither_warm_up_nor_change_nor_drift(rho: float) -> None:
    seen = {"change": 0, "warm": 0, "drift": 0}
    for seed in range(150):
        series = 100 + autoregressive(120, rho, seed)
        seen["change"] += bool(changes(series))
        seen["warm"] += warm_up(series).intervals > 0
        seen["drift"] += drift(series.tolist()).p < 0.05  # type: ignore[union-attr]
    assert seen["change"] <= 0.06 * 150
    assert seen["warm"] <= 0.05 * 150
    assert seen["drift"] <= 0.10 * 150


def test_a_warm_up_is_found_and_how_far_off_it_was() -> None:
    series = 100 + autoregressive(120, 0.3, 1)
    series[:20] -= 30
    found = warm_up(series)
    assert 15 <= found.intervals <= 30
    assert found.off == pytest.approx(-0.3, abs=0.1)


def test_a_change_of_level_is_found_where_it_was() -> None:
    series = 100 + autoregressive(120, 0.3, 2)
    series[70:] += 10
    found = changes(series)
    assert len(found) == 1
    assert abs(found[0].at - 70) <= 2
    assert found[0].after - found[0].before == pytest.approx(10, abs=1)


def test_a_perfect_step_and_a_constant_are_no_trouble() -> None:
    assert [each.at for each in changes(np.repeat([5.0, 7.0], 20))] == [20]
    assert changes(np.full(40, 5.0)) == []
    assert changes(np.arange(3.0)) == []
    assert warm_up(np.full(60, 5.0)).intervals == 0
    assert drift([5.0] * 30).p == 1.0  # type: ignore[union-attr]
    assert drift([1.0, 2.0]) is None


def test_a_long_series_is_looked_at_in_groups() -> None:
    series = 100 + autoregressive(5000, 0.3, 3)
    series[3000:] += 5
    assert [round(each.at, -2) for each in changes(series)] == [3000]


def test_a_slow_drift_is_found() -> None:
    series = 100 + autoregressive(120, 0.5, 4) + np.linspace(0, 8, 120)
    found = drift(series.tolist())
    assert found is not None
    assert found.p < 0.01
    assert found.over(120) == pytest.approx(0.08, abs=0.03)


def test_a_comparison_says_what_was_not_the_same_all_the_time() -> None:
    cold = 1000 + 10 * autoregressive(60, 0.2, 5)
    cold[:10] *= 0.5
    stepped = 1000 + 10 * autoregressive(60, 0.2, 6)
    stepped[30:] *= 0.8
    one, two = (Side(label, [trial_of(run(1000.0, rates=rates))]) for label, rates in (("A", cold), ("B", stepped)))
    notes = " ".join(compare([one, two], ["iops"]).notes)
    assert "A: its first 10 intervals are 50 % below the rest and look like a warm-up" in notes
    assert "B: iops changed from" in notes

    draw = np.random.default_rng(7)
    values = 1000 * np.exp(0.01 * draw.normal(size=24))
    values[14:] *= 0.9
    notes = " ".join(compare(sides({"A": values, "B": values[:14]}), ["iops"]).notes)
    assert "A: iops changed by -11 % for good at trial 15 of 24" in notes
