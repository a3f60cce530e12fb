"""The linear model against its textbook cases."""

from __future__ import annotations

import numpy as np
import pytest

from spindle.stats.model import fit, in_turns, numbered


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_complete_blocks_give_the_residual_mean_square_of_the_analysis_of_variance() -> None:
    values = draws(1).normal(size=(4, 6)) + 5 * draws(2).normal(size=6)
    found = fit(values.ravel(), np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4), in_time=False)
    residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    assert found.most == pytest.approx(15)
    assert float((found.variances * found.freedoms).sum()) == pytest.approx(float((residuals**2).sum()))
    contrast = found.contrast(2, 0)
    assert contrast is not None
    assert contrast.difference == pytest.approx(float((values[2] - values[0]).mean()))


def test_incomplete_blocks_connect_what_never_met() -> None:
    """A and C are never in one block; B is in all. Without noise the truth comes out."""
    groups, blocks = np.array([0, 1, 1, 2, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    values = np.array([1.0, 2.0, 4.0])[groups] + np.array([10.0, 20.0, 30.0, 40.0])[blocks]
    contrast = fit(values, groups, blocks, in_time=False).contrast(2, 0)
    assert contrast is not None
    assert contrast.difference == pytest.approx(3.0)


def test_groups_that_no_block_connects_cannot_be_compared() -> None:
    found = fit(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), in_time=False)
    assert found.contrast(0, 1) is None


def test_groups_that_took_turns_are_detected_by_order_of_time() -> None:
    assert in_turns(np.array([0, 1, 0, 1, 1, 0, 0, 1]))
    assert not in_turns(np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    assert numbered(["x", "y", "x"]).tolist() == [0, 1, 0]
