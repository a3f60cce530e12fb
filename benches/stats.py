"""Checks the promises of the statistics: false positives, and the power to detect planted differences.

Each row simulates campaigns or runs with noise whose truth is known, and asks the statistics as `spindle compare` and
`spindle check` do. A rate is printed beside its goal and its own 95 % interval (Clopper and Pearson).

    python benches/stats.py [--repetitions 2000] [--only WORDS] [--json]

Noise of a machine: one process over the whole campaign, second by second: a slow wander (AR(1), a correlation time of
five minutes), a fast one (two seconds), and white noise, a third of the variance of a trial's mean each. Exits with 1
if a goal is missed beyond chance.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import stdtr
from scipy.stats import binomtest

from spindle.campaign.cells import Cell
from spindle.campaign.order import Schedule
from spindle.campaign.plan import Plan, Settings, Trials
from spindle.stats.arrangement import ENOUGH_BLOCKS, FEWEST_BLOCKS, doubt, resemblance
from spindle.stats.change import changes, drift, warm_up
from spindle.stats.compare import compare, corrected
from spindle.stats.curves import band
from spindle.stats.difference import examine
from spindle.stats.effects import effects
from spindle.stats.estimate import interval
from spindle.stats.gate import gate
from spindle.stats.power import trials_needed
from spindle.stats.ranking import rank
from spindle.stats.series import of_run
from spindle.stats.strata import strata
from spindle.stats.trial import Side, Trial

Numbers = NDArray[np.float64]
Random = np.random.Generator

SECONDS = 60
"""Length of a trial."""
NOISE = 0.03
PLANTED = 0.05


@dataclass(frozen=True)
class Row:
    """A rate and what it should be."""

    group: str
    what: str
    rate: float
    low: float
    high: float
    repetitions: int
    goal: float | None
    at_least: bool = False
    """True if the goal is a lower bound."""

    @property
    def kept(self) -> bool:
        """True if the goal is met, up to chance."""
        if self.goal is None:
            return True
        return self.high >= self.goal if self.at_least else self.low <= self.goal


def wander(n: int, rho: float, draw: Random) -> Numbers:
    """AR(1), standard deviation 1."""
    shocks = draw.standard_normal(n) * math.sqrt(1 - rho**2)
    shocks[0] /= math.sqrt(1 - rho**2)
    found: Numbers = lfilter([1.0], [1.0, -rho], shocks)
    return found


def machine(trials: int, draw: Random) -> Numbers:
    """Means of successive trials on a machine that wanders; standard deviation 1."""
    slow, fast = (
        wander(trials * SECONDS, math.exp(-1 / tau), draw).reshape(trials, SECONDS).mean(axis=1) for tau in (300, 2)
    )
    parts = (slow / 0.95, fast / 0.25, draw.standard_normal(trials))
    found: Numbers = sum(parts, np.zeros(trials)) / math.sqrt(3)
    return found


def white(trials: int, draw: Random) -> Numbers:
    """Independent, normal."""
    return draw.standard_normal(trials)


def correlated(rho: float) -> Callable[[int, Random], Numbers]:
    """AR(1) from trial to trial."""
    return lambda trials, draw: wander(trials, rho, draw)


def drifting(trials: int, draw: Random) -> Numbers:
    """A steady loss of speed over the campaign, five times the noise, and a random walk."""
    walk = np.cumsum(draw.standard_normal(trials)) / 3
    found: Numbers = draw.standard_normal(trials) + np.linspace(0, 5, trials) + walk
    return found


def heavy(trials: int, draw: Random) -> Numbers:
    """Heavy tails: Student's t with 3 degrees of freedom, standard deviation 1."""
    found: Numbers = draw.standard_t(3, trials) / math.sqrt(3)
    return found


def outliers(trials: int, draw: Random) -> Numbers:
    """One trial in twenty is seven standard deviations slow."""
    found: Numbers = draw.standard_normal(trials) - 7.0 * (draw.random(trials) < 0.05)
    return found


def daily(trials: int, draw: Random) -> Numbers:
    """A daily cycle, seven times the noise from peak to peak; trials of an hour."""
    hours = np.arange(trials) + draw.uniform(0, 24)
    found: Numbers = 3.5 * np.sin(2 * np.pi * hours / 24) + draw.standard_normal(trials)
    return found


def walk(trials: int, draw: Random) -> Numbers:
    """A random walk, a third of the noise a trial."""
    found: Numbers = draw.standard_normal(trials) + np.cumsum(draw.standard_normal(trials)) / 3
    return found


Drift = Callable[[Numbers, Numbers], Numbers]
"""Drift at places in time (a row, from 0 to 1), with three random numbers for each campaign (its row): by 1 or so from
the least to the most."""


def cycles(count: float) -> Drift:
    """Waves of random phase."""
    return lambda at, luck: np.sin(2 * np.pi * (count * at + luck[:, :1])) / 2


def sawtooth(at: Numbers, luck: Numbers) -> Numbers:
    """One to three teeth."""
    found: Numbers = ((1 + 2 * luck[:, 1:2]) * at + luck[:, :1]) % 1
    return found


def on_and_off(at: Numbers, luck: Numbers) -> Numbers:
    """Three steps at random times."""
    found: Numbers = (at[:, :, None] > luck[:, None, :]).sum(axis=2) % 2.0
    return found


DRIFTS: dict[str, Drift] = {
    "linear": lambda at, luck: at + 0 * luck[:, :1],
    "quadratic": lambda at, luck: 4 * (at - 0.5) ** 2 + 0 * luck[:, :1],
    "step": lambda at, luck: (at > luck[:, :1]).astype(np.float64),
    "decay": lambda at, luck: np.exp(-4 * at) + 0 * luck[:, :1],
    "one cycle": cycles(1),
    "two cycles": cycles(2),
    "three cycles": cycles(3),
    "sawtooth": sawtooth,
    "warm-up": lambda at, luck: np.exp(-at * 10 ** (2 * luck[:, :1])),
    "three steps": on_and_off,
}
"""Over the whole campaign. A warm-up takes from all of the campaign to a hundredth of it."""


def drifts_of(drift: Drift, trials: int, campaigns: int, draw: Random) -> Numbers:
    """A row for each campaign."""
    return drift(np.linspace(0, 1, trials)[None], draw.random((campaigns, 3)))


def drifting_by(kind: str, size: float) -> Callable[[int, Random], Numbers]:
    """White noise, and a drift so many times as large."""
    return lambda trials, draw: draw.standard_normal(trials) + size * drifts_of(DRIFTS[kind], trials, 1, draw)[0]


SHAPES: dict[str, Callable[[int, Random], Numbers]] = {
    "a machine's": machine,
    "white": white,
    "AR(1) 0.5": correlated(0.5),
    "AR(1) 0.9": correlated(0.9),
    "drift and random walk": drifting,
    "heavy tails": heavy,
    "outliers": outliers,
}


BEGUN = datetime(2026, 1, 1)


@cache
def started(hour: int) -> str:
    """Start of the trial of that hour."""
    return f"{(BEGUN + timedelta(hours=hour)).isoformat()}Z"


def orders(alternatives: int, blocks: int, draw: Random) -> list[list[int]]:
    """The order within each block, as `spindle campaign` draws it."""
    plan = Plan(name="", source="", text="", seed=int(draw.integers(1 << 31)), trials=Trials(count=blocks))
    cells = [Cell(number, {"setting": str(number)}, Settings()) for number in range(alternatives)]
    trials = next(Schedule(plan, cells).batches(lambda cell, done: []))
    return [
        [trial.cell.number for trial in trials[at : at + alternatives]] for at in range(0, len(trials), alternatives)
    ]


def campaign(
    factors: Sequence[float],
    blocks: int,
    noise: Callable[[int, Random], Numbers],
    draw: Random,
    size: float = NOISE,
    loud: Mapping[int, float] | None = None,
) -> list[Side]:
    """Blocks of alternatives that are `factors` times as fast; `loud`: alternatives that are so many times as noisy."""
    count = len(factors)
    order = orders(count, blocks, draw)
    own = (size * noise(blocks * count, draw)).reshape(blocks, count)
    for block, chosen in enumerate(order):
        for place, at in enumerate(chosen):
            own[block, place] = own[block, place] * (loud or {}).get(at, 1.0) + math.log(factors[at])
    return sides_of(own, order)


def sides_of(speed: Numbers, order: Sequence[Sequence[int]]) -> list[Side]:
    """Trials of such logarithms of speed, by block and place; `order`: the alternative at each place."""
    count = speed.shape[1]
    trials: list[list[Trial]] = [[] for _ in range(count)]
    for block, chosen in enumerate(order):
        for place, at in enumerate(chosen):
            trials[at].append(
                Trial(
                    id=f"{block}-{place}",
                    values={"iops": 1000.0 * math.exp(speed[block, place])},
                    campaign="c",
                    block=block,
                    cell={"setting": str(at)},
                    order=(started(block * count + place), 0),
                )
            )
    return [Side(chr(65 + at), part) for at, part in enumerate(trials)]


@cache
def many_orders(alternatives: int, blocks: int) -> NDArray[np.intp]:
    """Two thousand, as campaigns draw them: by campaign, block and place."""
    return np.asarray([orders(alternatives, blocks, np.random.default_rng(seed)) for seed in range(2000)])


CHECKED = 20
"""Campaigns of each row of thousands that are asked one by one, too."""


def significant_at_once(speed: Numbers, order: NDArray[np.intp]) -> NDArray[np.bool_]:
    """`significant` for many campaigns (logarithms of speed by campaign, block and place) in one go. The first of them
    are compared with `significant`, so that this stays the rule that is used."""
    campaigns, blocks, count = speed.shape
    value, place = np.empty_like(speed), np.empty_like(order)
    np.put_along_axis(value, order, speed, axis=2)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(count), order.shape), axis=2)
    least = np.ones(campaigns)
    for other in range(1, count) if blocks >= FEWEST_BLOCKS else ():
        difference = value[:, :, other] - value[:, :, 0]
        gap = np.abs(difference.mean(axis=1))
        variance = difference.var(axis=1, ddof=1) / blocks
        p = stdtr(blocks - 1, -gap / np.sqrt(variance))
        first = (place[:, :, 0] < place[:, :, other]).sum(axis=1)
        balanced = (blocks >= ENOUGH_BLOCKS) & (np.minimum(first, blocks - first) >= blocks / 4)
        parts = value[:, :, [0, other]].var(axis=1, ddof=1) / blocks
        total = parts.sum(axis=1)
        freedom = total**2 * (blocks - 1) / (parts**2).sum(axis=1)
        both = doubt(blocks, count) * np.maximum(p, stdtr(freedom, -gap / np.sqrt(total)))
        widened = np.asarray([resemblance(each) for each in difference]) if blocks >= ENOUGH_BLOCKS else 1.0
        least = np.minimum(least, 2 * np.where(balanced, stdtr(blocks - 1, -gap / np.sqrt(widened * variance)), both))
    found: NDArray[np.bool_] = least * (count - 1) < 0.05
    for at in range(min(CHECKED, campaigns)):
        assert significant(sides_of(speed[at], order[at].tolist())) == found[at], "differs from compare"
    return found


def in_blocks(
    alternatives: int, blocks: int, draw: Random, campaigns: int, drift: tuple[Drift, float] | None, ahead: float = 0.0
) -> NDArray[np.bool_]:
    """True for each campaign that claims something under white noise. `drift`: which, in standard deviations; `ahead`:
    the last alternative, in standard deviations."""
    speed = draw.standard_normal((campaigns, blocks * alternatives))
    if drift is not None:
        speed += drift[1] * drifts_of(drift[0], blocks * alternatives, campaigns, draw)
    order = order_of(alternatives, blocks, campaigns)
    speed = speed.reshape(order.shape) + ahead * (order == alternatives - 1)
    return significant_at_once(0.005 * speed, order)


def alike(blocks: int, noise: Callable[[int, Random], Numbers], draw: Random, campaigns: int) -> NDArray[np.bool_]:
    """True for each campaign of two alike alternatives that claims something."""
    order = order_of(2, blocks, campaigns)
    speed = np.stack([noise(2 * blocks, draw) for _ in range(campaigns)])
    return significant_at_once(NOISE * speed.reshape(order.shape), order)


def order_of(alternatives: int, blocks: int, campaigns: int) -> NDArray[np.intp]:
    """Orders for this many campaigns."""
    known = many_orders(alternatives, blocks)
    return known[np.arange(campaigns) % len(known)]


def in_order(pattern: str, noise: Callable[[int, Random], Numbers], draw: Random, b: float = 1.0) -> list[Side]:
    """`AABB`: two trials of A, then two of B, an hour each; B is `b` times as fast."""
    speed = np.exp(NOISE * noise(len(pattern), draw))
    sides: dict[str, list[Trial]] = {"A": [], "B": []}
    for hour, (label, value) in enumerate(zip(pattern, speed, strict=True)):
        number = 1000.0 * float(value) * (b if label == "B" else 1.0)
        sides[label].append(Trial(id="", values={"iops": number}, order=(started(hour), 0)))
    return [Side(label, trials) for label, trials in sides.items()]


def significant(sides: Sequence[Side]) -> bool:
    """True if any alternative differs significantly from the first, as `compare` finds it."""
    known = strata(sides)
    tested = [examine("iops", sides[0], other, known, of_run) for other in sides[1:]]
    return any(found.significant for found in corrected(tested, 0.95))


class Bench:
    """Counts how often something happens."""

    def __init__(self, repetitions: int, only: str = "") -> None:
        self.repetitions = repetitions
        self.only = only

    def row(
        self,
        group: str,
        what: str,
        happens: Callable[[Random], bool],
        goal: float | None = 0.05,
        *,
        at_least: bool = False,
        share: float = 1.0,
    ) -> Row:
        """`share` of the repetitions, where one takes long."""
        if self.only not in f"{group} {what}":
            return Row(group, what, math.nan, 0.0, 1.0, 0, goal, at_least)
        count = max(200, int(self.repetitions * share))
        hits = sum(happens(np.random.default_rng([crc32(f"{group} {what}".encode()), seed])) for seed in range(count))
        return self._made(group, what, hits, count, goal, at_least=at_least)

    def batch(
        self,
        group: str,
        what: str,
        happen: Callable[[Random, int], NDArray[np.bool_]],
        goal: float | None = 0.05,
        *,
        at_least: bool = False,
    ) -> Row:
        """All repetitions in one go."""
        if self.only not in f"{group} {what}":
            return Row(group, what, math.nan, 0.0, 1.0, 0, goal, at_least)
        draw = np.random.default_rng(crc32(f"{group} {what}".encode()))
        hits = int(happen(draw, self.repetitions).sum())
        return self._made(group, what, hits, self.repetitions, goal, at_least=at_least)

    @staticmethod
    def _made(group: str, what: str, hits: int, count: int, goal: float | None, *, at_least: bool) -> Row:
        ends = binomtest(hits, count).proportion_ci(method="exact")
        return Row(group, what, hits / count, float(ends.low), float(ends.high), count, goal, at_least)


def rows(bench: Bench) -> Iterator[Row]:
    """Every claim that is made."""
    yield from headline(bench)
    yield from campaigns(bench)
    yield from drifts_in_blocks(bench)
    yield from turns(bench)
    yield from single_runs(bench)
    yield from planning(bench)
    yield from many(bench)
    yield from gates(bench)
    yield from sessions(bench)
    yield from bands(bench)
    yield from histories(bench)


def headline(bench: Bench) -> Iterator[Row]:
    yield bench.row(
        "headline",
        "A/A campaigns, 6 blocks, a machine's noise: a difference is claimed",
        lambda draw: significant(campaign([1.0, 1.0], 6, machine, draw)),
        0.07,
    )
    yield bench.row(
        "headline",
        "5 % planted under 3 % noise, the trials asked for after a pilot of 5 blocks: found",
        lambda draw: found_as_asked(machine, draw),
        0.90,
        at_least=True,
    )


def campaigns(bench: Bench) -> Iterator[Row]:
    for name, noise in SHAPES.items():
        for blocks in (3, 6, 12):
            yield bench.batch(
                "A/A, two alternatives in random blocks",
                f"{blocks:2} blocks, noise {name}",
                lambda draw, many, noise=noise, blocks=blocks: alike(blocks, noise, draw, many),
            )

    for name in ("a machine's", "white"):
        yield bench.row(
            "A/A, two alternatives in random blocks",
            f"as many blocks (3 to 20) as bring both means within 2 %, noise {name}",
            lambda draw, name=name: significant(until_narrow(SHAPES[name], draw)),
            0.07,
            share=0.5,
        )


def until_narrow(noise: Callable[[int, Random], Numbers], draw: Random) -> list[Side]:
    """A campaign with `within`: it looks at the widths after each block, and stops."""
    whole = campaign([1.0, 1.0], 20, noise, draw)
    for blocks in range(3, 20):
        sides = [Side(side.label, side.trials[:blocks]) for side in whole]
        means = [interval([trial.values["iops"] for trial in side.trials]) for side in sides]
        if all(mean.relative <= 0.02 for mean in means):
            return sides
    return whole


def drifts_in_blocks(bench: Bench) -> Iterator[Row]:
    """Few blocks under a drift: 20 times the noise, and twice as large as it; and what they still find."""
    for count, numbers in ((2, (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)), (3, (3, 4, 5, 6, 7, 8)), (4, (3, 4, 5, 6, 7, 8))):
        for blocks in numbers:
            for kind in DRIFTS:
                for size in (20.0, 2.0):
                    yield bench.batch(
                        f"A/A under a drift, {count} alternatives",
                        f"{blocks} blocks, {kind}, {size:g} times the noise",
                        lambda draw, many, count=count, blocks=blocks, drift=(DRIFTS[kind], size): in_blocks(
                            count, blocks, draw, many, drift
                        ),
                        0.07,
                    )
    for count, numbers in ((2, (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 18)), (3, (4, 5, 6, 8, 12))):
        for blocks in numbers:
            for many in (4, 5, 6):
                yield bench.batch(
                    f"A/A under a cycle of a few trials, {count} alternatives",
                    f"{blocks} blocks, {many} cycles, 20 times the noise",
                    lambda draw, campaigns, count=count, blocks=blocks, many=many: in_blocks(
                        count, blocks, draw, campaigns, (cycles(many), 20.0)
                    ),
                    0.07,
                )
    for count in (2, 3):
        for blocks in (3, 4, 6):
            for planted in (0.1, 0.2, 0.5):
                yield bench.batch(
                    f"planted under 2 % noise in few blocks, {count} alternatives: found",
                    f"{blocks} blocks, {100 * planted:g} %",
                    lambda draw, many, count=count, blocks=blocks, planted=planted: in_blocks(
                        count, blocks, draw, many, None, math.log1p(planted) / 0.02
                    ),
                    0.95 if planted == 0.5 and count == 2 else None,
                    at_least=True,
                )


PATTERNS = {
    "5 A, then 5 B": "A" * 5 + "B" * 5,
    "20 A, then 20 B": "A" * 20 + "B" * 20,
    "AABB": "AABB",
    "ABBA": "ABBA",
    "ABAB": "ABAB",
    "5 A, 5 B, twice": ("A" * 5 + "B" * 5) * 2,
    "10 A, 10 B, three times": ("A" * 10 + "B" * 10) * 3,
    "10 A, B, 10 A, B": ("A" * 10 + "B") * 2,
    "AABB, five times": "AABB" * 5,
    "AB, ten times": "AB" * 10,
}
"""Orders of trials without blocks: tags, single runs, imported results, campaigns against each other."""
IN_TIME: dict[str, Callable[[int, Random], Numbers]] = {
    **{f"AR(1) {rho}": correlated(rho) for rho in (0.0, 0.3, 0.5, 0.8)},
    "random walk": walk,
    "daily cycle": daily,
    "drift": drifting_by("linear", 10.0),
}


def turns(bench: Bench) -> Iterator[Row]:
    """Without blocks only turns allow a claim."""
    for pattern, order in PATTERNS.items():
        for name, noise in IN_TIME.items():
            yield bench.row(
                "A/A without blocks",
                f"{pattern}; {name}",
                lambda draw, order=order, noise=noise: significant(in_order(order, noise, draw)),
                0.07,
                share=1.0 if len(order) < 10 else 0.3,
            )
    yield bench.row(
        "A/A without blocks",
        "two campaigns of 10 trials one after the other; AR(1) 0.5",
        lambda draw: significant(one_after_the_other(draw)),
        0.07,
        share=0.3,
    )
    for pattern, goal in (("AB, ten times", 0.9), ("AABB, five times", None), ("5 A, 5 B, twice", None)):
        yield bench.row(
            "5 % planted under 3 % noise without blocks: found",
            pattern,
            lambda draw, pattern=pattern: significant(in_order(PATTERNS[pattern], white, draw, 1 + PLANTED)),
            goal,
            at_least=True,
            share=0.3,
        )


def one_after_the_other(draw: Random) -> list[Side]:
    """Campaigns of one alternative whose blocks have the same numbers."""
    sides = in_order("A" * 10 + "B" * 10, correlated(0.5), draw)
    return [
        Side(side.label, [replace(trial, campaign=side.label, block=at) for at, trial in enumerate(side.trials)])
        for side in sides
    ]


def single_runs(bench: Bench) -> Iterator[Row]:
    """The interval of one run's mean from its own seconds."""
    for rho in (0.0, 0.5, 0.8, 0.9):
        for seconds in (30, 60, 300):
            known = seconds >= 30 / (1 - rho)
            yield bench.row(
                "one run: the 95 % interval from its seconds misses the true mean",
                f"{seconds:3} s, correlation from second to second {rho}",
                lambda draw, seconds=seconds, rho=rho: misses(1 + 0.1 * wander(seconds, rho, draw)),
                0.07 if known else None,
                share=0.5,
            )


def misses(series: Numbers) -> bool:
    found = interval(series.tolist(), series=True)
    return not found.low <= 1 <= found.high


def found_as_asked(noise: Callable[[int, Random], Numbers], draw: Random, pilot: int = 5) -> bool:
    """A pilot asks for trials; as many are made anew."""
    factors = [1.0, 1 + PLANTED]
    asked = compare(campaign(factors, pilot, noise, draw), ["iops"], apart=PLANTED).findings[0].planning.needed
    assert asked is not None
    finding = compare(campaign(factors, asked, noise, draw), ["iops"]).findings[0]
    return finding.outcome == "better"


def planning(bench: Bench) -> Iterator[Row]:
    group = "5 % planted under 3 % noise: found with the trials asked for"
    known = trials_needed(PLANTED, NOISE, blocks=True)
    assert known is not None
    yield bench.row(
        group,
        f"the noise is known: {known} blocks",
        lambda draw: significant(campaign([1.0, 1 + PLANTED], known, white, draw)),
        0.9,
        at_least=True,
    )
    for name, noise in SHAPES.items():
        yield bench.row(
            group,
            f"a pilot of 5 blocks, noise {name}",
            lambda draw, noise=noise: found_as_asked(noise, draw),
            0.9 if name in ("a machine's", "white", "AR(1) 0.5", "AR(1) 0.9") else None,
            at_least=True,
            share=0.5,
        )
    two = trials_needed(PLANTED, NOISE, comparisons=7, blocks=True)
    assert two is not None
    yield bench.row(
        group,
        f"one of seven comparisons, the noise is known: {two} blocks",
        lambda draw: (
            compare(campaign([1.0] * 7 + [1 + PLANTED], two, white, draw), ["iops"]).findings[-1].difference.significant
        ),
        0.9,
        at_least=True,
        share=0.5,
    )


def many(bench: Bench) -> Iterator[Row]:
    for name in ("a machine's", "heavy tails"):
        yield bench.row(
            "eight alternatives, 5 blocks",
            f"A/A: any differs significantly from the first, noise {name}",
            lambda draw, name=name: significant(campaign([1.0] * 8, 5, SHAPES[name], draw)),
            share=0.5,
        )
    for blocks in (2, 3, 5):
        yield bench.row(
            "eight alternatives: the true best (by 2 %) is not among those that may be",
            f"{blocks} blocks, a machine's noise",
            lambda draw, blocks=blocks: best_missed(campaign([*[1.0] * 7, 1.02], blocks, machine, draw)),
            share=0.5,
        )
    for whose, loud in (("the best", [7]), ("another", [0]), ("all but the best", list(range(7)))):
        for times in (5, 20):
            for blocks in (3, 5):
                yield bench.row(
                    "eight alternatives: the true best (by 2 %) is not among those that may be",
                    f"{blocks} blocks, {whose} {times} times as noisy",
                    lambda draw, blocks=blocks, loud=loud, times=times: best_missed(
                        campaign([*[1.0] * 7, 1.02], blocks, white, draw, 0.01, dict.fromkeys(loud, float(times)))
                    ),
                    0.07,
                    share=0.3,
                )
    for blocks, loud in ((3, {2: 20.0}), (5, {2: 20.0}), (5, {})):
        noisy = "the third is 20 times as noisy" if loud else "all equally noisy"
        yield bench.row(
            "three alternatives, the second 10 % ahead of the first under 1 % noise: found significantly worse",
            f"{blocks} blocks, {noisy}",
            lambda draw, blocks=blocks, loud=loud: first_is_out(blocks, loud, draw),
            0.9,
            at_least=True,
            share=0.3,
        )
    for cells, (many, few) in (("3 x 2", (3, 2)), ("2 x 2", (2, 2)), ("2 x 1", (2, 1)), ("3 x 1", (3, 1))):
        for blocks in (3, 6):
            for times in (1, 5, 20):
                yield bench.row(
                    "effects of factors, none does anything: any is claimed",
                    f"{cells} levels, {blocks} blocks, "
                    + (f"one cell {times} times as noisy" if times > 1 else "all equally noisy"),
                    lambda draw, many=many, few=few, blocks=blocks, times=times: effect_claimed(
                        factorial(many, few, blocks, white, draw, float(times))
                    ),
                    0.07,
                    share=0.3,
                )
            for kind in ("linear", "quadratic", "step", "two cycles", "three cycles"):
                yield bench.row(
                    "effects of factors, none does anything: any is claimed",
                    f"{cells} levels, {blocks} blocks, {kind} drift, 20 times the noise",
                    lambda draw, many=many, few=few, blocks=blocks, kind=kind: effect_claimed(
                        factorial(many, few, blocks, drifting_by(kind, 20.0), draw)
                    ),
                    0.07,
                    share=0.3,
                )
    yield bench.row(
        "effects of factors: one of 10 % under 3 % noise is found",
        "3 x 2 levels, 5 blocks",
        lambda draw: effect_claimed(factorial(3, 2, 5, white, draw, gain=1.1)),
        0.9,
        at_least=True,
        share=0.3,
    )


def first_is_out(blocks: int, loud: Mapping[int, float], draw: Random) -> bool:
    sides = campaign([1.0, 1.1, 1.0], blocks, white, draw, 0.01, loud)
    ranking = rank("iops", sides, strata(sides))
    return ranking is not None and "A" not in ranking.best


def effect_claimed(trials: Sequence[Trial]) -> bool:
    found = effects("iops", trials)
    return found is not None and any(effect.significant for effect in found.effects)


def best_missed(sides: Sequence[Side]) -> bool:
    ranking = rank("iops", sides, strata(sides))
    return ranking is not None and sides[-1].label not in ranking.best


def factorial(
    many: int,
    few: int,
    blocks: int,
    noise: Callable[[int, Random], Numbers],
    draw: Random,
    loud: float = 1.0,
    gain: float = 1.0,
) -> list[Trial]:
    """Two factors; the first cell is `loud` times as noisy, the last level of `b` is `gain` times as fast."""
    sides = campaign(
        [gain if at % few == few - 1 else 1.0 for at in range(many * few)], blocks, noise, draw, loud={0: loud}
    )
    return [
        replace(trial, cell={"a": str(at // few), "b": str(at % few)})
        for at, side in enumerate(sides)
        for trial in side.trials
    ]


def gates(bench: Bench) -> Iterator[Row]:
    def outcome(factor: float, n: int, threshold: float, draw: Random) -> str:
        return gate(*in_order("AB" * n, white, draw, factor), ["iops"], threshold=threshold).outcome

    group = "check, ten trials each in turns under 3 % noise"
    yield bench.row(group, "no change, threshold 0 %: fails", lambda d: outcome(1.0, 10, 0.0, d) == "lost", share=0.5)
    yield bench.row(
        group, "loss of 5 %, threshold 5 %: fails", lambda d: outcome(0.95, 10, 0.05, d) == "lost", share=0.5
    )
    yield bench.row(
        group, "loss of 10 %, threshold 5 %: fails", lambda d: outcome(0.9, 10, 0.05, d) == "lost", 0.9, at_least=True,
        share=0.5,
    )  # fmt: skip
    yield bench.row(
        group, "no change, threshold 5 %: a loss beyond it is excluded", lambda d: outcome(1.0, 10, 0.05, d) == "fine",
        0.9, at_least=True, share=0.5,
    )  # fmt: skip


def sessions(bench: Bench) -> Iterator[Row]:
    """A new night against earlier ones, whose speeds resemble their neighbours or drift."""

    def outcome(noise: Callable[[int, Random], Numbers], n: int, threshold: float, factor: float, draw: Random) -> str:
        speed = np.exp(NOISE * noise(n + 1, draw))
        nights = [
            Trial(id="", values={"iops": 1000.0 * float(value)}, order=(started(24 * night), 0))
            for night, value in enumerate([*speed[:-1], factor * speed[-1]])
        ]
        return gate(Side("A", nights[:-1]), Side("B", nights[-1:]), ["iops"], threshold=threshold).outcome

    walks: dict[str, Callable[[int, Random], Numbers]] = {
        "white": white,
        "AR(1) 0.5": correlated(0.5),
        "AR(1) 0.9": correlated(0.9),
        "random walk": lambda trials, draw: np.cumsum(draw.standard_normal(trials)),
        "drift, five times the noise": drifting_by("linear", -5.0),
        "drift, twenty times the noise": drifting_by("linear", -20.0),
        "heavy tails": heavy,
    }
    for n in (5, 10, 20):
        for name, noise in walks.items():
            yield bench.row(
                "check, a new night against earlier ones, no change, threshold 0 %: fails",
                f"{n} nights, {name}",
                lambda d, noise=noise, n=n: outcome(noise, n, 0.0, 1.0, d) == "lost",
                0.07,
                share=0.5,
            )
    for n, loss in ((5, 0.3), (10, 0.2), (20, 0.2)):
        yield bench.row(
            "check, a new night against earlier ones under 3 % noise, threshold 5 %: a loss is found",
            f"{n} nights, loss of {100 * loss:g} %",
            lambda d, n=n, loss=loss: outcome(white, n, 0.05, 1 - loss, d) == "lost",
            0.9,
            at_least=True,
            share=0.5,
        )


def bands(bench: Bench) -> Iterator[Row]:
    """Curves of 24 percentiles: noise of the whole run, and more of it towards the tail."""
    for n, paired in ((3, False), (5, False), (10, False), (4, True), (6, True), (10, True)):
        yield bench.row(
            "percentiles: the 95 % band misses the true curve anywhere",
            f"{n:2} {'blocks' if paired else 'runs each'}",
            lambda draw, n=n, paired=paired: band_misses(n, paired, draw),
            0.07,
            share=0.4,
        )


def band_misses(n: int, paired: bool, draw: Random) -> bool:
    def curves() -> Numbers:
        whole = draw.standard_normal((n, 1))
        tail = np.cumsum(draw.standard_normal((n, 24)), axis=1) / 5
        found: Numbers = NOISE * (whole + tail)
        return found

    a, b = curves(), curves()
    half = band([b - a] if paired else [a, b], 0.95, 1000)
    return bool((np.abs(b.mean(axis=0) - a.mean(axis=0)) > half).any())


def histories(bench: Bench) -> Iterator[Row]:
    group = "a steady series is not called steady"
    for rho in (0.0, 0.5, 0.8):
        for seconds in (60, 300):
            where = f"{seconds:3} s, correlation {rho}"

            def series(draw: Random, rho: float = rho, seconds: int = seconds) -> Numbers:
                return 1000 * (1 + NOISE * wander(seconds, rho, draw))

            yield bench.row(group, f"change of level, {where}", lambda d, s=series: bool(changes(s(d))), share=0.2)
            yield bench.row(group, f"warm-up, {where}", lambda d, s=series: warm_up(s(d)).intervals > 0, share=0.2)
            yield bench.row(
                group, f"drift (reported below p = 0.01), {where}", lambda d, s=series: drifts(s(d)), share=0.2
            )

    def stepped(draw: Random) -> bool:
        found = changes(1000 * (1 + NOISE * (wander(120, 0.3, draw) + 5 * (np.arange(120) >= 70))))
        return any(abs(each.at - 70) <= 3 for each in found)

    def cold(draw: Random) -> bool:
        speed = 1000 * (1 + NOISE * wander(120, 0.3, draw))
        speed[:20] *= 0.7
        return 20 <= warm_up(speed).intervals <= 60

    def sloping(draw: Random) -> bool:
        return drifts(1000 * (1 + NOISE * (wander(120, 0.3, draw) + np.linspace(0, 4, 120))))

    group = "what was planted in 120 s with correlation 0.3 is found"
    yield bench.row(group, "a step of five standard deviations, within 3 s", stepped, 0.9, at_least=True, share=0.2)
    yield bench.row(group, "a warm-up of 20 s at 70 %: all of it is left out", cold, 0.9, at_least=True, share=0.2)
    yield bench.row(group, "a drift by four standard deviations", sloping, 0.9, at_least=True, share=0.2)


def drifts(series: Numbers) -> bool:
    found = drift(series.tolist())
    return found is not None and found.p < 0.01


def line(row: Row) -> str:
    goal = "" if row.goal is None else f"{'>=' if row.at_least else '<='} {100 * row.goal:g} %"
    missed = "" if row.kept else "  MISSED"
    between = f"{100 * row.low:.1f}-{100 * row.high:.1f}"
    return f"  {row.what:<82} {100 * row.rate:6.1f} %  {between:>11}  {goal:>8}{missed}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--repetitions", type=int, default=2000)
    options.add_argument("--only", default="", metavar="WORDS", help="rows whose text has these words")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    begun, made, group = time.perf_counter(), list[Row](), ""
    for row in rows(Bench(asked.repetitions, asked.only)):
        if not row.repetitions:
            continue
        made.append(row)
        if asked.json:
            continue
        if row.group != group:
            group = row.group
            print(f"\n{group}")
        print(line(row), flush=True)
    if asked.json:
        print(json.dumps([asdict(row) | {"kept": row.kept} for row in made], indent=2))
    else:
        print(f"\n{sum(row.repetitions for row in made)} simulations in {time.perf_counter() - begun:.0f} s")
    return 0 if all(row.kept for row in made) else 1


if __name__ == "__main__":
    sys.exit(main())
