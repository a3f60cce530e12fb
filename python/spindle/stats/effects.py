"""Effects of each factor of a campaign on a metric, alone and with another factor.

Analysis of variance on logarithms (differences if values are 0 or less), blocks eliminated first. Each factor is tested
with all other factors in the model, each pair of factors with all other pairs (type II sums of squares: Langsrud,
Statistics and Computing 13 (2003) 163-167), so that missing trials do not confound them. P values are Holm's.

The error of an effect is its own variation from block to block (as for repeated measures), with the degrees of freedom
of Greenhouse and Geisser (Psychometrika 24 (1959) 95-112). A noisy cell only affects the effects that it is part of;
cells need not be equally noisy. Two or three cells are compared as pairs (`pair`), as their order alone cannot exclude
a drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spindle.stats.arrangement import FEWEST_BLOCKS, block_numbers, well_mixed
from spindle.stats.model import Indices, Numbers, numbered
from spindle.stats.pair import between
from spindle.stats.strata import Strata
from spindle.stats.trial import Side, Trial

UNEQUAL = 0.05
"""Cells are called unequally noisy below this p."""


@dataclass(frozen=True)
class Level:
    """One level of a factor, or of two."""

    name: str
    trials: int
    change: float
    """Difference from the mean over the levels: 0.05 is 5 % above; a plain difference if not `relative`."""
    error: float
    """Standard error of the change on the scale of the test; nan: unknown."""


@dataclass(frozen=True)
class Effect:
    """The effect of a factor (`scheduler`), or of two together beyond the sum of their own (`scheduler x depth`)."""

    factors: tuple[str, ...]
    levels: list[Level]
    """Levels of one factor; of two: the deviations from the sum of both."""
    share: float
    """Share of the variance within blocks that it explains."""
    freedom: int
    p: float
    """nan: not tested."""
    p_adjusted: float
    significant: bool

    @property
    def name(self) -> str:
        """The name in text."""
        return " x ".join(self.factors)


@dataclass(frozen=True)
class Effects:
    """The effects of all factors on one metric."""

    metric: str
    relative: bool
    effects: list[Effect]
    freedom: float
    """Degrees of freedom of the errors of the levels."""
    noise: float
    """Standard deviation of a trial that no factor explains, all cells together."""
    unequal: bool
    """True if cells are significantly unequal in noise (Brown and Forsythe)."""
    not_tested: list[str]
    """Effects that the plan or the remaining trials cannot test, each with its reason."""

    @property
    def tested(self) -> bool:
        """True if the trials allow a test."""
        return not any(math.isnan(effect.p) for effect in self.effects)


def effects(
    name: str,
    trials: Sequence[Trial],
    confidence: float = 0.95,
    *,
    modelled: bool = False,
    across_time: bool = False,
) -> Effects | None:
    """Main effects, and interactions of two factors; None: no factor has two levels, or no trials are left to estimate
    the noise.

    `modelled`, `across_time`: as in `Strata`.
    """
    having = [trial for trial in trials if math.isfinite(trial.values.get(name, math.nan))]
    factors = _factors(having)
    if not factors:
        return None
    values = np.asarray([trial.values[name] for trial in having], dtype=np.float64)
    relative = bool(values.min() > 0)
    y = np.log(values) if relative else values
    cells = numbered([_level(trial, factors) for trial in having])
    blocks = _blocks(having, cells, anyhow=modelled or across_time)
    numbers = blocks if blocks is not None else np.zeros(len(y), dtype=np.intp)
    within = _within(numbers)
    terms: dict[tuple[str, ...], Numbers] = {(factor,): _columns(having, (factor,)) for factor in factors}
    terms |= {pair: _columns(having, pair) for pair in combinations(factors, 2)}
    centred, eliminated = within(y), {key: within(columns) for key, columns in terms.items()}
    tested = _BlockTest(y, cells, numbers, terms)
    enough = blocks is not None and (tested.blocks >= FEWEST_BLOCKS or (modelled and tested.blocks >= 2))
    not_tested, kept = list[str](), dict(eliminated)
    room = len(y) - int(numbers.max()) - 1
    # Interactions need trials left over to estimate the noise.
    if room - _residual(centred, list(kept.values()))[1] < 2:
        kept = {key: columns for key, columns in eliminated.items() if len(key) == 1}
        not_tested += [f"{' x '.join(pair)}: too few trials" for pair in terms if len(pair) == 2]
    left, rank = _residual(centred, list(kept.values()))
    freedom = room - rank
    if freedom < 1:
        return None
    if not enough and not modelled:
        not_tested += [_why_not(blocks)]
    found: list[tuple[tuple[str, ...], int, float, float]] = []
    for key in kept:
        others = [other for other in kept if other != key and not set(key) < set(other)]
        without, with_it = (_residual(centred, [kept[other] for other in some]) for some in (others, [*others, key]))
        gained = with_it[1] - without[1]
        if gained < 1:
            not_tested.append(f"{' x '.join(key)}: its levels do not vary apart from other factors")
            continue
        squares = max(0.0, without[0] - with_it[0])
        p = math.nan
        if enough:
            p = tested.p(key, others) if cells.max() > 2 or modelled else _of_pairs(name, having, cells, relative)
        elif modelled:
            p = _probability(squares / gained, left / freedom, gained, freedom)
        found.append((key, gained, squares, p))
    adjusted = _holm([p for *_, p in found])
    means = _least_squares_means(centred, having, factors, kept)
    errors = tested.errors([(factor,) for factor in factors]) if enough else {}
    total, scatter = float(centred @ centred), math.sqrt(left / freedom)
    made = [
        Effect(
            factors=key,
            levels=[
                Level(level, count, math.expm1(change) if relative else change, error)
                for (level, count, change), error in zip(
                    means[key], errors.get(key) or _alike(scatter if modelled else math.nan, means[key]), strict=True
                )
            ],
            share=squares / total if total > 0 else 0.0,
            freedom=gained,
            p=p,
            p_adjusted=holm,
            significant=holm < 1 - confidence,
        )
        for (key, gained, squares, p), holm in zip(found, adjusted, strict=True)
    ]
    made.sort(key=lambda effect: (len(effect.factors), -effect.share))
    return Effects(
        metric=name,
        relative=relative,
        effects=made,
        freedom=float(max(tested.blocks - 1, 1)),
        noise=math.expm1(scatter) if relative else scatter,
        unequal=_unequal(centred, cells),
        not_tested=not_tested,
    )


def _alike(noise: float, levels: Sequence[tuple[str, int, float]]) -> list[float]:
    """Standard errors of levels with equally noisy trials."""
    return [noise * math.sqrt((1 - 1 / len(levels)) / trials) for _, trials, _ in levels]


def level_interval(found: Effects, level: Level, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of one level of a factor, of effects that were tested."""
    from scipy.special import stdtrit

    reach = float(stdtrit(found.freedom, 0.5 + confidence / 2)) * level.error
    if not found.relative:
        return level.change - reach, level.change + reach
    middle = math.log1p(level.change)
    return math.expm1(middle - reach), math.expm1(min(middle + reach, 700.0))


def _blocks(trials: Sequence[Trial], cells: Indices, *, anyhow: bool) -> Indices | None:
    """The block of each trial: the campaign's, or the trial's number within its cell if cells took turns; None:
    neither.
    """
    found = block_numbers(trials)
    if found is not None:
        return found
    if not anyhow and not well_mixed(trials, cells):
        return None
    numbers, seen = np.zeros(len(trials), dtype=np.intp), dict[int, int]()
    for at in sorted(range(len(trials)), key=lambda at: trials[at].order):
        numbers[at] = seen.get(int(cells[at]), 0)
        seen[int(cells[at])] = int(numbers[at]) + 1
    return numbers


def _why_not(blocks: Indices | None) -> str:
    if blocks is None:
        return "any factor: its levels ran one after the other, so that time and factor cannot be separated"
    return f"any factor: it takes {FEWEST_BLOCKS} blocks in which every cell has a trial"


class _BlockTest:
    """Effects block by block, of the blocks in which every cell has a trial."""

    def __init__(self, y: Numbers, cells: Indices, blocks: Indices, terms: Mapping[tuple[str, ...], Numbers]) -> None:
        shape = (int(blocks.max()) + 1, int(cells.max()) + 1)
        sums, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(sums, (blocks, cells), y)
        np.add.at(counts, (blocks, cells), 1.0)
        often = (counts > 0).sum(axis=0) * 2 > shape[0]  # a cell given up in most blocks is left out
        whole = (counts[:, often] > 0).all(axis=1)
        self._values = sums[whole][:, often] / counts[whole][:, often]
        first = np.asarray([int(np.flatnonzero(cells == cell)[0]) for cell in np.flatnonzero(often)], dtype=np.intp)
        self._columns = {key: columns[first] for key, columns in terms.items()}
        self.blocks = len(self._values)
        """Number of blocks."""

    def p(self, key: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> float:
        """p of the effect if there is none."""
        from scipy.special import fdtrc

        beside = np.hstack([np.ones((self._values.shape[1], 1)), *(self._columns[other] for other in others)])
        own = self._columns[key] - beside @ np.linalg.lstsq(beside, self._columns[key], rcond=1e-9)[0]
        basis, sizes, _ = np.linalg.svd(own, full_matrices=False)
        basis = basis[:, sizes > 1e-7]
        parts = self._values @ basis  # a block's effect: one number a degree of freedom
        count, freedom = parts.shape
        if freedom == 0:
            return 1.0
        mean = parts.mean(axis=0)
        spread = np.atleast_2d(np.cov(parts, rowvar=False))
        effect, error = count * float(mean @ mean), float(np.trace(spread))
        if error <= 1e-24:
            return 0.0 if effect > 1e-24 else 1.0
        sphericity = min(1.0, max(1 / freedom, error**2 / (freedom * float((spread**2).sum()))))
        return float(fdtrc(freedom * sphericity, freedom * (count - 1) * sphericity, effect / error))

    def errors(self, mains: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], list[float]]:
        """Standard errors of the levels of each factor."""
        design = np.hstack([self._columns[key] for key in mains])
        solved = np.linalg.lstsq(design, self._values.T, rcond=1e-9)[0]
        found, at = dict[tuple[str, ...], list[float]](), 0
        for key in mains:
            own = solved[at : at + self._columns[key].shape[1]]
            at += len(own)
            found[key] = ((own - own.mean(axis=0)).std(axis=1, ddof=1) / math.sqrt(self.blocks)).tolist()
        return found


def _of_pairs(name: str, trials: Sequence[Trial], cells: Indices, relative: bool) -> float:
    """The smallest p of the pairs of two or three cells, after Bonferroni."""
    ps = []
    for one, other in combinations(range(int(cells.max()) + 1), 2):
        both = [at for at in range(len(trials)) if cells[at] in (one, other)]
        known = Strata([Side("", [trials[at] for at in both if cells[at] == cell]) for cell in (one, other)])
        values = np.asarray([trials[at].values[name] for at in both], dtype=np.float64)
        groups = np.asarray([int(cells[at] == other) for at in both], dtype=np.intp)
        scaled = np.log(values) if relative else values
        found = between(scaled, groups, [trials[at] for at in both], known, name, relative).contrast
        ps.append(found.p if found is not None and found.freedom > 0 else 1.0)
    return min(1.0, len(ps) * min(ps))


def _unequal(left: Numbers, cells: Indices) -> bool:
    """True if the cells' values scatter unequally: analysis of variance of the distances from the cell's median
    (Brown and Forsythe, J. American Statistical Association 69 (1974) 364-367).
    """
    parts = [part for cell in range(int(cells.max()) + 1) if len(part := left[cells == cell]) > 2]
    if len(parts) < 2:
        return False
    far = [np.abs(part - np.median(part)) for part in parts]
    every = np.concatenate(far)
    between_cells = sum(len(part) * (part.mean() - every.mean()) ** 2 for part in far) / (len(far) - 1)
    inside = sum(float(((part - part.mean()) ** 2).sum()) for part in far) / (len(every) - len(far))
    return inside > 0 and _probability(between_cells, inside, len(far) - 1, len(every) - len(far)) < UNEQUAL


def _factors(trials: Sequence[Trial]) -> list[str]:
    names = dict.fromkeys(factor for trial in trials for factor in trial.cell)
    return [name for name in names if len({trial.cell.get(name) for trial in trials}) > 1]


def _level(trial: Trial, factors: Sequence[str]) -> str:
    return ", ".join(trial.cell.get(factor, "-") for factor in factors)


def _columns(trials: Sequence[Trial], factors: Sequence[str]) -> Numbers:
    """One column of ones for each level."""
    numbers = numbered([_level(trial, factors) for trial in trials])
    return np.eye(int(numbers.max()) + 1)[numbers]


def _within(numbers: Indices) -> Callable[[Numbers], Numbers]:
    """Return a function that subtracts the mean of each block."""
    totals = np.bincount(numbers)

    def eliminate(values: Numbers) -> Numbers:
        sums = np.zeros((len(totals), *values.shape[1:]))
        np.add.at(sums, numbers, values)
        means = sums / totals.reshape(-1, *[1] * (values.ndim - 1))
        left: Numbers = values - means[numbers]
        return left

    return eliminate


def _residual(y: Numbers, columns: Sequence[Numbers]) -> tuple[float, int]:
    """Remaining sum of squares, and the rank of the model."""
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
    if any(math.isnan(p) for p in ps):
        return list(ps)
    adjusted, running = [1.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        running = min(1.0, max(running, (len(ps) - rank) * ps[at]))
        adjusted[at] = running
    return adjusted


def _least_squares_means(
    y: Numbers, trials: Sequence[Trial], factors: Sequence[str], kept: dict[tuple[str, ...], Numbers]
) -> dict[tuple[str, ...], list[tuple[str, int, float]]]:
    """Level -> (trials, deviation from the mean over levels), each factor adjusted for all others in the model."""
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
