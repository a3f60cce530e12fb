"""The decision of a search: whether to change anything, by how much that is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

import numpy as np

from spindle.base.numbers import as_change
from spindle.campaign.adaptive import LOOKING, SearchSchedule, Stage, Step
from spindle.campaign.bounds import in_unit, is_broken
from spindle.campaign.cells import IGNORED
from spindle.campaign.execution import ended_step, search_of
from spindle.campaign.outcome import plan_of
from spindle.campaign.plan import Limit, Plan
from spindle.campaign.prepare import Sources
from spindle.run.errors import Usage
from spindle.search.curves import SAMPLE, Influence, influences
from spindle.search.space import Point
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

ENDED = ("done", "failed", "invalid")
"""States of trials that have ended."""
NOTHING = (IGNORED, AS_FOUND)
"""Levels that set nothing."""

_FEW = 8

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
    broken_at_start: float | None
    """The mean with the settings of the start, if its whole interval is on the wrong side."""


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """Settings of a front, in the trials of the confirmation."""

    levels: Levels
    means: Sequence[float]
    """The mean of each objective."""
    differences: Sequence[Difference]
    """To the start, of each objective; empty for the start itself."""
    beaten: bool
    """True if others are no worse in any objective and better in one, by their means."""
    gains: bool
    """True if it was shown to be better than the start in an objective, by `worth` at least."""
    is_start: bool


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
    state: Literal["better", "keep", "front", "unfinished"]
    sentence: str
    """`better by 12 % (8-16 %)`, `meets read.p99<20ms; the settings of the start do not (45 ms)`, or `keep what you
    have`.
    """
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
    objectives: Sequence[tuple[str, bool]] = ()
    """Metrics, and True if more is better."""
    front: Sequence[FrontPoint] = ()
    """The start and the confirmed settings, if there are several objectives."""
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
            "front": [
                {
                    "levels": dict(one.levels), "start": one.is_start, "beaten": one.beaten, "gains": one.gains,
                    "values": {name: mean for (name, _), mean in zip(self.objectives, one.means, strict=True)},
                    "differences": [{"metric": each.metric, "change": each.change, "low": each.low, "high": each.high,
                                     "significant": each.significant} for each in one.differences],
                }
                for one in self.front
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def is_search(campaign: Campaign) -> bool:
    """True if it was made by `spindle tune`, or by a plan of this kind."""
    try:
        return plan_of(campaign).search is not None
    except Usage:  # of something else than a plan
        return False


def tuning_of(campaign: Campaign, store: Store) -> Tuning:
    """Read every trial of a search and decide. Raises Usage if the campaign is not a search."""
    plan = plan_of(campaign)
    if plan.search is None or plan.trials.metric is None:
        raise Usage(f"campaign {campaign.name}: is not a search; `spindle campaign show {campaign.name}` shows it")
    trials = store.campaigns.trials(campaign.name)
    steps = {one.number: ended_step(plan, one, store) for one in trials if one.state in ENDED}
    return _Reader(campaign, plan, store, trials, steps).tuning()


@dataclass
class _Reader:
    campaign: Campaign
    plan: Plan
    store: Store
    trials: Sequence[Trial]
    steps: Mapping[int, Step]

    def tuning(self) -> Tuning:
        detail = self.campaign.detail
        schedule = search_of(self.plan, Sources(texts=dict(detail["sources"])), detail.get("screened"))
        if schedule.search.also:
            return self._several(schedule)
        steps = list(self.steps.values())
        assert self.plan.trials.metric is not None
        state, reason, difference, bounds = self._decided(schedule, steps)
        confirmed = next(
            (one for one in steps if one.stage is Stage.CONFIRM and schedule.point(one.levels) != schedule.start), None
        )
        before = [one for one in steps if one.stage is not Stage.CONFIRM]
        tried = schedule.tried(before)
        found = belief(schedule.space, tried, schedule.goal, schedule.prior)
        at = schedule.point(confirmed.levels) if confirmed is not None else schedule.start
        return Tuning(
            campaign=self.campaign,
            plan=self.plan,
            metric=self.plan.trials.metric,
            higher=schedule.search.higher,
            state=state,
            sentence=self._sentence(state, difference, bounds),
            reason=reason,
            start=schedule.levels(schedule.start),
            winner=confirmed.levels if confirmed is not None else None,
            difference=difference,
            bounds=bounds,
            dropped=[schedule.levels(point) for point in schedule.dropped(steps)],
            trials=self._rows(),
            influences=influences(found.merit, at, sample=_sample(schedule))
            if found is not None and len(tried) > 2
            else [],
            relative=is_relative(tried),
            noise=found.merit.noise if found is not None else 0.0,
        )

    def _rows(self) -> list[TrialRow]:
        return [
            TrialRow(
                number=one.number,
                block=one.block,
                stage=Stage(one.detail["stage"]),
                levels=one.cell,
                state=one.state,
                value=step.value if (step := self.steps.get(one.number)) is not None else None,
            )
            for one in self.trials
        ]

    def _several(self, schedule: SearchSchedule) -> Tuning:
        """The decision on several objectives."""
        assert self.plan.trials.metric is not None
        search, steps = schedule.search, list(self.steps.values())
        objectives = [(self.plan.trials.metric, search.higher), *((one.metric, one.higher) for one in search.also)]
        confirmed = [one for one in steps if one.stage is Stage.CONFIRM]
        dropped = schedule.dropped(confirmed)
        front = self._front(schedule, objectives, dropped) if self.campaign.state == "done" else []
        gains = [one for one in front if one.gains and not one.beaten]
        state: Literal["front", "keep", "unfinished"] = "front" if gains else "keep"
        sentence, reason = KEEP, "no settings were shown to be better in any objective when run beside the start"
        if self.campaign.state != "done":
            state, sentence = "unfinished", self._sentence("unfinished", None, [])
            reason = f"`spindle campaign resume {self.campaign.name}` goes on"
        elif gains:
            better = sum(all(map(_is_better, one.differences, (up for _, up in objectives))) for one in gains)
            sentence = (
                f"{len(gains)} {'choice' if len(gains) == 1 else 'choices'}, {better} of them better in everything"
            )
            reason = "each is better than the start in one objective at least, and none beats another in all"
        tried = schedule.tried([one for one in steps if one.stage is not Stage.CONFIRM])
        return Tuning(
            campaign=self.campaign,
            plan=self.plan,
            metric=self.plan.trials.metric,
            higher=search.higher,
            state=state,
            sentence=sentence,
            reason=reason,
            start=schedule.levels(schedule.start),
            winner=None,
            difference=None,
            bounds=[],
            dropped=[schedule.levels(point) for point in dropped],
            trials=self._rows(),
            influences=[],
            relative=is_relative(tried),
            noise=0.0,
            objectives=objectives,
            front=front,
        )

    def _gains(self, differences: Sequence[Difference], objectives: Sequence[tuple[str, bool]]) -> bool:
        assert self.plan.search is not None
        worth = self.plan.search.worth
        return any(
            _is_better(found, higher) and found.significant and (not found.relative or abs(found.change) >= worth)
            for found, (_, higher) in zip(differences, objectives, strict=False)
        )

    def _front(
        self, schedule: SearchSchedule, objectives: Sequence[tuple[str, bool]], dropped: Sequence[Point]
    ) -> list[FrontPoint]:
        """The start and the confirmed settings that meet the bounds and have one mode."""
        of_point: dict[Point, list[Any]] = {schedule.start: []}
        for one in self.trials:
            point = schedule.point(one.cell)
            if one.detail["stage"] != Stage.CONFIRM or point in dropped or one.state != "done" or one.run_id is None:
                continue
            record = self.store.record(one.run_id)
            own = trial_of(record, campaign=self.campaign.id, block=one.block, cell=one.cell, place=one.number)
            of_point.setdefault(point, []).append(own)
        sides = {
            point: Side(START if point == schedule.start else f"choice {at}", own)
            for at, (point, own) in enumerate(of_point.items())
        }
        names, confidence = [name for name, _ in objectives], self.plan.trials.confidence
        limits = schedule.search.limits
        kept = {
            point: side for point, side in sides.items()
            if point == schedule.start or all(_checked(limit, side, confidence).holds for limit in limits)
        }  # fmt: skip
        if len(kept) < 2 or not all(side.trials for side in kept.values()):
            return []
        changes = {point: _changes(schedule.levels(point), schedule.levels(schedule.start)) for point in kept}
        doubles = _doubles(kept, changes, names, confidence)
        kept = {point: side for point, side in kept.items() if point not in doubles}
        found = comparing.compare(list(kept.values()), names, confidence=confidence).findings
        differences = {
            side.label: [next(one.difference for one in found if one.difference.b == side.label
                              and one.difference.metric == name) for name in names]
            for point, side in kept.items() if point != schedule.start
        }  # fmt: skip
        any_of = next(iter(differences.values()))
        means = {START: [one.mean_a for one in any_of]} | {
            label: [one.mean_b for one in own] for label, own in differences.items()
        }
        return [
            FrontPoint(
                levels=schedule.levels(point),
                means=means[side.label],
                differences=differences.get(side.label, []),
                beaten=any(_beats(other, means[side.label], objectives) for other in means.values()),
                gains=self._gains(differences.get(side.label, []), objectives),
                is_start=point == schedule.start,
            )
            for point, side in sorted(kept.items(), key=lambda item: means[item[1].label][0])
        ]

    def _decided(
        self, schedule: SearchSchedule, steps: Sequence[Step]
    ) -> tuple[Literal["better", "keep", "unfinished"], str, Difference | None, list[BoundCheck]]:
        if self.campaign.state != "done":
            return "unfinished", f"`spindle campaign resume {self.campaign.name}` goes on", None, []
        sides = self._sides(schedule)
        if not any(one.stage is Stage.RACE for one in steps):
            return "keep", _no_promise(schedule, steps, "no settings promise a gain"), None, []
        if not sides:
            unstable = schedule.dropped(steps)
            left = _no_promise(schedule, steps, "no gain was left when repeated")
            why = "the settings that promised a gain are unstable" if unstable else left
            return "keep", why, None, []
        if len(sides) < 2 or not all(side.trials for side in sides):
            return "keep", "every trial of the confirmation failed on one side", None, []
        name = schedule.plan.trials.metric
        assert name is not None
        confidence = self.plan.trials.confidence
        found = comparing.compare(sides, [name], confidence=confidence).findings[0].difference
        bounds = [_checked(limit, sides[1], confidence, sides[0]) for limit in schedule.search.limits]
        confirmed = [one for one in steps if one.stage is Stage.CONFIRM]
        winner = next(point for one in confirmed if (point := schedule.point(one.levels)) != schedule.start)
        if winner in schedule.dropped(confirmed):
            return "keep", "the best settings are unstable: their trials fall into two groups", found, bounds
        if broken := [one for one in bounds if not one.holds]:
            return "keep", f"the best settings do not surely meet {broken[0].text}", found, bounds
        if any(one.broken_at_start is not None for one in bounds):
            return "better", "", found, bounds
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

    def _sentence(self, state: str, difference: Difference | None, bounds: Sequence[BoundCheck]) -> str:
        if state == "unfinished":
            looked = sum(one.stage in LOOKING for one in self.steps.values())
            return f"not decided yet: {looked} trials of the search are done"
        if state == "keep" or difference is None:
            return KEEP
        for one in bounds:
            if one.broken_at_start is not None:
                return (
                    f"meets {one.text}; the settings of the start do not ({in_unit(one.metric, one.broken_at_start)})"
                )
        return f"better by {gain_words(difference)}"


def _is_better(found: Difference, higher: bool) -> bool:
    return (found.change > 0) == higher and found.change != 0


def _changes(levels: Levels, start: Levels) -> set[tuple[str, str]]:
    return {(name, level) for name, level in levels.items() if level not in NOTHING and level != start.get(name)}


def _doubles(
    sides: Mapping[Point, Side],
    changes: Mapping[Point, set[tuple[str, str]]],
    names: Sequence[str],
    confidence: float,
) -> set[Point]:
    """Points that were not shown to differ, in any objective, from one that changes a part of their settings."""

    def differ(one: Side, other: Side) -> bool:
        found = comparing.compare([one, other], names, confidence=confidence).findings
        return any(finding.difference.significant for finding in found)

    return {
        point
        for point, side in sides.items()
        for simpler, other in sides.items()
        if changes[simpler] and changes[simpler] < changes[point] and not differ(other, side)
    }


def _beats(these: Sequence[float], those: Sequence[float], objectives: Sequence[tuple[str, bool]]) -> bool:
    """True if the first are no worse in any objective, and better in one."""
    signed = [(a if up else -a, b if up else -b) for a, b, (_, up) in zip(these, those, objectives, strict=True)]
    return all(a >= b for a, b in signed) and any(a > b for a, b in signed)


def _sample(schedule: SearchSchedule) -> int:
    """Points over which influences are averaged: few where the model must be run for each."""
    is_whole = schedule.prior is None or len(schedule.prior.screened) >= schedule.space.size
    return SAMPLE if is_whole else _FEW


def gain_words(found: Difference) -> str:
    """`12 % (8-16 %)`: the size of a change and its interval."""
    low, high = found.low, found.high
    if low is None or high is None:
        return as_change(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    ends = sorted((abs(low), abs(high)))
    if not found.relative:
        return f"{abs(found.change):.3g} ({ends[0]:.3g}-{ends[1]:.3g})"
    return f"{as_change(abs(found.change))} ({as_change(ends[0]).removesuffix(' %')}-{as_change(ends[1])})"


def _checked(limit: Limit, side: Side, confidence: float, start: Side | None = None) -> BoundCheck:
    mean, low, high = _interval(limit, side, confidence)
    at_start, least, most = _interval(limit, start or side, confidence)
    return BoundCheck(
        text=limit.text,
        metric=metric(limit.metric).name,
        mean=mean,
        low=low,
        high=high,
        holds=high <= limit.limit if limit.upper else low >= limit.limit,
        broken_at_start=at_start if (least > limit.limit if limit.upper else most < limit.limit) else None,
    )


def _interval(limit: Limit, side: Side, confidence: float) -> tuple[float, float, float]:
    """The mean of the bounded metric, and its interval."""
    values = [one.values[limit.metric] for one in side.trials if limit.metric in one.values]
    found = of_trials(values, confidence)
    low, high = (found.low, found.high) if len(values) > 1 else (float("-inf"), float("inf"))
    return float(np.mean(values)), low, high


def _no_promise(schedule: SearchSchedule, steps: Sequence[Step], otherwise: str) -> str:
    """The reason why no settings were confirmed: the bounds, if those of the start break them too, or `otherwise`."""
    limits = schedule.search.limits
    own = [one.bounded for one in steps if one.stage in LOOKING and schedule.point(one.levels) == schedule.start]
    for at, limit in enumerate(limits):
        values = [value for bounded in own if (value := bounded[at]) is not None]
        if values and is_broken(limit, mean := fmean(values)):
            all_of = " and ".join(one.text for one in limits)
            of_start = in_unit(limit.metric, mean)
            return f"none of the settings tried is likely to meet {all_of}; those of the start do not ({of_start})"
    return otherwise
