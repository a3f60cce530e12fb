"""The settings that may be the best, and the effects of factors."""

from __future__ import annotations

import numpy as np
import pytest

from spindle.stats.effects import effects
from spindle.stats.ranking import Ranking, rank
from spindle.stats.strata import strata
from spindle.stats.trial import Trial
from tests.stats.campaign import in_random_blocks, sides


def ranked(values: dict[str, list[float]], metric: str = "iops", **changes: bool) -> Ranking:
    made = sides(values, metric=metric, **changes)
    found = rank(metric, made, strata(made))
    assert found is not None
    return found


def test_the_true_best_is_in_the_set_as_often_as_promised() -> None:
    """300 campaigns of four cells, two of them equally good: at most 5 % may miss one of them, the sd is 1.3 %."""
    missed = 0
    for seed in range(300):
        values = in_random_blocks([0.0, 0.04, 0.04, 0.01], 4, 0.03, 0.6, np.random.default_rng(seed))
        missed += not set("BC") & set(ranked(values, blocks=True).best)
    assert missed / 300 <= 0.05


def test_a_clear_winner_is_alone() -> None:
    values = in_random_blocks([0.0, 0.2, 0.05], 5, 0.02, 0.5, np.random.default_rng(1))
    found = ranked(values, blocks=True)
    assert found.best == ["B"]
    assert [place.label for place in found.places] == ["B", "C", "A"]
    assert "B is the best" in found.words
    assert found.places[0].at_most == 0
    worst = found.places[-1]
    assert worst.at_least <= worst.behind <= worst.at_most
    assert worst.at_least <= 1 - 1 / 1.2 <= worst.at_most


def test_alike_cells_have_no_winner() -> None:
    found = ranked({"A": [100, 103, 97], "B": [101, 98, 103], "C": [99, 104, 96]})
    assert len(found.best) == 3
    assert "none is significantly worse than the best" in found.words


def test_equals_without_scatter_have_no_winner() -> None:
    """A model with one seed, or writes of a load that reads."""
    for value in (0.0, 1234.5):
        found = ranked({name: [value] * 3 for name in "ABC"})
        assert found.best == ["A", "B", "C"]
        assert "none is significantly worse than the best" in found.words
    assert ranked({"A": [70.0] * 3, "B": [75.0] * 3, "C": [75.0] * 3}).best == ["B", "C"]


def test_low_latency_wins() -> None:
    found = ranked({"A": [10, 10.1, 9.9], "B": [5, 5.1, 4.9], "C": [8, 8.1, 7.9]}, metric="read.p99_ns")
    assert found.best == ["B"]
    assert found.places[-1].behind == pytest.approx(1.0, abs=0.02), "twice the latency is 100 % behind"


def test_a_single_trial_each_ranks_nothing() -> None:
    made = sides({"A": [1.0], "B": [2.0], "C": [3.0]})
    assert rank("iops", made, strata(made)) is None


def factorial(draw: np.random.Generator, blocks: int = 4, missing: int = 0) -> list[Trial]:
    """Scheduler: bfq 10 % slower; depth 32: twice as fast; cpu: nothing; bfq at depth 32: another 20 % slower."""
    trials = []
    for block in range(blocks):
        for scheduler in ("none", "bfq"):
            for depth in ("1", "32"):
                for cpu in ("0", "1"):
                    value = 1000 * (0.9 if scheduler == "bfq" else 1) * (2 if depth == "32" else 1)
                    value *= 0.8 if (scheduler, depth) == ("bfq", "32") else 1
                    value *= np.exp(0.02 * draw.normal() + 0.3 * block)
                    cell = {"scheduler": scheduler, "depth": depth, "cpu": cpu}
                    trials.append(Trial(id="", values={"iops": float(value)}, campaign="c", block=block, cell=cell))
    return trials[missing:]


@pytest.mark.parametrize("missing", [0, 3])
def test_effects_and_the_interaction_that_was_planted_are_found(missing: int) -> None:
    found = effects("iops", factorial(np.random.default_rng(4), missing=missing))
    assert found is not None
    significant = {effect.name for effect in found.effects if effect.significant}
    assert significant == {"scheduler", "depth", "scheduler x depth"}
    assert found.noise == pytest.approx(0.02, abs=0.008)
    depth = next(effect for effect in found.effects if effect.name == "depth")
    change = {level.name: level.change for level in depth.levels}
    assert (1 + change["32"]) / (1 + change["1"]) == pytest.approx(2 * 0.8**0.5, rel=0.03)


def test_factors_that_do_nothing_are_rarely_claimed_to() -> None:
    claimed = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        trials = [
            Trial(
                id="",
                values={"iops": float(np.exp(0.05 * draw.normal()))},
                campaign="c",
                block=block,
                cell={"a": a, "b": b},
            )
            for block in range(3)
            for a in "xyz"
            for b in "uv"
        ]
        found = effects("iops", trials)
        assert found is not None
        claimed += any(effect.significant for effect in found.effects)
    assert claimed / 200 <= 0.07


def test_without_factors_or_without_spare_trials_there_are_no_effects() -> None:
    assert effects("iops", [Trial(id="", values={"iops": 1.0})]) is None
    two = [Trial(id="", values={"iops": value}, cell={"a": a}) for value, a in ((1.0, "x"), (2.0, "y"))]
    assert effects("iops", two) is None
