"""Ten modelled 'real' machines whose drives are up to 15 % off their data sheets: the model of the sheets as the prior.

The regret is that of the settings with the largest expected value, after the search and before race and confirmation.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from spindle import _core
from spindle.campaign import prior
from spindle.campaign.adaptive import SearchSchedule, Step
from spindle.campaign.execution import search_of
from spindle.search.choice import ranked
from spindle.search.space import Point
from tests.tune.landscapes import noisy
from tuning.grids import GRIDS, NOISE, Grid

SHEETS = Path(__file__).resolve().parent.parent.parent / "catalogue/drives"
OFF = 0.15
TRIALS = 15
WITHOUT = 40
GOAL = 0.03
MACHINES = 10
_OWN = ("seek_average", "seek_full", "seek_single", "track_switch", "write_settle", "command_overhead", "outer_rate",
        "inner_rate", "read_page", "program_page", "channel_rate")  # fmt: skip
"""Numbers of a data sheet that differ from the drive in use."""


class _Other(prior.Model):
    """The machine as it is: other numbers than its data sheets."""

    changes: Sequence[tuple[str, str, str]] = ()

    def _machine(self, text: str) -> _core.Machine:
        return _core.Machine.parse(text, self.plan.source, self.changes)


def off(text: str, seed: int) -> list[tuple[str, str, str]]:
    """Numbers of a machine's drives, each up to `OFF` away from its sheet."""
    by = random.Random(f"off {seed}")
    found = []
    for model in dict.fromkeys(drive["model"] for drive in tomllib.loads(text)["drive"]):
        sheet = tomllib.loads((SHEETS / f"{model}.toml").read_text())
        for key in _OWN:
            if key in sheet:
                found.append((model, key, _scaled(sheet[key], by.uniform(1 - OFF, 1 + OFF))))
    return found


def _scaled(text: str, factor: float) -> str:
    number, unit = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/ "), ""
    unit = text[len(number) :]
    return f"{float(number) * factor:.3f}{unit}"


def regret(grid: Grid, seed: int, trials: int, with_model: bool) -> float:
    """Regret on a machine that is off its sheets."""
    ready = grid.ready(seed, trials=trials)
    space = SearchSchedule(ready.plan).space
    text = ready.sources.target(grid.machine).read()  # type: ignore[union-attr]
    real = _Other(ready.plan, space, text, ready.sources, [str(ready.plan.trials.metric)])
    real.changes = off(text, seed)
    points = list(space.every())
    values = {point: float(one[0] or 0) for point, one in zip(points, real.expect(points), strict=True)}
    plan = ready.plan
    if with_model:
        assert plan.search is not None
        plan = replace(plan, search=replace(plan.search, prior=grid.machine))
    screened = {"points": list(grid.truth), "values": [[value or None] for value in grid.truth.values()]}
    schedule = search_of(plan, ready.sources, screened if with_model else None)
    chosen = _chosen(schedule, values, random.Random(f"models {seed}"))
    return 1 - (
        values[chosen] / max(values.values()) if schedule.goal.higher else min(values.values()) / values[chosen]
    )


def _chosen(schedule: SearchSchedule, values: Mapping[Point, float], noise: random.Random) -> Point:
    steps: list[Step] = []
    while len(steps) < schedule.search.trials:
        steps += [
            replace(one, value=noisy(values[schedule.point(one.levels)], noise, NOISE)) for one in schedule.next(steps)
        ]
    found = ranked(schedule.space, schedule.tried(steps), schedule.goal, schedule.start, prior=schedule.prior)
    return found[0][0] if found else schedule.start


def table(machines: int) -> Iterator[str]:
    """A row for each machine."""
    yield f"data sheets off by up to {OFF:.0%}, noise {NOISE:.0%}: true regret; with the model {TRIALS} trials"
    yield f"{'machine':12} {'landscape':9} {'with model':>10} {'without':>8} {f'without, {WITHOUT}':>12}"
    rows = []
    for seed in range(machines):
        grid = GRIDS[seed % len(GRIDS)]
        row = [regret(grid, seed, TRIALS, True), regret(grid, seed, TRIALS, False), regret(grid, seed, WITHOUT, False)]
        rows.append(row)
        yield f"{grid.machine:12.12} {grid.name:9} {row[0]:10.1%} {row[1]:8.1%} {row[2]:12.1%}"
    mean, worst = np.mean(rows, axis=0), np.max(rows, axis=0)
    yield f"{'mean':22} {mean[0]:10.1%} {mean[1]:8.1%} {mean[2]:12.1%}"
    yield f"{'largest':22} {worst[0]:10.1%} {worst[1]:8.1%} {worst[2]:12.1%}   goal {GOAL:.0%} with the model"
