"""Landscapes of modelled machines: every combination was simulated once, which is the truth; trials add noise.

The search is that of `spindle tune`, with screen, search, race and confirmation. It recommends the winner if the
confirmation shows that it is better, else the settings of the start.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from spindle.campaign import prior
from spindle.campaign.adaptive import SearchSchedule, Step
from spindle.campaign.execution import CheckedPlan
from spindle.campaign.plan import Plan
from spindle.cluster.simulation import build
from spindle.library.tuning import SpaceOptions, planned
from spindle.search.prior import Prior
from spindle.search.space import Point
from tests.tune.landscapes import noisy, searched
from tuning import rivals

NOISE = 0.03
MEDIAN, TAIL = 0.98, 0.95
"""Share of the best that is wanted, in the median and at the 5th percentile."""
SHARE = 0.25
"""Largest share of the grid's points that all trials together may be."""


@dataclass(frozen=True)
class Grid:
    """A machine, a load, the settings, the goal."""

    name: str
    machine: str
    workload: str
    knobs: tuple[str, ...]
    goal: Mapping[str, str] = field(default_factory=dict)
    assignments: tuple[str, ...] = ()

    def ready(self, seed: int, **plan: object) -> CheckedPlan:
        """The plan of a search over it."""
        options = SpaceOptions(knobs=self.knobs, only=True, model=False)
        more = {**self.goal, "assignments": self.assignments, **plan}
        return planned(self.machine, self.workload, None, options, seed=seed, **more)  # type: ignore[arg-type]

    @cached_property
    def truth(self) -> dict[Point, float]:
        """The value of every combination, simulated once and kept under `build/`."""
        ready = self.ready(1)
        schedule = SearchSchedule(ready.plan)
        text = ready.sources.target(self.machine).read()  # type: ignore[union-attr]
        key = json.dumps([text, ready.plan.text, prior.REQUESTS, build()])
        path = Path("build/bench-tune") / f"{self.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        points = list(schedule.space.every())
        if path.exists():
            return dict(zip(points, json.loads(path.read_text()), strict=True))
        metric = str(ready.plan.trials.metric)
        model = prior.Model(ready.plan, schedule.space, text, ready.sources, [metric])
        values = [float(one[0] or 0) for one in model.expect(points)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
        return dict(zip(points, values, strict=True))

    def quality(self, point: Point, plan: Plan) -> float:
        """The value of a point as a share of the best: 1 or less."""
        higher = plan.search is not None and plan.search.higher
        values = self.truth.values()
        return self.truth[point] / max(values) if higher else min(values) / self.truth[point]


GRIDS = (
    Grid("raid10", "six-sata-raid10", "randomio", ("scheduler=noop,deadline,cfq,anticipatory", "array.layout=n2,f2,o2",
         "queue_depth=1,4,16,31", "array.chunk=4KiB..1MiB")),
    Grid("raid5", "six-sata-raid5", "randomio", ("scheduler=noop,deadline,cfq", "stripe_cache_size=256,1024,4096",
         "queue_depth=1,4,16,31", "array.chunk=8KiB..1MiB")),
    Grid("tail", "one-sata", "randomio", ("scheduler=none,mq-deadline,bfq,kyber", "nr_requests=8..256",
         "queue_depth=1..32", "iosched/read_expire=16..2048"), {"minimise": "read.p99"}),
    Grid("nvme", "one-nvme", "mixed", ("scheduler=none,mq-deadline,bfq,kyber", "nr_requests=32,128,512",
         "queue_depth=8,64,512", "options.depth=1..64")),
    Grid("writes", "ten-sata-raid10", "randomio", ("scheduler=noop,deadline,cfq,anticipatory", "array.layout=n2,f2,o2",
         "queue_depth=1,2,4,8,16,31", "array.chunk=4KiB..1MiB"), {},
         ("options.size=64KiB", "options.write_fraction=0.6")),
    Grid("stream", "four-sata-md", "sdd-read", ("scheduler=noop,deadline,cfq", "max_sectors_kb=32,128,512",
         "array.chunk=4KiB..1MiB", "options.size=16KiB,128KiB,1MiB"), {"maximise": "bytes_per_s"}),
)  # fmt: skip


def within(grid: Grid) -> tuple[str, ...]:
    """The keys of a plan whose trials are at most `SHARE` of the grid: of what the defaults leave, half is for the
    search, half for the confirmation.
    """
    search = grid.ready(1).plan.search
    assert search is not None
    race = search.race * (search.finalists + 1)
    left = max(0, int(SHARE * len(grid.truth)) - search.trials - race - 2 * search.confirm)
    return f"search.trials={search.trials + left // 2}", f"search.confirm_most={search.confirm + left // 4}"


def guided(grid: Grid, seed: int, noise: float = NOISE, prior: Prior | None = None) -> tuple[float, int]:
    """Quality of the recommended settings, and all trials of the search."""
    plan = grid.ready(seed).plan
    schedule = SearchSchedule(plan)

    def measure(levels: Mapping[str, str], by: random.Random) -> float:
        return noisy(grid.truth[schedule.point(levels)], by, noise)

    found = searched(plan, measure, prior=prior)
    steps: list[Step] = found.steps
    chosen = found.winner if found.recommended and found.winner is not None else schedule.start
    return grid.quality(chosen, plan), len(steps)


def rival(grid: Grid, name: str, seed: int, trials: int) -> float:
    """Quality of another optimiser's recommendation."""
    plan = grid.ready(seed).plan
    schedule, by = SearchSchedule(plan), random.Random(f"{seed}/{grid.name}/{name}")
    sign = 1 if plan.search is not None and plan.search.higher else -1
    chosen = rivals.best_of(
        name, schedule.space, lambda point: sign * noisy(grid.truth[point], by, NOISE), trials, seed
    )
    return grid.quality(chosen, plan)


def table(seeds: int, others: list[str]) -> Iterator[str]:
    """A row for each landscape and search."""
    yield f"modelled machines: {seeds} searches each, noise {NOISE:.0%}; recommended settings as a share of the best"
    head = (
        f"{'landscape':9} {'points':>6} {'start':>6} {'search':8} {'median':>6} {'5 %':>6} {'trials':>6} {'share':>6}"
    )
    yield f"{head} {'goal':>4}"
    for whole in GRIDS:
        grid = replace(whole, assignments=(*whole.assignments, *within(whole)))
        grid.__dict__["truth"] = whole.truth
        plan = grid.ready(1).plan
        start = grid.quality(SearchSchedule(plan).start, plan)
        found = [guided(grid, seed) for seed in range(seeds)]
        trials = max(count for _, count in found)
        for name in ("guided", *others):
            shares = [share for share, _ in found] if name == "guided" else [
                rival(grid, name, seed, trials) for seed in range(seeds)]  # fmt: skip
            median, tail = float(np.median(shares)), float(np.quantile(shares, 0.05))
            part = trials / len(grid.truth)
            met = "met" if median >= MEDIAN and tail >= TAIL and part <= SHARE else "miss"
            yield (
                f"{grid.name:9} {len(grid.truth):6} {start:6.1%} {name:8} {median:6.1%} {tail:6.1%} {trials:6} "
                f"{part:6.1%} {met if name == 'guided' else '':>4}"
            ).rstrip()
