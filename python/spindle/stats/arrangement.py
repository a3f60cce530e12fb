"""When the trials of two alternatives ran: may a change of the machine look like a difference between them?

What counts is time, not labels: a campaign may number its blocks and still run cell by cell, and two campaigns have
blocks of the same numbers that never met. Trials are taken as they followed each other:

- *blocks*: each block of one campaign was over before the next began;
- *turns*: the alternatives took turns, each at least twice. A turn, however many trials it has, counts as one value, as
  its trials share whatever the machine was doing then. Turns that follow each other resemble each other at least as
  much as two turns of one alternative, so slow changes widen the interval and do not move it;
- *apart*: neither. Time and alternative cannot be separated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from spindle.stats.model import Indices, Numbers, in_turns, numbered
from spindle.stats.trial import Trial

ENOUGH_BLOCKS = 12
"""From this number of blocks on, the pairs alone decide: their order hardly follows a drift. Fewer are not enough
(docs/explanation/statistics.md).
"""
CYCLES = 3.0
"""Smallest factor on p with fewer blocks: a cycle of a few trials can follow their order."""
NEIGHBOURS = 3.0
"""Factor of the correlation of neighbouring blocks in the variance of a mean. The textbook's is 2; few blocks
estimate their correlation badly.
"""
FEWEST_BLOCKS = 3
"""Two blocks cannot distinguish a difference from a curved drift."""
BY_CHANCE = 0.05
"""False-positive rate of chance and order together."""
FEWEST_TURNS = 2
"""Fewest turns of each alternative."""
_DAY_S = 86_400
_DAILY = 0.6
"""Share of the alternation that a daily cycle explains, from which on the hour may be the cause."""

APART = "they ran one after the other, so that time and alternative cannot be separated"
HOURS = "they ran at different hours of the day, so that hour and alternative cannot be separated"
UNKNOWN = "when they ran is not recorded, so that time and alternative cannot be separated"
NOT_MET = "no block has both of them at the same levels of everything else"
TWO_BLOCKS = f"fewer than {FEWEST_BLOCKS} blocks cannot distinguish a difference from a drift"


@dataclass(frozen=True)
class Arrangement:
    """The order in time of the trials of two alternatives."""

    kind: Literal["blocks", "turns", "apart"]
    obstacle: str = ""
    """Reason why no test is possible; empty: a test is possible."""
    balanced: bool = False
    """Blocks: true if there are enough of them, and neither alternative was first in nearly all."""
    doubt: float = 1.0
    """Blocks: factor on p, as a drift may follow their order."""
    turns: Indices | None = None
    """The turn of each trial, numbered from 0."""


def arrangement(trials: Sequence[Trial], groups: Indices, levels: Indices, size: int = 2) -> Arrangement:
    """Classify the order of trials.

    `groups`: 0 and 1, the alternative of each trial; `levels`: the other factors, which must take turns too; `size`:
    trials of the smallest block.
    """
    if (blocks := block_numbers(trials)) is not None:
        met = np.intersect1d(blocks[groups == 0], blocks[groups == 1])
        if len(met):
            return _in_blocks(trials, groups, blocks, met, size)
    if not _times_known(trials):
        return Arrangement("apart", UNKNOWN)
    order = _in_time(trials, groups)
    turns = np.empty(len(trials), dtype=np.intp)
    turns[order] = _runs(groups[order])
    counts = [len(np.unique(turns[groups == group])) for group in (0, 1)]
    parts = [order[levels[order] == level] for level in np.unique(levels)]
    again = sum(max(0, int(_runs(groups[part])[-1]) - 1) for part in parts)  # turns after the first two, at each level
    if min(counts) < FEWEST_TURNS or again < 2 * FEWEST_TURNS - 2:
        return Arrangement("apart", APART)
    if _by_the_hour(trials, groups, turns):
        return Arrangement("apart", HOURS)
    return Arrangement("turns", turns=turns)


def doubt(blocks: int, size: int = 2) -> float:
    """Factor on p with this number of blocks of `size` trials, of which one is of each alternative.

    The drift that most resembles a difference makes half of the places of each block fast, and the others slow. One
    alternative is at a fast and the other at a slow place in one block of c (c - 1) / (floor(c / 2) ceil(c / 2)): of 2
    where c = 2, of 3 where c = 3 or 4. This must happen in all blocks, or the reverse in all: 2 of that many orders
    follow the drift. The larger its share of the allowed false positives, the stricter the test: 1 + (2 / orders) /
    `BY_CHANCE`. Balance (`spindle.campaign.order`) leaves about three of four orders from the third block on; of pairs,
    in every second block. A cycle of a few trials follows more orders than a drift does, so the factor is at least
    `CYCLES`.
    """
    ways = size * (size - 1) / ((size // 2) * (size - size // 2))
    restricted = (blocks - 1) // 2 if size == 2 else max(0, blocks - 2)
    orders = ways**blocks * 0.75**restricted
    return max(1 + 2 / orders / BY_CHANCE, CYCLES)


def resemblance(differences: Numbers) -> float:
    """Factor on the variance of the mean of differences in successive blocks, if neighbours correlate. Balance often
    makes the second of two blocks the reverse of the first, and a cycle of four trials then has the same sign in
    both.
    """
    left = differences - differences.mean()
    squares = float(left @ left)
    if squares == 0:
        return 1.0
    correlation = float(left[1:] @ left[:-1]) / squares + 1 / len(left)  # by chance alone it is -1 / n
    return 1 + NEIGHBOURS * max(0.0, correlation)


def usual_widening(blocks: int) -> float:
    """Mean `resemblance` of that many uncorrelated blocks: half of the correlations that occur by chance are
    positive.
    """
    return 1 + NEIGHBOURS / math.sqrt(2 * math.pi * blocks)


def block_numbers(trials: Sequence[Trial]) -> Indices | None:
    """The block of each trial, numbered from 0; None: there are no blocks, or they overlap in time and are only
    labels.
    """
    if any(trial.block is None for trial in trials):
        return None
    numbers = numbered([(trial.campaign, trial.block) for trial in trials])
    if _times_known(trials):
        runs = _runs(numbers[_in_time(trials, numbers)])
        if runs[-1] > numbers.max():
            return None
    return numbers


def well_mixed(trials: Sequence[Trial], groups: Indices) -> bool:
    """True if trials went from group to group about as often as in random order."""
    return _times_known(trials) and in_turns(groups[_in_time(trials, groups)])


def _in_blocks(trials: Sequence[Trial], groups: Indices, blocks: Indices, met: Indices, size: int) -> Arrangement:
    if len(met) < FEWEST_BLOCKS:
        return Arrangement("blocks", TWO_BLOCKS)
    doubtful = doubt(len(met), size)
    if not _times_known(trials):
        return Arrangement("blocks", balanced=len(met) >= ENOUGH_BLOCKS, doubt=doubtful)
    places = np.empty(len(trials))
    places[_in_time(trials, groups)] = np.arange(len(trials))
    first = sum(
        places[(blocks == block) & (groups == 0)].mean() < places[(blocks == block) & (groups == 1)].mean()
        for block in met
    )
    fewer = min(first, len(met) - first)
    return Arrangement("blocks", balanced=len(met) >= ENOUGH_BLOCKS and fewer >= len(met) / 4, doubt=doubtful)


def _times_known(trials: Sequence[Trial]) -> bool:
    return all(trial.order[0] for trial in trials) or len({trial.order for trial in trials}) == len(trials)


def _in_time(trials: Sequence[Trial], labels: Sequence[Hashable] | Indices) -> Indices:
    """Places of the trials in order of time; those that began in the same second have the same place."""
    return np.asarray(sorted(range(len(trials)), key=lambda at: (trials[at].order, labels[at])), dtype=np.intp)


def _runs(labels: Indices) -> Indices:
    """0 for the first run of equal labels, 1 for the next ..."""
    return np.concatenate([[0], np.cumsum(labels[1:] != labels[:-1])]).astype(np.intp)


def _by_the_hour(trials: Sequence[Trial], groups: Indices, turns: Indices) -> bool:
    """True if a daily cycle (sine and cosine of the hour) follows the turns: one alternative by day, one by night."""
    try:
        seconds = np.asarray([datetime.fromisoformat(trial.order[0]).timestamp() for trial in trials])
    except ValueError:  # not a time
        return False
    if np.ptp(seconds) < _DAY_S / 2:
        return False
    count = int(turns.max()) + 1
    middle = np.bincount(turns, seconds) / np.bincount(turns)
    angle = 2 * math.pi * middle / _DAY_S
    side = np.bincount(turns, groups) / np.bincount(turns)
    waves = np.column_stack([np.ones(count), np.sin(angle), np.cos(angle)])
    left = side - waves @ np.linalg.lstsq(waves, side, rcond=None)[0]
    whole = side - side.mean()
    return bool(left @ left < (1 - _DAILY) * (whole @ whole))
