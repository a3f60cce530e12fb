"""The Pareto filter against a second implementation."""

from __future__ import annotations

import moocore
import numpy as np
import pytest

from spindle.design.front import front


@pytest.mark.parametrize("objectives", [2, 3, 4])
@pytest.mark.parametrize("values", [4, 30, 1_000_000])
def test_the_front_is_that_of_moocore_with_ties_and_without(objectives: int, values: int) -> None:
    draw = np.random.default_rng(objectives * values)
    points = draw.integers(0, values, size=(100_000 if objectives < 4 else 20_000, objectives)).astype(float)
    expected = moocore.is_nondominated(points, keep_weakly=True)
    assert np.array_equal(front(points), expected)
    assert 0 < expected.sum() < len(points)


def test_equal_points_are_all_kept() -> None:
    points = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [2.0, 2.0]])
    assert front(points).tolist() == [True, True, True, False]


def test_of_nothing_the_front_is_empty() -> None:
    assert front(np.empty((0, 3))).tolist() == []
