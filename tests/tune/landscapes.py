"""Searches over landscapes whose true values are known: the schedule of a campaign, without its machinery."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spindle.campaign.adaptive import SearchSchedule, Stage, Step
from spindle.campaign.plan import Plan
from spindle.campaign.source import read_plan
from spindle.search.prior import Prior
from spindle.search.space import Point
from spindle.stats.compare import compare
from spindle.stats.trial import Side, Trial

Levels = Mapping[str, str]

KNOBS = """
target = "one-sata"
workload = "randomio"
seed = {seed}

[factors.scheduler.levels]
none = {{ knobs = {{ scheduler = "none" }}, ignores = ["batch"] }}
mq-deadline = {{ knobs = {{ scheduler = "mq-deadline" }} }}
bfq = {{ knobs = {{ scheduler = "bfq" }}, ignores = ["batch"] }}

[factors.batch]
sets = "knobs.iosched/fifo_batch"
values = [1, 4, 16, 64]

[factors.requests]
sets = "knobs.nr_requests"
values = [16, 32, 64, 128, 256, 512]

[design]
kind = "search"
baseline = {{ scheduler = "none", batch = "16", requests = "128" }}

[trials]
metric = "{metric}"

[search]
{search}
"""


def plan(seed: int = 1, metric: str = "iops", search: str = "trials = 32\nscreen = 8") -> Plan:
    """A plan of three settings, one of which has an effect only with one level of another."""
    return read_plan(KNOBS.format(seed=seed, metric=metric, search=search), "knobs.toml", "knobs")


@dataclass
class Outcome:
    """The end of a search."""

    schedule: SearchSchedule
    steps: list[Step]
    winner: Point | None
    recommended: bool
    """True if the confirmation shows that the winner is better than the start."""
    change: float
    """The winner's relative to the start's, in the confirmation."""


def searched(
    plan: Plan,
    measure: Callable[[Levels, random.Random], float],
    drift: Callable[[int], float] = lambda block: 1.0,
    bounded: Callable[[Levels], tuple[float, ...]] = lambda levels: (),
    prior: Prior | None = None,
) -> Outcome:
    """Carry out a search over a landscape: `measure` gives the result of a trial."""
    schedule, steps, noise = SearchSchedule(plan, prior), list[Step](), random.Random(f"noise {plan.seed}")
    while batch := schedule.next(steps):
        steps += [
            Step(one.stage, one.block, one.levels, measure(one.levels, noise) * drift(one.block), bounded(one.levels))
            for one in batch
        ]
    final = [one for one in steps if one.stage is Stage.CONFIRM]
    winner = next((point for one in final if (point := schedule.point(one.levels)) != schedule.start), None)
    if winner is None or winner in schedule.dropped(steps):
        return Outcome(schedule, steps, winner, False, 0.0)
    sides = [Side(label, [_trial(at, one, plan) for at, one in enumerate(final)
                          if (schedule.point(one.levels) == schedule.start) == (label == "start")])
             for label in ("start", "winner")]  # fmt: skip
    assert plan.trials.metric is not None
    found = compare(sides, [plan.trials.metric]).findings[0].difference
    better = found.significant and (found.change > 0) == schedule.goal.higher
    return Outcome(schedule, steps, winner, better, found.change)


def _trial(at: int, step: Step, plan: Plan) -> Trial:
    assert step.value is not None
    assert plan.trials.metric is not None
    return Trial(
        id=str(at),
        values={plan.trials.metric: step.value},
        campaign="landscape",
        block=step.block,
        cell=dict(step.levels),
        order=("", at),
    )


def noisy(value: float, noise: random.Random, share: float) -> float:
    """A value with relative noise."""
    return float(value * noise.lognormvariate(0.0, share))
