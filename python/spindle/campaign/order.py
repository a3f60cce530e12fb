"""Which trial comes next: a pure function of the plan and of what its trials gave, so that a campaign that is resumed
goes on as it would have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spindle.campaign.cells import Cell
from spindle.campaign.plan import Order, Plan
from spindle.campaign.precision import is_within

SEEDS_APART = 1_000_000
"""Between the seeds of a trial and of its repetition: more than there are blocks."""


@dataclass(frozen=True)
class Trial:
    """One cell, once."""

    position: int
    """From 0, in order of time."""
    cell: Cell
    block: int
    """From 1: the how manyth of its cell."""

    def seed(self, plan: Plan, attempt: int) -> int:
        """The same for all cells of a block, so that they are compared on the same requests."""
        return plan.seed + self.block - 1 + SEEDS_APART * (attempt - 1)


Values = Callable[[Cell, int], Sequence[float]]
"""What the trials of a cell gave, of the first so many blocks; those that gave nothing are left out."""


class Schedule:
    """Every trial of a campaign, in order."""

    def __init__(self, plan: Plan, cells: Sequence[Cell]) -> None:
        self._plan, self._cells = plan, cells

    @property
    def least(self) -> int:
        """Trials there will be."""
        return len(self._cells) * self._plan.trials.count

    @property
    def most(self) -> int:
        """Trials there may be."""
        return len(self._cells) * self._plan.trials.most

    def trials(self, values: Values) -> Iterator[Trial]:
        """`values` is asked about trials that have been yielded before."""
        for position, (cell, block) in enumerate(self._pairs(values)):
            yield Trial(position, cell, block)

    def _pairs(self, values: Values) -> Iterator[tuple[Cell, int]]:
        trials = self._plan.trials
        match trials.order:
            case Order.SEQUENTIAL:
                for cell in self._cells:
                    for block in range(1, trials.most + 1):
                        if not self._wanted(cell, block, values):
                            break
                        yield cell, block
            case Order.RANDOM:
                yield from self._shuffled(
                    [(cell, block) for cell in self._cells for block in range(1, trials.count + 1)]
                )
                yield from self._blocks(trials.count + 1, values)
            case Order.BLOCKS:
                yield from self._blocks(1, values)

    def _blocks(self, first: int, values: Values) -> Iterator[tuple[Cell, int]]:
        for block in range(first, self._plan.trials.most + 1):
            wanted = [cell for cell in self._cells if self._wanted(cell, block, values)]
            yield from self._shuffled([(cell, block) for cell in wanted])

    def _shuffled(self, pairs: list[tuple[Cell, int]]) -> list[tuple[Cell, int]]:
        block = pairs[0][1] if pairs else 0
        random.Random(f"{self._plan.seed}/{block}").shuffle(pairs)
        return pairs

    def _wanted(self, cell: Cell, block: int, values: Values) -> bool:
        """Once a cell is known well enough, it stays so."""
        trials = self._plan.trials
        if block <= trials.count:
            return True
        if trials.within is None or block > trials.most:
            return False
        known = trials.within, trials.confidence
        return not any(is_within(values(cell, done), *known) for done in range(trials.count, block))
