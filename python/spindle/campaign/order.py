"""The order of trials: a pure function of the plan and of the results, so that a resumed campaign continues unchanged.

The order within a block is random, but no alternative may be early (or late) again and again: a drift would look like a
difference of the alternatives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spindle.campaign.cells import Cell
from spindle.campaign.plan import Order, Plan
from spindle.stats.estimate import of_trials

SEEDS_APART = 1_000_000
"""Distance between the seeds of a trial and of its repetition: more than the number of blocks."""


@dataclass(frozen=True)
class Trial:
    """One run of a cell."""

    cell: Cell
    block: int
    """Number of the repetition of its cell, from 1."""


_DRAWS = 50
"""Most random orders tried for a balanced block."""

Values = Callable[[Cell, int], Sequence[float]]
"""Results of the trials of a cell in the first blocks; trials without a result are left out."""


def seed_of(plan: Plan, block: int, attempt: int) -> int:
    """Seed of a block, the same for all its cells, so that they are compared on the same requests."""
    return plan.seed + block - 1 + SEEDS_APART * (attempt - 1)


class Schedule:
    """Every trial of a campaign, in order."""

    def __init__(self, plan: Plan, cells: Sequence[Cell]) -> None:
        self._plan = plan
        self._alike: dict[str, list[Cell]] = {}
        """Cells that differ in their host only: they are tried at the same time, so each host has the same order."""
        for cell in cells:
            self._alike.setdefault(cell.without_host, []).append(cell)
        self._count = len(cells)
        self._cells = [alike[0] for alike in self._alike.values()]
        """The first of each, which are ordered."""
        self._ahead: dict[str, float] = {}
        """Cell -> places after the middle of its blocks, summed over all blocks."""

    @property
    def least(self) -> int:
        """Smallest number of trials."""
        return self._count * self._plan.trials.count

    @property
    def most(self) -> int:
        """Largest number of trials."""
        return self._count * self._plan.trials.most

    def batches(self, values: Values) -> Iterator[list[Trial]]:
        """Batches of trials; the next batch depends on the results of the earlier ones."""
        for batch in self._of_first(values):
            yield [Trial(cell, one.block) for one in batch for cell in self._alike[one.cell.without_host]]

    def _of_first(self, values: Values) -> Iterator[list[Trial]]:
        """The batches, of the first host."""
        trials = self._plan.trials
        self._ahead = {}
        every = [Trial(cell, block) for block in range(1, trials.count + 1) for cell in self._cells]
        match trials.order:
            case Order.SEQUENTIAL:
                yield from self._cell_by_cell(values)
                return
            case Order.RANDOM:
                yield self._shuffled(every, 1)
            case Order.BLOCKS:
                size = len(self._cells)
                blocks = [every[at : at + size] for at in range(0, len(every), size)]
                yield [one for block in blocks for one in self._balanced(block)]
        for block in range(trials.count + 1, trials.most + 1):
            wanted = [Trial(cell, block) for cell in self._cells if self._wanted(cell, block, values)]
            if wanted:
                yield self._balanced(wanted)

    def _cell_by_cell(self, values: Values) -> Iterator[list[Trial]]:
        trials = self._plan.trials
        if trials.within is None:
            yield [Trial(cell, block) for cell in self._cells for block in range(1, trials.count + 1)]
            return
        for cell in self._cells:
            yield [Trial(cell, block) for block in range(1, trials.count + 1)]
            for block in range(trials.count + 1, trials.most + 1):
                if self._wanted(cell, block, values):
                    yield [Trial(cell, block)]

    def _shuffled(self, trials: Sequence[Trial], block: int) -> list[Trial]:
        return random.Random(f"{self._plan.seed}/{block}").sample(trials, len(trials))

    def _balanced(self, block: Sequence[Trial]) -> list[Trial]:
        """A random order in which no cell's sum of distances from the middle of its blocks exceeds twice the largest
        possible distance in one block; the best of the tried ones if there is none.
        """
        draw = random.Random(f"{self._plan.seed}/{block[0].block}")
        chosen = draw.sample(block, len(block))
        for _ in range(_DRAWS):
            if self._worst(chosen) <= len(block) - 1:
                break
            chosen = min(chosen, draw.sample(block, len(block)), key=self._worst)
        self._ahead |= self._after(chosen)
        return chosen

    def _after(self, order: Sequence[Trial]) -> dict[str, float]:
        middle = (len(order) - 1) / 2
        return {one.cell.key: self._ahead.get(one.cell.key, 0.0) + at - middle for at, one in enumerate(order)}

    def _worst(self, order: Sequence[Trial]) -> float:
        return max(map(abs, self._after(order).values()))

    def _wanted(self, cell: Cell, block: int, values: Values) -> bool:
        """True until the cell's mean is precise enough on every host, at least for the minimum."""
        trials = self._plan.trials
        return trials.within is not None and any(
            not any(
                is_within(values(one, done), trials.within, trials.confidence) for done in range(trials.count, block)
            )
            for one in self._alike[cell.without_host]
        )


def is_within(values: Sequence[float], share: float, confidence: float) -> bool:
    """True if the interval of the mean is within that share of it."""
    return len(values) >= 2 and of_trials(values, confidence).relative <= share
