"""The difference of two alternatives from their trials alone, by the test that the trials' order in time allows.

| trials | test |
|---|---|
| in blocks, twelve and more, order balanced | the paired t test, wider where neighbours resemble each other |
| in blocks otherwise | what the paired test and Welch's without blocks both say, p times the order's `doubt` |
| in fewer than three blocks | none |
| in turns | Welch's, a value for each turn |
| one after the other, the first side in five sessions and more | in a gate: the new session against them |
| one after the other, or at unknown times | none, unless the machine is assumed not to have changed |

Welch's test without blocks counts what changed from block to block as noise, so a drift that few orders cannot rule out
widens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spindle.stats.arrangement import NOT_MET, arrangement, resemblance
from spindle.stats.model import Contrast, Indices, Numbers, fit, in_turns, numbered, paired, welch
from spindle.stats.resolution import resolution
from spindle.stats.sessions import against_earlier
from spindle.stats.strata import Strata
from spindle.stats.trial import Trial

Basis = Literal["blocks", "trials", "sessions", "one-run", "within-run", "apart", "none"]
"""Source of the spread: trials within their blocks; trials; earlier sessions; a single trial compared with several;
the seconds of one run on each side. `apart`: the order of the trials allows no test. `none`: nothing to test.
"""


@dataclass(frozen=True)
class Pair:
    """The comparison that two alternatives' trials allow."""

    contrast: Contrast | None
    """The second less the first; None: no comparison is possible."""
    basis: Basis
    obstacle: str = ""


def between(
    values: Numbers, groups: Indices, trials: Sequence[Trial], strata: Strata, metric: str, relative: bool
) -> Pair:
    """Compare two alternatives.

    `values`: on the scale of the test; `groups`: 0 and 1, the alternative of each trial; `relative`: values are
    logarithms.
    """
    pair = _tested(values, groups, trials, strata)
    if pair.contrast is None or pair.contrast.freedom == 0:
        return pair
    unresolved = _unresolved(values, groups, trials, strata, metric, relative)
    return replace(pair, contrast=replace(pair.contrast, resolution=unresolved)) if unresolved else pair


def _tested(values: Numbers, groups: Indices, trials: Sequence[Trial], strata: Strata) -> Pair:
    levels = numbered([strata.level(trial) for trial in trials])
    arranged = arrangement(trials, groups, levels, strata.smallest_block)
    if arranged.kind == "blocks":
        contrast = _in_blocks(values, groups, numbered([strata.block(trial) for trial in trials]))
        if contrast is not None and contrast.freedom > 0:
            if strata.across_time or strata.modelled:
                return Pair(contrast, "blocks")
            if arranged.balanced:
                widened = resemblance(_by_block(values, groups, numbered([trial.block for trial in trials])))
                return Pair(replace(contrast, variance=widened * contrast.variance), "blocks")
            if not arranged.obstacle:
                also = _stacked(values, groups, levels, in_time=False)
                return Pair(replace(contrast, also=also, doubt=arranged.doubt), "blocks")
    if arranged.kind == "turns" and arranged.turns is not None and not strata.modelled:
        return Pair(_of_turns(values, groups, levels, arranged.turns), "trials")
    if strata.history and not strata.timeless and arranged.kind == "apart" and not levels.any():
        contrast = against_earlier(values, groups, trials)
        if contrast is not None:
            return Pair(contrast, "sessions")
    if not strata.timeless and (arranged.obstacle or arranged.kind == "blocks"):
        return Pair(None, "apart", arranged.obstacle or NOT_MET)
    order = sorted(range(len(trials)), key=lambda at: trials[at].order)
    in_time = not strata.modelled and not in_turns(groups[order])
    contrast = _stacked(values[order], groups[order], levels[order], in_time=in_time)
    return Pair(contrast, "one-run" if 1 in np.bincount(groups) else "trials")


def _in_blocks(values: Numbers, groups: Indices, blocks: Indices) -> Contrast | None:
    half = len(values) // 2
    a, b = np.flatnonzero(groups == 0), np.flatnonzero(groups == 1)
    if (
        len(a) == len(b) == int(blocks.max()) + 1 == half > 1
        and len(np.unique(blocks[a])) == len(np.unique(blocks[b])) == half
    ):
        return paired(values[b][np.argsort(blocks[b])] - values[a][np.argsort(blocks[a])])
    return fit(values, groups, blocks, in_time=False).contrast(1, 0)


def _by_block(values: Numbers, groups: Indices, blocks: Indices) -> Numbers:
    """The difference of the means in each block that has both."""
    counts = [np.bincount(blocks[groups == group], minlength=int(blocks.max()) + 1) for group in (0, 1)]
    sums = [np.bincount(blocks[groups == group], values[groups == group], minlength=len(counts[0])) for group in (0, 1)]
    both = (counts[0] > 0) & (counts[1] > 0)
    found: Numbers = sums[1][both] / counts[1][both] - sums[0][both] / counts[0][both]
    return found


def _stacked(values: Numbers, groups: Indices, levels: Indices, *, in_time: bool) -> Contrast:
    """Compare without blocks; without levels too if these do not meet."""
    if not in_time and not levels.any() and np.bincount(groups).min() > 1:
        return welch(values[groups == 0], values[groups == 1])
    contrast = fit(values, groups, levels, in_time=in_time).contrast(1, 0)
    if contrast is None or contrast.freedom == 0:
        contrast = fit(values, groups, np.zeros(len(values), dtype=np.intp), in_time=in_time).contrast(1, 0)
    assert contrast is not None, "one stratum connects its groups"
    return contrast


def _of_turns(values: Numbers, groups: Indices, levels: Indices, turns: Indices) -> Contrast:
    """Welch's test of the means of the turns, after subtracting each stratum's level."""
    by_trial = _stacked(values, groups, levels, in_time=False)
    adjusted = values - fit(values, groups, levels, in_time=False).levels[levels] if levels.any() else values
    count = np.bincount(turns)
    means, side = np.bincount(turns, adjusted) / count, np.bincount(turns, groups) / count
    return replace(welch(means[side == 0], means[side == 1]), spread=by_trial.spread)


def _unresolved(
    values: Numbers, groups: Indices, trials: Sequence[Trial], strata: Strata, metric: str, relative: bool
) -> float:
    """Half a step of each alternative's instrument, on the scale of the test; 0 for models, which do not round."""
    if len(np.unique(values)) == len(values) or strata.modelled:
        return 0.0
    total = 0.0
    for group in (0, 1):
        own = [trial for trial, at in zip(trials, groups, strict=True) if at == group]
        numbers = np.asarray([trial.values[metric] for trial in own], dtype=np.float64)
        half = resolution(own[0], metric, numbers)
        total += -math.log1p(-min(half / float(numbers.mean()), 0.99)) if relative else half
    return total
