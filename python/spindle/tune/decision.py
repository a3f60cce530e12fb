"""The decision of a search: whether to change anything, by how much that is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from spindle.base.numbers import as_change
from spindle.campaign.adaptive import LOOKING, SearchSchedule, Stage, Step
from spindle.campaign.cells import IGNORED
from spindle.campaign.execution import step_of
from spindle.campaign.outcome import plan_of
from spindle.campaign.plan import Limit, Plan
from spindle.run.errors import Usage
from spindle.search.curves import Influence, influences
from spindle.search.trials import belief, is_relative
from spindle.stats import compare as comparing
from spindle.stats.difference import Difference
from spindle.stats.estimate import of_trials
from spindle.stats.names import metric
from spindle.stats.trial import Side, trial_of
from spindle.store import Campaign, Store, Trial
from spindle.tune.space import AS_FOUND

START, WINNER = "start", "winner"
KEEP = "keep what you have"

NOTHING = (IGNORED, AS_FOUND)
"""Levels that set nothing."""

Levels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BoundCheck:
    """A bound in the trials of the confirmation."""

    text: str
    metric: str
    mean: float
    low: float
    high: float
    holds: bool
    """True if the whole interval of the mean is on the right side."""


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """One trial of the search."""

    number: int
    block: int
    stage: Stage
    levels: Levels
    state: str
    value: float | None


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The result of a search."""

    campaign: Campaign
    plan: Plan
    metric: str
    higher: bool
    state: Literal["better", "keep", "unfinished"]
    sentence: str
    """`better by 12 % (8-16 %)`, or `keep what you have`."""
    reason: str
    """Why."""
    start: Levels
    winner: Levels | None
    """Settings that were confirmed, or that failed to be."""
    difference: Difference | None
    """The winner less the start, in the trials of the confirmation."""
    bounds: Sequence[BoundCheck]
    dropped: Sequence[Levels]
    """Settings with two modes."""
    trials: Sequence[TrialRow]
    influences: Sequence[Influence]
    """The influence of each setting, by the trials before the confirmation; on logarithms if `relative`, signed so that
    more is better."""
    relative: bool
    noise: float
    """Standard deviation of a trial, on that scale."""
    notes: Sequence[str] = field(default=())

    def moved(self, levels: Levels) -> dict[str, str]:
        """The settings that differ from the start."""
        return {name: level for name, level in levels.items() if level not in (self.start[name], *NOTHING)}

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """Setting -> level before and after; empty if nothing is recommended."""
        if self.state != "better" or self.winner is None:
            return {}
        return {
            name: (self.start[name], level)
            for name, level in self.winner.items()
            if level not in (self.start[name], "-")
        }

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        difference = self.difference
        return {
            "campaign": self.campaign.name,
            "id": self.campaign.id,
            "metric": self.metric,
            "goal": "maximise" if self.higher else "minimise",
            "decision": self.state,
            "sentence": self.sentence,
            "reason": self.reason,
            "start": dict(self.start),
            "winner": dict(self.winner) if self.winner is not None else None,
            "changes": {name: list(both) for name, both in self.changes.items()},
            "change": difference.change if difference is not None else None,
            "low": difference.low if difference is not None else None,
            "high": difference.high if difference is not None else None,
            "is_relative": difference.relative if difference is not None else None,
            "bounds": [vars(one) for one in self.bounds],
            "dropped": [dict(one) for one in self.dropped],
            "noise": self.noise,
            "influences": [
                {
                    "name": one.name, "best": one.best, "worst": one.worst, "gain": one.gain, "low": one.low,
                    "high": one.high, "flat": one.is_flat, "untried": list(one.untried),
                    "curve": [vars(point) for point in one.curve],
                }
                for one in self.influences
            ],
            "trials": [{**vars(one), "stage": str(one.stage), "levels": dict(one.levels)} for one in self.trials],
            "notes": list(self.notes),
        }  # fmt: skip


def tuning_of(campaign: Campaign, store: Store) -> Tuning:
    """Read every trial of a search and decide. Raises Usage if the campaign is not a search."""
    plan = plan_of(campaign)
    if plan.search is None or plan.trials.metric is None:
        raise Usage(f"campaign {campaign.name}: is not a search; `spindle campaign show {campaign.name}` shows it")
    trials = store.campaigns.trials(campaign.name)
    steps = {one.number: step for one in trials if (step := _step(plan, one, store)) is not None}
    return _Reader(campaign, plan, store, trials, steps).tuning()


def _step(plan: Plan, trial: Trial, store: Store) -> Step | None:
    if trial.state == "done" and trial.run_id is not None:
        return step_of(plan, trial, store.record(trial.run_id))
    return step_of(plan, trial, None) if trial.state in ("failed", "invalid") else None


@dataclass
class _Reader:
    campaign: Campaign
    plan: Plan
    store: Store
    trials: Sequence[Trial]
    steps: Mapping[int, Step]

    def tuning(self) -> Tuning:
        schedule = SearchSchedule(self.plan)
        steps = list(self.steps.values())
        assert self.plan.trials.metric is not None
        state, reason, difference, bounds = self._decided(schedule, steps)
        confirmed = next(
            (one for one in steps if one.stage is Stage.CONFIRM and schedule.point(one.levels) != schedule.start), None
        )
        before = [one for one in steps if one.stage is not Stage.CONFIRM]
        tried = schedule.tried(before)
        found = belief(schedule.space, tried, schedule.goal)
        at = schedule.point(confirmed.levels) if confirmed is not None else schedule.start
        return Tuning(
            campaign=self.campaign,
            plan=self.plan,
            metric=self.plan.trials.metric,
            higher=schedule.search.higher,
            state=state,
            sentence=self._sentence(state, difference),
            reason=reason,
            start=schedule.levels(schedule.start),
            winner=confirmed.levels if confirmed is not None else None,
            difference=difference,
            bounds=bounds,
            dropped=[schedule.levels(point) for point in schedule.dropped(steps)],
            trials=[
                TrialRow(
                    number=one.number,
                    block=one.block,
                    stage=Stage(one.detail["stage"]),
                    levels=one.cell,
                    state=one.state,
                    value=step.value if (step := self.steps.get(one.number)) is not None else None,
                )
                for one in self.trials
            ],
            influences=influences(found.merit, at) if found is not None and len(tried) > 2 else [],
            relative=is_relative(tried),
            noise=found.merit.noise if found is not None else 0.0,
        )

    def _decided(
        self, schedule: SearchSchedule, steps: Sequence[Step]
    ) -> tuple[Literal["better", "keep", "unfinished"], str, Difference | None, list[BoundCheck]]:
        if self.campaign.state != "done":
            return "unfinished", f"`spindle campaign resume {self.campaign.name}` goes on", None, []
        sides = self._sides(schedule)
        if not any(one.stage is Stage.RACE for one in steps):
            return "keep", "no settings promise a gain", None, []
        if not sides:
            unstable = schedule.dropped(steps)
            why = "the settings that promised a gain are unstable" if unstable else "no gain was left when repeated"
            return "keep", why, None, []
        if len(sides) < 2 or not all(side.trials for side in sides):
            return "keep", "every trial of the confirmation failed on one side", None, []
        name = schedule.plan.trials.metric
        assert name is not None
        confidence = self.plan.trials.confidence
        found = comparing.compare(sides, [name], confidence=confidence).findings[0].difference
        bounds = [_checked(limit, sides[1], confidence) for limit in schedule.search.limits]
        confirmed = [one for one in steps if one.stage is Stage.CONFIRM]
        winner = next(point for one in confirmed if (point := schedule.point(one.levels)) != schedule.start)
        if winner in schedule.dropped(confirmed):
            return "keep", "the best settings are unstable: their trials fall into two groups", found, bounds
        if broken := [one for one in bounds if not one.holds]:
            return "keep", f"the best settings do not surely meet {broken[0].text}", found, bounds
        if not found.significant or (found.change > 0) != schedule.search.higher:
            return "keep", "the best settings were not shown to be better when run beside the start", found, bounds
        if found.relative and abs(found.change) < schedule.search.worth:
            least = as_change(schedule.search.worth)
            return (
                "keep",
                f"the best settings are {as_change(abs(found.change))} better, less than {least}",
                found,
                bounds,
            )
        return "better", "", found, bounds

    def _sides(self, schedule: SearchSchedule) -> list[Side]:
        """The trials of the confirmation: those of the start, and those of the winner."""
        sides: dict[bool, list[Any]] = {}
        for one in self.trials:
            if one.detail["stage"] != Stage.CONFIRM:
                continue
            side = sides.setdefault(schedule.point(one.cell) == schedule.start, [])
            if one.state == "done" and one.run_id is not None:
                record = self.store.record(one.run_id)
                side.append(
                    trial_of(record, campaign=self.campaign.id, block=one.block, cell=one.cell, place=one.number)
                )
        return [Side(label, sides[key]) for key, label in ((True, START), (False, WINNER)) if key in sides]

    def _sentence(self, state: str, difference: Difference | None) -> str:
        if state == "unfinished":
            looked = sum(one.stage in LOOKING for one in self.steps.values())
            return f"not decided yet: {looked} trials of the search are done"
        if state == "keep" or difference is None:
            return KEEP
        return f"better by {gain_words(difference)}"


def gain_words(found: Difference) -> str:
    """`12 % (8-16 %)`: the size of a change and its interval."""
    low, high = found.low, found.high
    if low is None or high is None:
        return as_change(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    ends = sorted((abs(low), abs(high)))
    if not found.relative:
        return f"{abs(found.change):.3g} ({ends[0]:.3g}-{ends[1]:.3g})"
    return f"{as_change(abs(found.change))} ({as_change(ends[0]).removesuffix(' %')}-{as_change(ends[1])})"


def _checked(limit: Limit, side: Side, confidence: float) -> BoundCheck:
    values = [one.values[limit.metric] for one in side.trials if limit.metric in one.values]
    found = of_trials(values, confidence)
    low, high = (found.low, found.high) if len(values) > 1 else (float("-inf"), float("inf"))
    return BoundCheck(
        text=limit.text,
        metric=metric(limit.metric).name,
        mean=float(np.mean(values)),
        low=low,
        high=high,
        holds=high <= limit.limit if limit.upper else low >= limit.limit,
    )
