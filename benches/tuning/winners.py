"""False winners: settings that do nothing, and settings with two modes 30 % apart, by the whole search."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from tests.tune.landscapes import noisy, plan, searched

Levels = Mapping[str, str]


def _idle(_: Levels, noise: random.Random) -> float:
    return noisy(1000, noise, 0.03)


def _modes(levels: Levels, noise: random.Random) -> float:
    """bfq is 15 % better in half of its trials, and 15 % worse in the others."""
    mode = noise.choice((1.15, 0.85)) if levels["scheduler"] == "bfq" else 1.0
    return noisy(1000 * mode, noise, 0.03)


def table(seeds: int) -> Iterator[str]:
    """Two lines."""
    idle = [searched(plan(seed), _idle) for seed in range(seeds)]
    kept = sum(not (one.recommended and abs(one.change) >= WORTH) for one in idle)
    yield f"settings that do nothing: kept what there was in {kept} of {seeds} (goal: 95 of 100)"
    modes = [searched(plan(seed), _modes) for seed in range(seeds)]
    wrong = sum(one.recommended and one.winner is not None
                and one.schedule.levels(one.winner)["scheduler"] == "bfq" for one in modes)  # fmt: skip
    yield f"settings with two modes 30 % apart: recommended in {wrong} of {seeds} (goal: 0 of 100)"


WORTH = 0.01
"""Smallest gain that is worth a change, as in a plan."""
