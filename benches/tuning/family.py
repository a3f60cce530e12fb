"""A synthetic family of eight mixed settings whose best is known.

Each landscape is drawn from its seed: main effects of five settings (curves over numbers, steps over words), one
interaction, three settings that do nothing. The regret is the true distance of the recommended settings to the best
point: those of the largest expected value for the guided search, the best observed trial for the others, which is what
they recommend.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spindle.search.choice import ranked
from spindle.search.space import Numbers, Point, Space, axis
from spindle.search.strategies import ExpectedImprovement
from spindle.search.trials import Goal, TrialPoint
from tuning import rivals

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


def guided(seed: int, noise: float, trials: int) -> float:
    """Regret of the guided search."""
    truth, by = landscape(seed), random.Random(f"{seed}/{noise}/guided")
    goal, start = Goal(higher=True), tuple(0 for _ in SPACE.axes)
    strategy, design = ExpectedImprovement(SPACE, goal, seed), SPACE.design(trials // 4, f"{seed}")
    done: list[TrialPoint] = []
    while len(done) < trials:
        block = len(done) // BLOCK
        taken = {one.point for one in done if one.block == block}
        if len(done) % BLOCK == 0:
            point: Point | None = start
        elif design:
            point = design.pop()
        else:
            point = strategy.ask(done, taken)
        assert point is not None
        done.append(TrialPoint(point, block, truth.at(point) * by.lognormvariate(0, noise)))
    chosen = ranked(SPACE, done, goal, start)
    return 1 - truth.at(chosen[0][0] if chosen else start) / truth.best()


def rival(name: str, seed: int, noise: float, trials: int) -> float:
    """Regret of another optimiser."""
    truth, by = landscape(seed), random.Random(f"{seed}/{noise}/{name}")

    def measure(point: Point) -> float:
        return truth.at(point) * by.lognormvariate(0, noise)

    return 1 - truth.at(rivals.best_of(name, SPACE, measure, trials, seed)) / truth.best()


def table(seeds: int, trials: int, others: list[str]) -> Iterator[str]:
    """A row for each optimiser and noise."""
    yield f"synthetic family: {seeds} landscapes, {trials} trials each; true regret, mean and 95 % quantile"
    yield f"{'search':8} {'noise':>5} {'mean':>6} {'95 %':>6} {'goal':>6}"
    for name in ("guided", *others):
        for noise in NOISES:
            found = np.asarray(
                [
                    guided(seed, noise, trials) if name == "guided" else rival(name, seed, noise, trials)
                    for seed in range(seeds)
                ]
            )
            goal = f"{GOALS[noise]:.1%}" if name == "guided" else ""
            yield f"{name:8} {noise:5.0%} {found.mean():6.1%} {np.quantile(found, 0.95):6.1%} {goal:>6}".rstrip()
