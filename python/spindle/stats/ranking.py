"""The alternatives that may be the best of many.

Multiple comparisons with the best (Hsu, Annals of Statistics 12 (1984) 1136-1144): simultaneous intervals, with the
requested confidence, of the distance between each alternative and the best of the others. An alternative may be the
best if its interval reaches 0; the true best is among them with that confidence, no matter why one has the highest
mean. Each pair is tested with the scatter of its own trials (`pair`), so that one noisy alternative neither hides a
difference of two others nor gains from their precision; Bonferroni's bound replaces Dunnett's quantile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spindle.stats.model import Contrast, Fit, Indices, Numbers, fit, numbered
from spindle.stats.names import Direction, metric
from spindle.stats.pair import between
from spindle.stats.strata import Strata
from spindle.stats.trial import Side

TIE = 1e-9
"""Means closer than this share of the largest value are equal."""


@dataclass(frozen=True)
class Rank:
    """One alternative."""

    label: str
    trials: int
    mean: float
    """Geometric mean if every value is above 0; of trials in blocks, that of balanced blocks."""
    behind: float
    """Distance from the best mean: 0.05 is 5 % worse; a plain difference if the ranking is not `relative`."""
    at_least: float
    """Lower bound of the distance from the best."""
    at_most: float
    """Upper bound of the distance from the best; both 0: it is the best."""
    maybe_best: bool


@dataclass(frozen=True)
class Ranking:
    """Alternatives, best first."""

    metric: str
    confidence: float
    relative: bool
    places: list[Rank]
    left_out: list[str]
    """Alternatives without this metric, or in no common stratum with the others."""

    @property
    def best(self) -> list[str]:
        """The alternatives that may be the best."""
        return [place.label for place in self.places if place.maybe_best]

    @property
    def words(self) -> str:
        """The winner, if there is one."""
        name = metric(self.metric).words
        if len(self.places) == 1:
            return f"{name}: only {self.places[0].label} has figures"
        if len(self.best) == 1:
            lead = min(place.at_least for place in self.places[1:])
            by = f", {_lead(lead)}" if self.relative and lead > 0 else ""
            return f"{name}: {self.best[0]} is the best{by} ({100 * self.confidence:g} % confidence)"
        if len(self.best) == len(self.places):
            return f"{name}: none is significantly worse than the best ({100 * self.confidence:g} % confidence)"
        return (
            f"{name}: the best is one of {', '.join(self.best)}; the others are worse "
            f"({100 * self.confidence:g} % confidence)"
        )


def rank(name: str, sides: Sequence[Side], strata: Strata, confidence: float = 0.95) -> Ranking | None:
    """Rank sides in one metric; None: fewer than two have it, or no two can be compared."""
    having = [Side(s.label, [t for t in s.trials if math.isfinite(t.values.get(name, math.nan))]) for s in sides]
    present = [side for side in having if side.trials]
    if len(present) < 2:
        return None
    pairs = sorted(
        ((number, trial) for number, side in enumerate(present) for trial in side.trials),
        key=lambda pair: pair[1].order,
    )
    trials = [trial for _, trial in pairs]
    values = np.asarray([trial.values[name] for trial in trials], dtype=np.float64)
    relative = bool(values.min() > 0)
    sign = -1.0 if metric(name).better is Direction.LOWER else 1.0
    scaled = sign * (np.log(values) if relative else values)
    groups = np.asarray([number for number, _ in pairs], dtype=np.intp)
    contrasts: dict[tuple[int, int], Contrast] = {}
    for one in range(len(present)):
        for other in range(one):
            both = np.flatnonzero((groups == one) | (groups == other))
            pair = (groups[both] == one).astype(np.intp)
            found = between(scaled[both], pair, [trials[at] for at in both], strata, name, relative).contrast
            if found is not None and found.freedom > 0:
                contrasts[one, other] = found
    if not contrasts:
        return None
    effects = _effects(scaled, groups, numbered([strata.block(t) for t in trials]), len(present))
    # Without scatter (a model, a count of zero), equal values differ only by rounding.
    grain = TIE * max(1.0, float(np.abs(scaled).max()))
    effects = np.round(effects / grain) * grain
    middle = float(np.mean([scaled[groups == number].mean() for number in range(len(present))]))
    upper, lower = _behind(contrasts, effects, confidence)
    top = int(np.argmax(effects))
    tied = effects >= effects[top]
    order = sorted(range(len(present)), key=lambda number: -effects[number])

    def size(gap: float) -> float:
        """A distance from the best as a share: latencies grow, rates shrink."""
        return (math.expm1(min(gap, 700)) if sign < 0 else -math.expm1(-gap)) if relative else gap

    places = [
        Rank(
            label=present[number].label,
            trials=len(present[number].trials),
            mean=math.exp(sign * (middle + effects[number])) if relative else sign * (middle + effects[number]),
            behind=size(float(effects[top] - effects[number])),
            at_least=size(max(0.0, -upper[number])),
            at_most=size(max(0.0, -lower[number])),
            maybe_best=bool(upper[number] > 0 or tied[number]),
        )
        for number in order
    ]
    assert all(a.behind <= b.behind for a, b in pairwise(places))
    return Ranking(name, confidence, relative, places, [side.label for side in having if not side.trials])


def _effects(scaled: Numbers, groups: Indices, layers: Indices, count: int) -> Numbers:
    """Effect of each alternative; blocks are eliminated if they connect all of them."""

    def connected(found: Fit) -> bool:
        return all(found.contrast(0, other) is not None for other in range(1, count))

    found = fit(scaled, groups, layers, in_time=False)
    if not connected(found):
        found = fit(scaled, groups, np.zeros(len(scaled), dtype=np.intp), in_time=False)
    effects: Numbers = found.effects - found.effects.mean()
    return effects


def _behind(
    contrasts: Mapping[tuple[int, int], Contrast], effects: Numbers, confidence: float
) -> tuple[list[float], list[float]]:
    """Hsu's constrained intervals for each alternative less the best of the others: (upper ends, lower ends)."""
    count = len(effects)
    gap = effects[:, None] - effects[None, :]
    np.fill_diagonal(gap, np.inf)
    reach = np.full((count, count), np.inf)
    share = 1 - (1 - confidence) / (count - 1)
    for (one, other), found in contrasts.items():
        off = abs(found.difference - gap[one, other])
        reach[one, other] = reach[other, one] = found.reach(share) + off
    others = [[j for j in range(count) if j != i] for i in range(count)]
    upper = [min(gap[i, j] + reach[i, j] for j in others[i]) for i in range(count)]
    maybe = [i for i in range(count) if upper[i] > 0 or min(gap[i, j] for j in others[i]) >= 0]
    lower = [0.0 if maybe == [i] else min(gap[i, j] - reach[i, j] for j in maybe if j != i) for i in range(count)]
    return upper, lower


def _lead(share: float) -> str:
    from spindle.base.numbers import TIMES, as_change, multiple

    if share >= TIMES - 1:
        return f"every other at least {multiple(1 + share)} times as high"
    return f"{as_change(share)} or more ahead of every other"
