"""The strata of trials that can be compared, and the facts that concern all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial

from spindle.result.record import KneeRecord, PhasesRecord, QuickRecord, Record, RunRecord
from spindle.result.target import Target
from spindle.stats.trial import Side, Trial


class Strata:
    """Block, workload and target, and the levels of the factors in which the sides do not differ. Properties that
    distinguish the sides are left out; otherwise no trials would meet.
    """

    def __init__(self, sides: Sequence[Side], *, across_time: bool = False, history: bool = False) -> None:
        self._sides = sides
        self.history = history
        """True if the first side is the past, so that its sessions may show how sessions differ."""
        self.across_time = across_time
        """True if the machine is assumed not to have changed, so that order does not matter."""
        factors = sorted({factor for side in sides for trial in side.trials for factor in trial.cell})
        self._factors = [factor for factor in factors if _meet(sides, partial(_level, factor))]
        self._workload = _meet(sides, lambda trial: trial.workload)
        self._target = _meet(sides, lambda trial: trial.target)

    def block(self, trial: Trial) -> Hashable:
        """The stratum of a trial, with its block if it has one."""
        return ((trial.campaign, trial.block) if trial.block is not None else None, self.level(trial))

    def level(self, trial: Trial) -> Hashable:
        """The stratum without the block."""
        return (
            trial.workload if self._workload else None,
            trial.target if self._target else None,
            *(trial.cell.get(factor) for factor in self._factors),
        )

    @cached_property
    def smallest_block(self) -> int:
        """Trials of the smallest block, of all sides; 2 without blocks."""
        trials = (trial for side in self._sides for trial in side.trials if trial.block is not None)
        return max(2, min(Counter((trial.campaign, trial.block) for trial in trials).values(), default=2))

    @cached_property
    def modelled(self) -> bool:
        """True if all runs were on modelled machines, which neither drift nor round."""
        return all(is_modelled(side.trials[0]) for side in self._sides if side.trials)

    @property
    def timeless(self) -> bool:
        """True if the order of trials does not matter."""
        return self.across_time or self.modelled


def strata(sides: Sequence[Side], *, across_time: bool = False, history: bool = False) -> Strata:
    """The strata of the compared sides."""
    return Strata(sides, across_time=across_time, history=history)


def is_modelled(trial: Trial) -> bool:
    """True if it ran on a modelled machine; False if its record is not available."""
    record = trial.load() if trial.load is not None else None
    target = _target(record) if record is not None else None
    return target is not None and target.traits.is_modelled


def _target(record: Record) -> Target | None:
    match record:
        case RunRecord() | PhasesRecord() | QuickRecord():
            return record.target
        case KneeRecord() if record.runs:
            return record.runs[0].target
        case _:
            return None


def _level(factor: str, trial: Trial) -> str | None:
    return trial.cell.get(factor)


def _meet(sides: Sequence[Side], of: Callable[[Trial], Hashable]) -> bool:
    """True if the sides have the same levels of it."""
    levels = [{of(trial) for trial in side.trials} for side in sides]
    return all(each == levels[0] for each in levels)
