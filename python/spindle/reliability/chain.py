"""The Markov chain of an array: drives fail, are replaced and rebuilt until data is lost.

No operation subtracts rates or probabilities that nearly cancel, so a probability of 1e-12 has as many correct digits
as one of 0.1: probabilities over a time come from uniformization with repeated squaring, the mean time to data loss
from the elimination of Grassmann, Taksar and Heyman (Operations Research 33(5), 1985).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .group import HOURS_PER_YEAR, Group
from .redundancy import critical, fatal, redundancy_of

Matrix = NDArray[np.float64]


class State(NamedTuple):
    """A state of the chain."""

    failed: int
    """Drives."""
    ordered: int
    """Replacements on order."""
    stage: int
    """Stages of the rebuild that are done."""
    bare: bool
    """The rebuild reads data of which no other copy or parity is left."""


WHOLE = State(0, 0, 0, False)

DRIVES, SECTORS = 0, 1
"""Columns of losses: more drives failed than the array survives; an unreadable sector without redundancy."""
PARTS_PER_YEAR = 12
"""Parts of a year with a constant rate, where it depends on the age."""
NEGLIGIBLE = 1e-5
"""States that are reached with a smaller share of the losses so far are not followed; entering one counts as a loss."""
MOST_FAILED = 12


class Chain:
    """The rates of an array at one time, per hour."""

    def __init__(self, group: Group, hazard: float = 1.0, year: float = 0.5, most_failed: int | None = None) -> None:
        """`hazard`: failure rate as a multiple of the mean; `year`: time since the start, for latent errors;
        `most_failed`: failed drives beyond which nothing is followed, if another chain is to have the same states."""
        self._group = group
        self._of = redundancy_of(group)
        self._rate = group.failure_rate * hazard
        self._unreadable = group.unreadable(year)
        self.most_failed = self._most_failed() if most_failed is None else most_failed
        self.states = list(self._reachable())
        index = {state: at for at, state in enumerate(self.states)}
        count = len(self.states)
        self.rates: Matrix = np.zeros((count, count))
        self.losses: Matrix = np.zeros((count, 2))
        for state, at in index.items():
            for target, cause, rate in self._moves(state):
                if target is None:
                    self.losses[at, cause] += rate
                else:
                    self.rates[at, index[target]] += rate

    def _reachable(self) -> Iterator[State]:
        found = {WHOLE}
        waiting = [WHOLE]
        while waiting:
            state = waiting.pop(0)
            yield state
            for target, _, _ in self._moves(state):
                if target is not None and target not in found:
                    found.add(target)
                    waiting.append(target)

    def _moves(self, state: State) -> Iterator[tuple[State | None, int, float]]:
        """Yield (state after it, or None for a loss; cause; rate) of everything that can happen in a state."""
        yield from self._failures(state)
        if state.ordered:
            rate = state.ordered / self._group.replace_hours
            yield state._replace(ordered=state.ordered - 1), DRIVES, rate
        if state.failed and self._group.spares + state.failed - state.ordered >= 1:
            yield from self._progress(state)

    def _failures(self, state: State) -> Iterator[tuple[State | None, int, float]]:
        failed = state.failed
        rate = self.failures_per_hour(failed)
        lost = 1.0 if failed >= self.most_failed else fatal(self._of, failed)
        if lost:
            yield None, DRIVES, rate * lost
        if lost < 1:
            ordered = state.ordered + 1 if self._group.replace_hours else 0
            more = state._replace(failed=failed + 1, ordered=ordered)
            for bare, share in self._bare_after_failure(state):
                yield more._replace(bare=bare), DRIVES, rate * (1 - lost) * share

    def _bare_after_failure(self, state: State) -> Iterator[tuple[bool, float]]:
        """Yield (whether the drive being rebuilt has lost its redundancy, probability) after a further failure."""
        before, after = critical(self._of, state.failed), critical(self._of, state.failed + 1)
        bare = 1.0 if state.bare else after if before >= 1 else max((after - before) / (1 - before), 0.0)
        if bare > 0:
            yield True, bare
        if bare < 1:
            yield False, 1 - bare

    def _progress(self, state: State) -> Iterator[tuple[State | None, int, float]]:
        stages = self._group.rebuild_stages
        rate = stages / self._group.rebuild_hours
        hit = -math.expm1(-self._unreadable / stages) if state.bare else 0.0
        if hit:
            yield None, SECTORS, rate * hit
        if state.stage + 1 < stages:
            yield state._replace(stage=state.stage + 1), DRIVES, rate * (1 - hit)
            return
        less = state.failed - 1
        bare = critical(self._of, less) if less else 0.0
        for is_bare, share in ((True, bare), (False, 1 - bare)):
            if share > 0:
                yield State(less, state.ordered, 0, is_bare), DRIVES, rate * (1 - hit) * share

    def failures_per_hour(self, failed: int) -> float:
        """Rate of the next failure while `failed` drives are failed."""
        return (self._of.drives - failed) * self._rate * self._group.batch_correlation**failed

    def _most_failed(self) -> int:
        """Failed drives beyond which nothing is followed."""
        hours = self._group.rebuild_hours + (0.0 if self._group.spares else self._group.replace_hours)
        reached, lost = 1.0, 0.0
        for failed in range(min(self._of.drives, MOST_FAILED)):
            lost += reached * fatal(self._of, failed)
            reached *= min(self.failures_per_hour(failed) * hours, 1.0) if failed else 1.0
            if failed >= self._of.tolerance and (reached < NEGLIGIBLE * lost or fatal(self._of, failed) == 1):
                return failed
        return min(self._of.drives, MOST_FAILED) - 1

    def mean_hours(self) -> tuple[float, float, float]:
        """Return (mean time to data loss in hours, share of each cause), from a whole array on."""
        rates, losses = self.rates.copy(), self.losses.copy()
        hours = np.ones(len(rates))
        for last in range(len(rates) - 1, 0, -1):
            total = rates[last, :last].sum() + losses[last].sum()
            if total == 0:
                continue
            into = rates[:last, last] / total
            rates[:last, :last] += np.outer(into, rates[last, :last])
            losses[:last] += np.outer(into, losses[last])
            hours[:last] += into * hours[last]
        total = losses[0].sum()
        if total == 0:
            return math.inf, 0.0, 0.0
        return float(hours[0] / total), float(losses[0, DRIVES] / total), float(losses[0, SECTORS] / total)

    def evolution(self, hours: float) -> Matrix:
        """Return the probability of each state, and of a loss by each cause, after `hours`, by the state before."""
        count = len(self.states)
        step: Matrix = np.zeros((count + 2, count + 2))
        step[:count, :count] = self.rates
        step[:count, count:] = self.losses
        leaving = step.sum(axis=1)
        fastest = float(leaving.max())
        doublings = max(math.ceil(math.log2(max(fastest * hours, 1e-300))), 0)
        part = hours / 2**doublings
        step[np.diag_indices(count + 2)] += fastest - leaving
        return _squared(_exponential(step * part) * math.exp(-fastest * part), doublings)


def _exponential(matrix: Matrix) -> Matrix:
    """Return the exponential of a matrix without negative elements, whose rows sum to at most 1."""
    term = result = np.eye(len(matrix))
    for at in range(1, 20):
        term = term @ matrix / at
        result = result + term
    return result


def _squared(matrix: Matrix, times: int) -> Matrix:
    for _ in range(times):
        matrix = matrix @ matrix
    return matrix


def losses(group: Group, years: float = 1.0) -> tuple[float, float]:
    """Return the probability of a loss within `years` by (failed drives, unreadable sectors), from a whole array on."""
    parts = [(begin, end, mean_hazard(group, begin, end)) for begin, end in _parts(group, years)]
    most = Chain(group, max(hazard for *_, hazard in parts)).most_failed
    found: Matrix | None = None
    for begin, end, hazard in parts:
        step = Chain(group, hazard, (begin + end) / 2, most).evolution((end - begin) * HOURS_PER_YEAR)
        found = step[0] if found is None else found @ step
    assert found is not None
    return float(found[-2]), float(found[-1])


def mean_hazard(group: Group, begin: float, end: float) -> float:
    """Return the failure rate between two years after the start, as a multiple of the mean over the drives' life."""
    wear = group.wear
    if wear.shape == 1:
        return 1.0
    grown = wear.hazard_hours(wear.age_years + end) - wear.hazard_hours(wear.age_years + begin)
    return grown / ((end - begin) * HOURS_PER_YEAR)


def _parts(group: Group, years: float) -> list[tuple[float, float]]:
    """Return parts of the time within which the rates are taken as constant."""
    constant = group.wear.shape == 1 and (group.scrub_days is not None or not group.latent_per_year)
    count = 1 if constant else max(math.ceil(years * PARTS_PER_YEAR), 1)
    return [(years * at / count, years * (at + 1) / count) for at in range(count)]
