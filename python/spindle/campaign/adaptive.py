"""The trials of a search, as a function of the plan and of the trials so far, so that a search that was killed goes on
unchanged. Stages:

1. `screen`: points spread evenly over the space; `search`: the points that the strategy asks for. In each block one
   trial is of the start, at a random place.
2. `race`: the points with the largest expected gain, side by side with the start, in fresh blocks. Those with two modes
   are dropped.
   Of several objectives there is no race: the points of the front are confirmed.
3. `confirm`: the winner, the one with the largest expected gain of those left, against the start, in fresh blocks, as
   many as show the gain that is expected. These trials alone decide: they had no part in the choice.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice

from spindle.campaign.cells import IGNORED, cell_of, is_allowed, start_of
from spindle.campaign.order import Schedule
from spindle.campaign.plan import Method, Order, Plan, Search
from spindle.search import space as spaces
from spindle.search.choice import blocks_to_show, ranked, simplified, surest, unstable
from spindle.search.front import Scored, front, mixed, scored, weights
from spindle.search.prior import Prior
from spindle.search.space import Axis, Point, Space
from spindle.search.strategies import ExpectedImprovement, Grid, Random, Strategy
from spindle.search.trials import Goal, TrialPoint, expected_merits

STAGE = "stage"
"""Key of the stage in a trial's detail."""
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?\s*([KMGT]i?)?(B|s|ms|us|ns|%)?")


class Stage(StrEnum):
    """The stages of a search."""

    SCREEN = "screen"
    SEARCH = "search"
    RACE = "race"
    CONFIRM = "confirm"


LOOKING = (Stage.SCREEN, Stage.SEARCH)


@dataclass(frozen=True)
class Step:
    """A trial of a search, run or to be run."""

    stage: Stage
    block: int
    levels: Mapping[str, str]
    value: float | None = None
    """The metric's value; None: no result."""
    bounded: tuple[float | None, ...] = ()
    also: tuple[float | None, ...] = ()
    """Values of the further objectives."""


@dataclass
class SearchSchedule:
    """The schedule of a search plan."""

    plan: Plan
    prior: Prior | None = None
    """A model's expectation, see `campaign.prior`."""
    search: Search = field(init=False)
    space: Space = field(init=False)
    start: Point = field(init=False)
    goal: Goal = field(init=False)

    def __post_init__(self) -> None:
        assert self.plan.search is not None
        self.search = self.plan.search
        self.space = space_of(self.plan)
        self.start = self.point(start_of(self.plan))
        limits = tuple((one.limit, one.upper) for one in self.search.limits)
        self.goal = Goal(self.search.higher, limits)

    @property
    def block(self) -> int:
        """Trials of a block of the search: no point twice, so at most as many as there are points."""
        return len(list(islice(self.space.every(), self.search.block)))

    @property
    def strategy(self) -> Strategy:
        """How points are chosen after the screen."""
        match self.search.method:
            case Method.GRID:
                return Grid(self.space)
            case Method.RANDOM:
                return Random(self.space, self.plan.seed)
            case Method.GUIDED:
                # Mixtures of objectives are larger the better they are.
                goal = replace(self.goal, higher=True) if self.search.also else self.goal
                return ExpectedImprovement(self.space, goal, self.plan.seed, self.prior)

    @property
    def most(self) -> int:
        """Largest number of trials."""
        search = self.search
        if search.also:
            return search.trials + search.confirm * (search.finalists + 1)
        return search.trials + search.race * (search.finalists + 1) + 2 * search.confirm_most

    def point(self, levels: Mapping[str, str]) -> Point:
        """The point of a cell."""
        found = []
        for axis in self.space.axes:
            label = levels[axis.name]
            found.append(axis.labels.index(label) if label != IGNORED else 0)
        return self.space.canonical(found)

    def levels(self, point: Point) -> dict[str, str]:
        """The cell of a point."""
        return {
            axis.name: axis.labels[level] if level >= 0 else IGNORED
            for axis, level in zip(self.space.axes, point, strict=True)
        }

    def tried(self, steps: Sequence[Step]) -> list[TrialPoint]:
        """The trials as a search sees them."""
        return [TrialPoint(self.point(one.levels), one.block, one.value, one.bounded) for one in steps]

    def next(self, steps: Sequence[Step]) -> list[Step]:
        """The trials after these, all of which have ended; empty: the search is over."""
        looked = [one for one in steps if one.stage in LOOKING]
        if len(looked) < self.search.trials and (batch := self._look(looked)):
            return batch
        if self.search.also:
            return self._confirm_front(steps)
        raced = [one for one in steps if one.stage is Stage.RACE]
        if not raced:
            return self._side_by_side(Stage.RACE, self.finalists(looked), self.search.race, steps)
        if not any(one.stage is Stage.CONFIRM for one in steps):
            winner = self.winner(steps)
            return self._side_by_side(Stage.CONFIRM, [winner], self._to_confirm(winner, steps), steps) if winner else []
        return []

    # --- screen and search ---

    def _look(self, looked: Sequence[Step]) -> list[Step]:
        """The rest of the screen, or one trial of the search."""
        found: list[Step] = []
        size = self.block
        while (number := len(looked) + len(found)) < self.search.trials:
            block = number // size + 1
            if number % size == self._place_of_start(block, size):
                stage = Stage.SCREEN if number < self.search.screen else Stage.SEARCH
                found.append(Step(stage, block, self.levels(self.start)))
                continue
            point = self._of_design(number, size)
            if point is not None:
                found.append(Step(Stage.SCREEN, block, self.levels(point)))
                continue
            if found:
                return found
            taken = {self.point(one.levels) for one in looked if one.block == block} | {self.start}
            point = self.strategy.ask(self._asked(looked), taken)
            return [Step(Stage.SEARCH, block, self.levels(point))] if point is not None else []
        return found

    def _asked(self, looked: Sequence[Step]) -> list[TrialPoint]:
        """The trials as the strategy sees them: of several objectives, a mixture that differs from trial to trial."""
        if not self.search.also:
            return self.tried(looked)
        return mixed(self.scored(looked), weights(len(looked), 1 + len(self.search.also)))

    def scored(self, steps: Sequence[Step]) -> list[Scored]:
        """The trials with the merit of each objective."""
        higher = [self.search.higher, *(one.higher for one in self.search.also)]
        return scored(self.tried(steps), [(one.value, *one.also) for one in steps], higher)

    def _confirm_front(self, steps: Sequence[Step]) -> list[Step]:
        if any(one.stage is Stage.CONFIRM for one in steps):
            return []
        points = front(self.space, self.scored(steps), self.goal, self.start, self.search.finalists)
        return self._side_by_side(Stage.CONFIRM, points, self.search.confirm, steps)

    def _place_of_start(self, block: int, size: int) -> int:
        last = min(size, self.search.trials - (block - 1) * size)
        return random.Random(f"{self.plan.seed}/start/{block}").randrange(last)

    def _of_design(self, number: int, size: int) -> Point | None:
        if number >= self.search.screen or self.search.method is not Method.GUIDED:
            return None
        before = sum(at % size != self._place_of_start(at // size + 1, size) for at in range(number))
        points = [point for point in self._design if point != self.start]
        return points[before] if before < len(points) else None

    @cached_property
    def _design(self) -> list[Point]:
        if self.prior is not None:
            merits = expected_merits(self.prior, self.prior.screened, self.goal)
            return self.prior.design(self.space, self.search.screen, merits)
        return self.space.design(self.search.screen, f"{self.plan.seed}/screen")

    # --- race and confirmation ---

    def finalists(self, looked: Sequence[Step]) -> list[Point]:
        """The points with the largest expected gain; half of them are the surest to meet the bounds."""
        tried, most = self.tried(looked), self.search.finalists
        found = [point for point, _ in ranked(self.space, tried, self.goal, self.start, prior=self.prior)]
        return list(dict.fromkeys([*self._surest(tried, found)[: (most + 1) // 2], *found]))[:most]

    def _surest(self, tried: Sequence[TrialPoint], points: Sequence[Point]) -> list[Point]:
        blocks, confidence = self.search.confirm, self.plan.trials.confidence
        return surest(self.space, tried, self.goal, points, blocks, confidence, self.prior)

    def dropped(self, steps: Sequence[Step]) -> list[Point]:
        """Points of the race, or of the confirmation, whose trials have two modes."""
        found: list[Point] = []
        for stage in (Stage.RACE, Stage.CONFIRM):
            own = self.tried([one for one in steps if one.stage is stage])
            points = [point for point in dict.fromkeys(one.point for one in own) if point != self.start]
            found += unstable(own, points, self.goal)
        return list(dict.fromkeys(found))

    def winner(self, steps: Sequence[Step]) -> Point | None:
        """The point of the race with the largest expected gain, by all trials but those of the confirmation, without
        changes that do not matter.
        """
        before = [one for one in steps if one.stage is not Stage.CONFIRM]
        raced = {self.point(one.levels): None for one in before if one.stage is Stage.RACE}
        left = [point for point in raced if point not in self.dropped(before)]
        tried = self.tried(before)
        found = [point for point, _ in ranked(self.space, tried, self.goal, self.start, left, self.prior)]
        if not found:
            return None
        best, *_ = self._surest(tried, found)
        return simplified(self.space, tried, self.goal, self.start, best, self.prior)

    def _to_confirm(self, winner: Point, steps: Sequence[Step]) -> int:
        """Blocks of the confirmation. The number is fixed before the first of them, so the interval stays honest."""
        search, confidence = self.search, self.plan.trials.confidence
        needed = blocks_to_show(
            self.space, self.tried(steps), self.goal, self.start, winner, search.worth, confidence, self.prior
        )
        return search.confirm if needed <= search.confirm else math.ceil(min(needed, search.confirm_most))

    def _side_by_side(self, stage: Stage, points: Sequence[Point], count: int, steps: Sequence[Step]) -> list[Step]:
        if not points:
            return []
        after = max((one.block for one in steps), default=0)
        cells = [cell_of(self.plan, self.levels(point)) for point in [self.start, *points]]
        trials = replace(self.plan.trials, count=count, within=None, order=Order.BLOCKS)
        order = Schedule(replace(self.plan, trials=trials, seed=self.plan.seed + after), cells)
        batch = next(order.batches(lambda cell, blocks: []))
        return [Step(stage, after + one.block, one.cell.levels) for one in batch]


def space_of(plan: Plan) -> Space:
    """The factors of a plan as a space. Numbers in the order of the plan are evenly spaced."""
    names = [factor.name for factor in plan.factors]
    ignores = {
        (at, number): frozenset(names.index(other) for other in level.ignores)
        for at, factor in enumerate(plan.factors)
        for number, level in enumerate(factor.levels)
        if level.ignores
    }
    axes = tuple(_axis(factor.name, factor.labels) for factor in plan.factors)

    def allowed(point: Point) -> bool:
        labels = {axis.name: axis.labels[level] for axis, level in zip(axes, point, strict=True) if level >= 0}
        return is_allowed(plan, labels)

    return Space(axes, ignores, allowed)


def _axis(name: str, labels: Sequence[str]) -> Axis:
    return spaces.axis(name, labels, lambda label: _NUMBER.fullmatch(label) is not None)
