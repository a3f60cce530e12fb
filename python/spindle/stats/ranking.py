"""Which of many alternatives may be the best.

Multiple comparisons with the best (Hsu, Annals of Statistics 12 (1984) 1136-1144): intervals for how far each stands
behind the best of the others, which hold together with the confidence asked for. The alternatives that the trials
cannot tell from the best are those whose interval reaches 0; the true best is among them with that confidence, however
the one with the highest mean came to be on top. Bonferroni's bound stands in for Dunnett's quantile, as alternatives
need not be equally noisy; variances of few trials are moderated (see `model.moderated`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spindle.stats.metric import Better, metric
from spindle.stats.model import fit, in_turns, moderated, numbered
from spindle.stats.trial import Side, Trial

TIE = 1e-9
"""Means closer than this share of the largest value are the same."""


@dataclass(frozen=True)
class Place:
    """One alternative."""

    label: str
    trials: int
    mean: float
    """Geometric, where every value is above 0; of trials in blocks, that of balanced blocks."""
    behind: float
    """Of the one with the best mean: 0.05 is 5 % worse; a plain difference where the ranking is not `relative`."""
    at_least: float
    """It is at least so far behind the best ..."""
    at_most: float
    """... and at most so far; both 0: it is the best."""
    maybe_best: bool


@dataclass(frozen=True)
class Ranking:
    """Alternatives, best first."""

    metric: str
    confidence: float
    relative: bool
    places: list[Place]
    left_out: list[str]
    """Alternatives without this metric, or in no stratum with the others."""

    @property
    def best(self) -> list[str]:
        """Those that may be the best."""
        return [place.label for place in self.places if place.maybe_best]

    @property
    def words(self) -> str:
        """Whether there is a winner."""
        name = metric(self.metric).words
        if len(self.places) == 1:
            return f"{name}: only {self.places[0].label} has figures"
        if len(self.best) == 1:
            lead = min(place.at_least for place in self.places[1:])
            by = f", {_share(lead)} or more ahead of every other" if self.relative and lead > 0 else ""
            return f"{name}: {self.best[0]} is the best{by} ({100 * self.confidence:g} % confidence)"
        if len(self.best) == len(self.places):
            return f"{name}: none can be told from the best ({100 * self.confidence:g} % confidence)"
        return (
            f"{name}: the best is one of {', '.join(self.best)}; the others are worse "
            f"({100 * self.confidence:g} % confidence)"
        )


def rank(
    name: str, sides: Sequence[Side], stratum: Callable[[Trial], Hashable], confidence: float = 0.95
) -> Ranking | None:
    """Rank sides in one metric; None: fewer than two have it, or nothing says how much trials scatter."""
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
    sign = -1.0 if metric(name).better is Better.LOWER else 1.0
    scaled = sign * (np.log(values) if relative else values)
    groups = np.asarray([number for number, _ in pairs], dtype=np.intp)
    blocked = all(trial.block is not None for trial in trials)
    layers = numbered([stratum(trial) for trial in trials])
    in_time = not blocked and not in_turns(groups)
    found = fit(scaled, groups, layers, in_time=in_time)
    if found.most == 0 or any(found.contrast(0, other) is None for other in range(1, len(present))):
        found = fit(scaled, groups, np.zeros(len(trials), dtype=np.intp), in_time=in_time)
    if found.most == 0:
        return None
    found = moderated(found)
    effects = found.effects - found.effects.mean()
    middle = float(np.mean([scaled[groups == number].mean() for number in range(len(present))]))
    upper, lower = _behind(found.contrast, len(present), confidence)
    top = int(np.argmax(effects))
    # Where nothing scatters (a model, a count of zero) equals are equal, but for rounding.
    tied = effects >= effects[top] - TIE * max(1.0, float(np.abs(scaled).max()))
    order = sorted(range(len(present)), key=lambda number: -effects[number])

    def size(gap: float) -> float:
        """A gap to the best as a share: latencies grow, rates shrink."""
        return (math.expm1(min(gap, 700)) if sign < 0 else -math.expm1(-gap)) if relative else gap

    places = [
        Place(
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


def _behind(contrast: Callable[[int, int], object], count: int, confidence: float) -> tuple[list[float], list[float]]:
    """Hsu's constrained intervals for each alternative less the best of the others: (upper ends, lower ends)."""
    from scipy.special import stdtrit

    from spindle.stats.model import Contrast

    gap = np.full((count, count), np.inf)
    reach = np.zeros((count, count))
    share = 1 - (1 - confidence) / (count - 1)
    for one in range(count):
        for other in range(one):
            found = contrast(one, other)
            assert isinstance(found, Contrast)
            gap[one, other], gap[other, one] = found.difference, -found.difference
            reach[one, other] = reach[other, one] = float(stdtrit(found.freedom, share)) * math.sqrt(found.variance)
    upper = [min(gap[i, j] + reach[i, j] for j in range(count) if j != i) for i in range(count)]
    maybe = [i for i in range(count) if upper[i] > 0 or min(gap[i, j] for j in range(count) if j != i) >= 0]
    lower = [0.0 if maybe == [i] else min(gap[i, j] - reach[i, j] for j in maybe if j != i) for i in range(count)]
    return upper, lower


def _share(value: float) -> str:
    from spindle.stats.words import percent

    return percent(value)
