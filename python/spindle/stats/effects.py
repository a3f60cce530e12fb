"""What each factor of a campaign does to a metric, alone and together with another.

Analysis of variance on logarithms (differences where values are 0 or less), blocks eliminated first. Each factor is
tested with all other factors in the model, each pair of factors with all other pairs (type II sums of squares:
Langsrud, Statistics and Computing 13 (2003) 163-167), so that missing trials do not mix them up. P values are Holm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spindle.stats.model import Numbers, numbered
from spindle.stats.trial import Trial


@dataclass(frozen=True)
class Level:
    """One level of a factor, or of two."""

    name: str
    trials: int
    change: float
    """Against the mean over the levels: 0.05 is 5 % above; a plain difference where not `relative`."""


@dataclass(frozen=True)
class Effect:
    """A factor (`scheduler`), or what two do together beyond what each does (`scheduler x depth`)."""

    factors: tuple[str, ...]
    levels: list[Level]
    """Of one factor; of two it holds the deviations from the sum of both."""
    share: float
    """Of the variance within blocks that it explains."""
    freedom: int
    p: float
    p_adjusted: float
    told: bool

    @property
    def name(self) -> str:
        """As people write it."""
        return " x ".join(self.factors)


@dataclass(frozen=True)
class Effects:
    """All factors in one metric."""

    metric: str
    relative: bool
    effects: list[Effect]
    freedom: float
    """Of the noise the effects are held against."""
    noise: float
    """Standard deviation of a trial that no factor explains."""
    not_tested: list[str]
    """What the plan or the trials that are left cannot tell, each with its reason."""


def effects(name: str, trials: Sequence[Trial], confidence: float = 0.95) -> Effects | None:
    """Main effects, and interactions of two; None: no factor has two levels, or nothing is left to know the noise."""
    having = [trial for trial in trials if math.isfinite(trial.values.get(name, math.nan))]
    factors = _factors(having)
    if not factors:
        return None
    values = np.asarray([trial.values[name] for trial in having], dtype=np.float64)
    relative = bool(values.min() > 0)
    y = np.log(values) if relative else values
    within = _within([(trial.campaign, trial.block) for trial in having])
    y = within(y)
    terms: dict[tuple[str, ...], Numbers] = {(factor,): _columns(having, (factor,)) for factor in factors}
    pairs = {pair: _columns(having, pair) for pair in combinations(factors, 2)}
    terms = {key: within(columns) for key, columns in (terms | pairs).items()}
    strata = len({(trial.campaign, trial.block) for trial in having})
    not_tested, kept = list[str](), dict(terms)
    whole = _residual(y, list(kept.values()))
    room = len(y) - strata
    # Interactions are only looked at where trials are left over to know the noise with them in the model.
    if room - whole[1] < 2:
        kept = {key: columns for key, columns in terms.items() if len(key) == 1}
        not_tested += [f"{' x '.join(pair)}: too few trials" for pair in pairs]
        whole = _residual(y, list(kept.values()))
    freedom = room - whole[1]
    if freedom < 1:
        return None
    variance = whole[0] / freedom
    total = float(y @ y)
    tested = []
    for key in kept:
        others = [columns for other, columns in kept.items() if other != key and not set(key) < set(other)]
        without, with_it = _residual(y, others), _residual(y, [*others, kept[key]])
        gained = with_it[1] - without[1]
        if gained < 1:
            not_tested.append(f"{' x '.join(key)}: its levels do not vary apart from other factors")
            continue
        squares = max(0.0, without[0] - with_it[0])
        tested.append((key, gained, squares, _probability(squares / gained, variance, gained, freedom)))
    adjusted = _holm([p for *_, p in tested])
    means = _least_squares_means(y, having, factors, kept)
    found = [
        Effect(
            factors=key,
            levels=[
                Level(level, count, math.expm1(change) if relative else change) for level, count, change in means[key]
            ],
            share=squares / total if total > 0 else 0.0,
            freedom=gained,
            p=p,
            p_adjusted=holm,
            told=holm < 1 - confidence,
        )
        for (key, gained, squares, p), holm in zip(tested, adjusted, strict=True)
    ]
    found.sort(key=lambda effect: (len(effect.factors), -effect.share))
    noise = math.sqrt(variance)
    return Effects(name, relative, found, float(freedom), math.expm1(noise) if relative else noise, not_tested)


def level_interval(found: Effects, level: Level, levels: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of one of so many levels of a factor, as if all had as many trials as this one."""
    from scipy.special import stdtrit

    noise = math.log1p(found.noise) if found.relative else found.noise
    reach = float(stdtrit(found.freedom, 0.5 + confidence / 2)) * noise * math.sqrt((1 - 1 / levels) / level.trials)
    if not found.relative:
        return level.change - reach, level.change + reach
    middle = math.log1p(level.change)
    return math.expm1(middle - reach), math.expm1(min(middle + reach, 700.0))


def _factors(trials: Sequence[Trial]) -> list[str]:
    names = dict.fromkeys(factor for trial in trials for factor in trial.cell)
    return [name for name in names if len({trial.cell.get(name) for trial in trials}) > 1]


def _level(trial: Trial, factors: Sequence[str]) -> str:
    return ", ".join(trial.cell.get(factor, "-") for factor in factors)


def _columns(trials: Sequence[Trial], factors: Sequence[str]) -> Numbers:
    """One column of ones a level."""
    numbers = numbered([_level(trial, factors) for trial in trials])
    return np.eye(int(numbers.max()) + 1)[numbers]


def _within(blocks: Sequence[Hashable]) -> Callable[[Numbers], Numbers]:
    """Takes the mean of each block out."""
    numbers = numbered(blocks)
    totals = np.bincount(numbers)

    def eliminate(values: Numbers) -> Numbers:
        sums = np.zeros((len(totals), *values.shape[1:]))
        np.add.at(sums, numbers, values)
        means = sums / totals.reshape(-1, *[1] * (values.ndim - 1))
        left: Numbers = values - means[numbers]
        return left

    return eliminate


def _residual(y: Numbers, columns: Sequence[Numbers]) -> tuple[float, int]:
    """Sum of squares that is left, and the rank of the model."""
    if not columns:
        return float(y @ y), 0
    design = np.hstack(columns)
    left, values, _ = np.linalg.svd(design, full_matrices=False)
    rank = int((values > 1e-9 * max(values.max(), 1.0)).sum())
    explained = left[:, :rank].T @ y
    return max(0.0, float(y @ y) - float(explained @ explained)), rank


def _probability(mean_square: float, variance: float, gained: int, freedom: float) -> float:
    from scipy.special import fdtrc

    if variance <= 1e-24:
        return 0.0 if mean_square > 1e-24 else 1.0
    return float(fdtrc(gained, freedom, mean_square / variance))


def _holm(ps: Sequence[float]) -> list[float]:
    adjusted, running = [1.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        running = min(1.0, max(running, (len(ps) - rank) * ps[at]))
        adjusted[at] = running
    return adjusted


def _least_squares_means(
    y: Numbers, trials: Sequence[Trial], factors: Sequence[str], kept: dict[tuple[str, ...], Numbers]
) -> dict[tuple[str, ...], list[tuple[str, int, float]]]:
    """Level -> (trials, deviation from the mean over levels), each factor beside all others in the model."""
    mains = [(factor,) for factor in factors]
    solution = np.linalg.lstsq(np.hstack([kept[key] for key in mains]), y, rcond=1e-9)[0]
    fitted = np.hstack([kept[key] for key in mains]) @ solution
    found: dict[tuple[str, ...], list[tuple[str, int, float]]] = {}
    at = 0
    for key in mains:
        names = dict.fromkeys(_level(trial, key) for trial in trials)
        own = solution[at : at + len(names)]
        at += len(names)
        counts = [sum(_level(trial, key) == name for trial in trials) for name in names]
        found[key] = [(name, n, float(c)) for name, n, c in zip(names, counts, own - own.mean(), strict=True)]
    left = y - fitted
    for pair in kept:
        if len(pair) == 2:
            labels = [_level(trial, pair) for trial in trials]
            found[pair] = [
                (
                    name,
                    labels.count(name),
                    float(np.mean([r for r, label in zip(left, labels, strict=True) if label == name])),
                )
                for name in dict.fromkeys(labels)
            ]
    return found
