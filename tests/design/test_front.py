"""The Pareto filter against a second implementation."""

from __future__ import annotations

import moocore
import numpy as np
import pytest

from spindle.design.answer import MachineAnswer, distinct
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


def machine(cost: float, share: float, loss: float, watts: float, spread: float = 0.0) -> MachineAnswer:
    return MachineAnswer(
        arrays=[], cost=cost, bays=4, watts=watts, yearly_loss=loss, bound_share=share, p99_ns=share * 1e9,
        p99_spread=spread,
    )  # fmt: skip


def test_designs_that_differ_by_less_than_is_known_from_a_cheaper_one_are_left_out() -> None:
    best = machine(100, 0.50, 1e-5, 20)
    front = [
        best,
        machine(110, 0.48, 9e-6, 19.5),
        machine(120, 0.40, 1e-5, 20),
        machine(130, 0.50, 1e-6, 20),
        machine(140, 0.50, 1e-5, 10),
        machine(150, 0.39, 9e-7, 10),
        machine(160, 0.30, 9e-7, 10, spread=0.5),
    ]
    assert distinct(front, best) == [True, False, True, True, True, True, False]
    assert distinct(front, front[1]) == [True, True, True, True, True, True, False]
    assert distinct([], None) == []
