"""Comparison of whole latency distributions, percentile by percentile.

Each run gives one curve of logarithms of latency over the percentiles; alternatives differ by the difference of their
mean curves. Requests of one run follow each other and share queues, so they are not an independent sample: runs are
resampled. The band contains the whole true curve with the given confidence: the multiplier (wild) bootstrap of the
studentized difference, its largest deviation over all percentiles (Chernozhukov, Chetverikov and Kato, Annals of
Statistics 41 (2013) 2786-2819), with Webb's six-point weights, made for few runs (Canadian J. of Economics 56 (2023)
839-858).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spindle import _core
from spindle.result.figures_properties import OPERATIONS
from spindle.result.record import RunRecord
from spindle.stats.arrangement import arrangement
from spindle.stats.autocorrelation import Numbers
from spindle.stats.model import Indices
from spindle.stats.strata import Strata, strata
from spindle.stats.trial import Side, Trial

GRID = (
    *(float(p) for p in (1, 2, 5)),
    *(float(p) for p in range(10, 95, 5)),
    *(95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999),
)
"""The percentiles of the curve, without those that fewer than ten requests of a run exceed."""
DRAWS = 2000
FEWEST = 3
"""Fewest runs on a side for a band."""
FEWEST_BLOCKS = 4
"""Fewest blocks for a band: with three, one band of eight misses the true curve."""
_WEBB = np.sqrt([0.5, 1.0, 1.5])


@dataclass(frozen=True)
class Point:
    """One percentile."""

    percentile: float
    a_ns: float
    """Geometric mean over the runs."""
    b_ns: float
    change: float
    low: float | None
    """None: too few runs for a band."""
    high: float | None


@dataclass(frozen=True)
class Curves:
    """One operation of two alternatives."""

    operation: str
    a: str
    b: str
    runs_a: int
    runs_b: int
    confidence: float
    points: list[Point]
    paired: bool
    """True if runs of the same block were compared as pairs."""
    obstacle: str = ""
    """Reason why the order of the runs allows no band; empty: there is one."""

    @property
    def words(self) -> str:
        """The percentiles at which the distributions differ."""
        from spindle.base.numbers import as_change

        head = f"Latency of {self.operation}s: "
        if self.obstacle:
            return f"{head}nothing can be claimed: {self.obstacle}"
        if any(point.low is None for point in self.points):
            return f"{head}too few runs for a band, which needs {FEWEST} on each side or {FEWEST_BLOCKS} blocks"
        parts = []
        for word, chosen in (
            ("lower", [p for p in self.points if p.high is not None and p.high < 0]),
            ("higher", [p for p in self.points if p.low is not None and p.low > 0]),
        ):
            if chosen:
                sizes = sorted(abs(point.change) for point in chosen)
                size = as_change(sizes[0])
                if as_change(sizes[-1]) != size:
                    size += f" to {as_change(sizes[-1])}"
                parts.append(f"{word} by {size} at {_ranges([p.percentile for p in chosen])}")
        if not parts:
            return f"{head}{self.a} and {self.b} do not differ significantly at any percentile"
        return f"{head}{self.b} is {' and '.join(parts)}"


def curves(
    sides: Sequence[Side], confidence: float = 0.95, draws: int = DRAWS, *, across_time: bool = False
) -> list[Curves]:
    """Compare every side with the first, in each operation that both have."""
    found = []
    known = strata(sides, across_time=across_time)
    first = sides[0]
    for other in sides[1:]:
        for operation in OPERATIONS:
            a, b = _of(first, operation), _of(other, operation)
            if a and b:
                found.append(_compared(operation, first.label, other.label, a, b, known, confidence, draws))
    return found


@dataclass(frozen=True)
class _Run:
    """Logarithm of latency at each percentile of the grid; nan if too few requests exceed it."""

    trial: Trial
    logs: Numbers


def _of(side: Side, operation: str) -> list[_Run]:
    return [run for trial in side.trials if (run := _run(trial, operation)) is not None]


def _run(trial: Trial, operation: str) -> _Run | None:
    record = trial.load() if trial.load is not None else None
    if not isinstance(record, RunRecord):
        return None
    ops = [op for stream in record.figures.streams if (op := getattr(stream, operation)) is not None and op.requests]
    if not ops:
        return None
    requests = sum(op.requests for op in ops)
    try:
        latencies = _core.histogram_percentiles([op.latency.histogram for op in ops], GRID)
    except ValueError:  # damaged, or another tool's without one
        return None
    logs = np.log(np.maximum(np.asarray(latencies, dtype=np.float64), 1.0))
    beyond = requests * (1 - np.asarray(GRID) / 100)
    logs[beyond < 10] = np.nan
    return _Run(trial, logs)


def _compared(
    operation: str,
    label_a: str,
    label_b: str,
    a: Sequence[_Run],
    b: Sequence[_Run],
    known: Strata,
    confidence: float,
    draws: int,
) -> Curves:
    whole = ~np.isnan(np.stack([run.logs for run in [*a, *b]])).any(axis=0)
    all_a, all_b = (np.stack([run.logs[whole] for run in side]) for side in (a, b))
    samples, paired, obstacle, doubt = _samples(a, b, all_a, all_b, known)
    mean_a, mean_b = all_a.mean(axis=0), all_b.mean(axis=0)
    gaps = mean_b - mean_a
    halves = [
        band(parts, 1 - (1 - confidence) / doubt, draws) + abs(_gap(parts) - gaps)
        for parts in samples
        if len(parts[0]) and whole.any()
    ]
    half = np.max(halves, axis=0) if halves else None
    points = [
        Point(
            percentile=float(percentile),
            a_ns=math.exp(mean_a[at]),
            b_ns=math.exp(mean_b[at]),
            change=math.expm1(gaps[at]),
            low=None if half is None else math.expm1(gaps[at] - half[at]),
            high=None if half is None else math.expm1(min(gaps[at] + half[at], 700.0)),
        )
        for at, percentile in enumerate(np.asarray(GRID)[whole])
    ]
    return Curves(operation, label_a, label_b, len(a), len(b), confidence, points, paired, obstacle)


def _gap(parts: Sequence[Numbers]) -> Numbers:
    gap: Numbers = parts[0].mean(axis=0) if len(parts) == 1 else parts[1].mean(axis=0) - parts[0].mean(axis=0)
    return gap


def _samples(
    a: Sequence[_Run], b: Sequence[_Run], logs_a: Numbers, logs_b: Numbers, known: Strata
) -> tuple[list[list[Numbers]], bool, str, float]:
    """The samples that the order of the runs allows to compare, as for single figures (`pair`).

    Returns the samples (each needs a band, and the widest counts), true if they are pairs, the obstacle, and the factor
    on p.
    """
    trials = [run.trial for run in [*a, *b]]
    groups = np.repeat(np.asarray([0, 1], dtype=np.intp), [len(a), len(b)])
    arranged = arrangement(trials, groups, np.zeros(len(trials), dtype=np.intp), known.smallest_block)
    runs = [[logs_a, logs_b]] if min(len(a), len(b)) >= FEWEST else []
    if known.timeless and arranged.obstacle:
        return runs, False, "", 1.0
    if arranged.obstacle:
        return [], False, arranged.obstacle, 1.0
    if arranged.kind == "blocks":
        pairs = _pairs(a, b, logs_a, logs_b)
        if pairs is None:
            return runs, False, "", arranged.doubt
        if arranged.balanced or known.timeless:
            return [[pairs]], True, "", 1.0
        return [[pairs], *runs], True, "", arranged.doubt
    if arranged.turns is not None and not known.timeless:
        means = [_means(every, arranged.turns[groups == side]) for side, every in enumerate((logs_a, logs_b))]
        return [means] if min(len(part) for part in means) >= FEWEST else [], False, "", 1.0
    return runs, False, "", 1.0


def _means(logs: Numbers, turns: Indices) -> Numbers:
    """Mean of each turn."""
    means: Numbers = np.stack([logs[turns == turn].mean(axis=0) for turn in np.unique(turns)])
    return means


def _pairs(a: Sequence[_Run], b: Sequence[_Run], logs_a: Numbers, logs_b: Numbers) -> Numbers | None:
    """Differences within the blocks that both have, if there are enough."""
    keys = [[(run.trial.campaign, run.trial.block) for run in side] for side in (a, b)]
    blocks = [block for block in dict.fromkeys(keys[0]) if block in keys[1]]
    if len(blocks) < FEWEST_BLOCKS:
        return None
    of_a, of_b = (
        np.stack([logs[[at for at, key in enumerate(own) if key == block]].mean(axis=0) for block in blocks])
        for logs, own in ((logs_a, keys[0]), (logs_b, keys[1]))
    )
    differences: Numbers = of_b - of_a
    return differences


def band(samples: Sequence[Numbers], confidence: float, draws: int) -> Numbers:
    """Half the width of the simultaneous band around the difference of the samples' means (the sum of their parts)."""
    random = np.random.default_rng(0)  # the same figures give the same band
    centred = [sample - sample.mean(axis=0) for sample in samples]
    variance = sum((part**2).sum(axis=0) / (len(part) * (len(part) - 1)) for part in centred)
    scale = np.sqrt(np.maximum(variance, 1e-300))
    worst = np.zeros(draws)
    total: Numbers = np.zeros((draws, centred[0].shape[1]))
    spread: Numbers = np.zeros_like(total)
    for part in centred:
        n = len(part)
        weights = random.choice(np.concatenate([-_WEBB, _WEBB]), size=(draws, n))
        grown = part * math.sqrt(n / (n - 1))  # residuals are smaller than the noise they come from
        means = weights @ grown / n
        total += means
        squares = (weights**2) @ grown**2 / n
        spread += (squares - means**2) / (n - 1)
    worst = (np.abs(total) / np.sqrt(np.maximum(spread, 1e-300))).max(axis=1)
    band: Numbers = float(np.quantile(worst, confidence)) * scale
    return band


def _ranges(percentiles: Sequence[float]) -> str:
    """`p50`, `p1 to p30 and p99`."""
    places = [GRID.index(percentile) for percentile in percentiles]
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return " and ".join(f"p{GRID[r[0]]:g}" + (f" to p{GRID[r[-1]]:g}" if len(r) > 1 else "") for r in runs)
