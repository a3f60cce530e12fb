"""Do the statistics keep their word? How often alike alternatives are told apart, and planted differences found.

Each row simulates campaigns or runs with noise whose truth is known, and asks the statistics as `spindle compare` and
`spindle check` do. A rate stands beside its goal and its own 95 % interval (Clopper and Pearson).

    python benches/stats.py [--repetitions 1000] [--json]

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import binomtest

from spindle.stats import interval
from spindle.stats.change import changes, drift, warm_up
from spindle.stats.compare import compare, strata
from spindle.stats.curves import band
from spindle.stats.effects import effects
from spindle.stats.gate import gate
from spindle.stats.power import trials_needed
from spindle.stats.ranking import rank
from spindle.stats.trial import Side, Trial

Numbers = NDArray[np.float64]
Random = np.random.Generator

SECONDS = 60
"""Of a trial."""
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
    """Whether the goal is a lower bound."""

    @property
    def kept(self) -> bool:
        """Whether the goal is met, up to chance."""
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


SHAPES: dict[str, Callable[[int, Random], Numbers]] = {
    "a machine's": machine,
    "white": white,
    "AR(1) 0.5": correlated(0.5),
    "AR(1) 0.9": correlated(0.9),
    "drift and random walk": drifting,
    "heavy tails": heavy,
    "outliers": outliers,
}


def campaign(
    factors: Sequence[float], blocks: int, noise: Callable[[int, Random], Numbers], draw: Random, size: float = NOISE
) -> list[Side]:
    """Randomised blocks of alternatives that are `factors` times as fast."""
    count = len(factors)
    speed = np.exp(size * noise(blocks * count, draw)).reshape(blocks, count)
    trials: list[list[Trial]] = [[] for _ in factors]
    for block in range(blocks):
        for place, at in enumerate(draw.permutation(count)):
            trials[at].append(
                Trial(
                    id=f"{block}-{place}",
                    values={"iops": 1000.0 * factors[at] * float(speed[block, place])},
                    campaign="c",
                    block=block,
                    cell={"setting": str(at)},
                    order=("", block * count + place),
                )
            )
    return [Side(chr(65 + at), part) for at, part in enumerate(trials)]


def in_sequence(values: Sequence[Numbers]) -> list[Side]:
    """All trials of one alternative, then all of the next."""
    return [
        Side(
            chr(65 + at),
            [Trial(id="", values={"iops": float(v)}, order=("", at * 10**6 + n)) for n, v in enumerate(part)],
        )
        for at, part in enumerate(values)
    ]


def told(sides: Sequence[Side]) -> bool:
    """Whether any alternative is told from the first."""
    return any(finding.difference.told for finding in compare(sides, ["iops"]).findings)


class Bench:
    """Counts how often something happens."""

    def __init__(self, repetitions: int) -> None:
        self.repetitions = repetitions

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
        count = max(200, int(self.repetitions * share))
        hits = sum(happens(np.random.default_rng([crc32(f"{group} {what}".encode()), seed])) for seed in range(count))
        ends = binomtest(hits, count).proportion_ci(method="exact")
        return Row(group, what, hits / count, float(ends.low), float(ends.high), count, goal, at_least)


def rows(bench: Bench) -> Iterator[Row]:
    """Every claim that is made."""
    yield from headline(bench)
    yield from campaigns(bench)
    yield from sequences(bench)
    yield from single_runs(bench)
    yield from planning(bench)
    yield from many(bench)
    yield from gates(bench)
    yield from bands(bench)
    yield from histories(bench)


def headline(bench: Bench) -> Iterator[Row]:
    yield bench.row(
        "headline",
        "A/A campaigns, 6 blocks, a machine's noise: a difference is claimed",
        lambda draw: told(campaign([1.0, 1.0], 6, machine, draw)),
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
            yield bench.row(
                "A/A, two alternatives in random blocks",
                f"{blocks:2} blocks, noise {name}",
                lambda draw, noise=noise, blocks=blocks: told(campaign([1.0, 1.0], blocks, noise, draw)),
                share=0.5,
            )

    for name in ("a machine's", "white"):
        yield bench.row(
            "A/A, two alternatives in random blocks",
            f"as many blocks (3 to 20) as bring both means within 2 %, noise {name}",
            lambda draw, name=name: told(until_narrow(SHAPES[name], draw)),
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


def sequences(bench: Bench) -> Iterator[Row]:
    """No blocks and no turns: an honest limit, so only white noise has a goal."""
    for rho in (0.0, 0.3, 0.6):
        for n in (5, 10, 30):
            yield bench.row(
                "A/A, all of A before all of B (a note says so)",
                f"{n:2} trials each, correlation from trial to trial {rho}",
                lambda draw, n=n, rho=rho: told(in_sequence(np.exp(NOISE * wander(2 * n, rho, draw)).reshape(2, n))),
                0.05 if rho == 0 else None,
                share=0.5,
            )


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
    return finding.told == "better"


def planning(bench: Bench) -> Iterator[Row]:
    group = "5 % planted under 3 % noise: found with the trials asked for"
    known = trials_needed(PLANTED, NOISE, blocks=True)
    assert known is not None
    yield bench.row(
        group,
        f"the noise is known: {known} blocks",
        lambda draw: told(campaign([1.0, 1 + PLANTED], known, white, draw)),
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
            compare(campaign([1.0] * 7 + [1 + PLANTED], two, white, draw), ["iops"]).findings[-1].difference.told
        ),
        0.9,
        at_least=True,
        share=0.5,
    )


def many(bench: Bench) -> Iterator[Row]:
    for name in ("a machine's", "heavy tails"):
        yield bench.row(
            "eight alternatives, 5 blocks",
            f"A/A: any is told from the first, noise {name}",
            lambda draw, name=name: told(campaign([1.0] * 8, 5, SHAPES[name], draw)),
            share=0.5,
        )
    for blocks in (2, 3, 5):
        yield bench.row(
            "eight alternatives: the true best (by 2 %) is not among those that may be",
            f"{blocks} blocks, a machine's noise",
            lambda draw, blocks=blocks: best_missed(campaign([*[1.0] * 7, 1.02], blocks, machine, draw)),
            share=0.5,
        )
    yield bench.row(
        "eight alternatives: the true best (by 2 %) is not among those that may be",
        "4 blocks, the others are five times as noisy",
        lambda draw: best_missed(unequal(draw)),
        share=0.5,
    )
    yield bench.row(
        "effects of factors",
        "3 x 2 levels, 3 blocks, none does anything: any is claimed",
        lambda draw: any(
            effect.told for effect in (effects("iops", factorial(draw)) or sys.exit("no effects")).effects
        ),
        share=0.5,
    )


def best_missed(sides: Sequence[Side]) -> bool:
    ranking = rank("iops", sides, strata(sides))
    assert ranking is not None
    return sides[-1].label not in ranking.best


def unequal(draw: Random) -> list[Side]:
    sides = campaign([*[1.0] * 7, 1.02], 4, white, draw, 0.01)
    loud = campaign([1.0] * 8, 4, white, draw, 0.05)
    return [*loud[:7], sides[7]]


def factorial(draw: Random) -> list[Trial]:
    return [
        Trial(
            id="",
            values={"iops": float(np.exp(NOISE * draw.standard_normal() + 0.1 * block))},
            campaign="c",
            block=block,
            cell={"a": a, "b": b},
        )
        for block in range(3)
        for a in "xyz"
        for b in "uv"
    ]


def gates(bench: Bench) -> Iterator[Row]:
    def outcome(factor: float, n: int, threshold: float, draw: Random) -> str:
        values = 1000 * np.exp(NOISE * draw.standard_normal((2, n)))
        values[1] *= factor
        return gate(*in_sequence(values), ["iops"], threshold=threshold).outcome

    group = "check, ten trials each under 3 % noise"
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
            yield bench.row(group, f"drift (told below p = 0.01), {where}", lambda d, s=series: drifts(s(d)), share=0.2)

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
    options.add_argument("--repetitions", type=int, default=1000)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    begun, made, group = time.perf_counter(), list[Row](), ""
    for row in rows(Bench(asked.repetitions)):
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
