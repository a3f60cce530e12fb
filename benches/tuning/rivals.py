"""Other optimisers, on the same spaces: random search, Optuna's TPE, SMAC. They recommend their best observed trial."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable

from spindle.search.space import Point, Space

Measure = Callable[[Point], float]
NAMES = ("random", "tpe", "smac")


def best_of(name: str, space: Space, measure: Measure, trials: int, seed: int) -> Point:
    """The point of the best observed trial; more is better. `measure` is noisy."""
    seen: list[tuple[float, Point]] = []

    def asked(levels: list[int]) -> float:
        point = space.canonical(levels)
        value = measure(point)
        seen.append((value, point))
        return value

    {"random": _random, "tpe": _tpe, "smac": _smac}[name](space, asked, trials, seed)
    return max(seen)[1]


def _random(space: Space, asked: Callable[[list[int]], float], trials: int, seed: int) -> None:
    by = random.Random(seed)
    for _ in range(trials):
        asked([by.randrange(len(one.labels)) for one in space.axes])


def _tpe(space: Space, asked: Callable[[list[int]], float], trials: int, seed: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        return asked(
            [
                trial.suggest_int(one.name, 0, len(one.labels) - 1)
                if None not in one.positions
                else trial.suggest_categorical(one.name, list(range(len(one.labels))))
                for one in space.axes
            ]
        )

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    study.optimize(objective, n_trials=trials)


def _smac(space: Space, asked: Callable[[list[int]], float], trials: int, seed: int) -> None:
    import tempfile
    from pathlib import Path

    from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, UniformIntegerHyperparameter
    from smac import BlackBoxFacade, Scenario

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    names = [f"axis{at}" for at in range(len(space.axes))]
    own = ConfigurationSpace(seed=seed)
    for name, one in zip(names, space.axes, strict=True):
        count = len(one.labels)
        own.add(
            UniformIntegerHyperparameter(name, 0, count - 1)
            if None not in one.positions
            else CategoricalHyperparameter(name, list(range(count)))
        )

    def cost(config: Configuration, seed: int = 0) -> float:
        return -asked([int(config[name]) for name in names])

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(own, deterministic=False, n_trials=trials, seed=seed, output_directory=Path(folder))
        BlackBoxFacade(scenario, cost, overwrite=True, logging_level=False).optimize()
