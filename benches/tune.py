"""Regret of the settings that a search recommends, on a synthetic family of eight mixed settings whose best is known.

    python benches/tune.py [--seeds N] [--trials N]

Each landscape is drawn from its seed: main effects of five settings (curves over numbers, steps over words), one
interaction, three settings that do nothing. A row is a strategy at a noise. The regret is the true distance to the
best point: of the choice by expected value, before race and confirmation, and of the best observed trial, which
other tuners recommend.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spindle.search.choice import ranked
from spindle.search.space import Numbers, Point, Space, axis
from spindle.search.strategies import ExpectedImprovement, Random, Strategy
from spindle.search.trials import Goal, TrialPoint

NOISES = (0.02, 0.05, 0.10)
GOALS = {0.02: 0.015, 0.05: 0.035, 0.10: 0.052}
"""Noise -> largest mean regret that is wanted."""
BLOCK = 8
NUMBERS = [str(2**at) for at in range(8)]
SPACE = Space(
    (
        *(axis(f"number{at}", NUMBERS, str.isdigit) for at in range(5)),
        *(axis(f"word{at}", ["a", "b", "c", "d"], str.isdigit) for at in range(3)),
    )
)
MOVING = (0, 1, 2, 5, 6)
"""Axes with an effect."""


@dataclass(frozen=True)
class Landscape:
    """True values: the product of the axes' factors, and of the factors of one pair of axes."""

    factors: dict[int, Numbers]
    pair: Numbers

    def at(self, point: Point) -> float:
        """The true value; the best of the landscape is 1 or below."""
        value = float(np.prod([factor[point[axis]] for axis, factor in self.factors.items()]))
        return value * float(self.pair[point[0], point[5]])

    def best(self) -> float:
        """The true best: every combination of the axes with an effect."""
        found = self.pair[:, :] * np.outer(self.factors[0], self.factors[5])
        return float(found.max() * np.prod([self.factors[axis].max() for axis in MOVING if axis not in (0, 5)]))


def landscape(seed: int) -> Landscape:
    """Draw a landscape."""
    by = np.random.default_rng(seed)
    factors = {}
    for at in MOVING:
        count, depth = len(SPACE.axes[at].labels), by.uniform(0.1, 0.4)
        if at < 5:
            peak = by.uniform(0, 1)
            factors[at] = 1 - depth * (np.linspace(0, 1, count) - peak) ** 2 / max(peak, 1 - peak) ** 2
        else:
            factors[at] = 1 - depth * by.uniform(0, 1, count)
    return Landscape(factors, 1 - 0.1 * by.uniform(0, 1, (8, 4)))


def regrets(strategy: str, noise: float, seed: int, trials: int) -> tuple[float, float]:
    """Regret of the choice by expected value, and of the best observed trial."""
    truth, by = landscape(seed), random.Random(f"{seed}/{noise}/{strategy}")
    goal, start = Goal(higher=True), tuple(0 for _ in SPACE.axes)
    asked: Strategy = ExpectedImprovement(SPACE, goal, seed) if strategy == "guided" else Random(SPACE, seed)
    design = SPACE.design(trials // 4, f"{seed}") if strategy == "guided" else []
    done: list[TrialPoint] = []
    while len(done) < trials:
        block = len(done) // BLOCK
        taken = {one.point for one in done if one.block == block}
        if len(done) % BLOCK == 0:
            point: Point | None = start
        elif design:
            point = design.pop()
        else:
            point = asked.ask(done, taken)
        assert point is not None
        done.append(TrialPoint(point, block, truth.at(point) * by.lognormvariate(0, noise)))
    best = truth.best()
    chosen = ranked(SPACE, done, goal, start)
    observed = max(done, key=lambda one: one.value or 0.0).point
    return 1 - truth.at(chosen[0][0] if chosen else start) / best, 1 - truth.at(observed) / best


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    given = parser.parse_args()
    print(f"{given.seeds} landscapes, {given.trials} trials each; regret: true distance to the best, mean and 95 %")
    print(f"{'strategy':9} {'noise':>5} {'regret':>7} {'95 %':>7} {'best observed':>14} {'goal':>6}")
    for strategy in ("guided", "random"):
        for noise in NOISES:
            print(row(strategy, noise, range(given.seeds), given.trials), flush=True)


def row(strategy: str, noise: float, seeds: Sequence[int], trials: int) -> str:
    """A line of the table."""
    found = np.asarray([regrets(strategy, noise, seed, trials) for seed in seeds])
    chosen, observed = found[:, 0], found[:, 1]
    goal = f"{GOALS[noise]:.1%}" if strategy == "guided" else ""
    tail = np.quantile(chosen, 0.95)
    return f"{strategy:9} {noise:5.0%} {chosen.mean():7.1%} {tail:7.1%} {observed.mean():14.1%} {goal:>6}".rstrip()


if __name__ == "__main__":
    main()
