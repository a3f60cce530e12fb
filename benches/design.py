"""The search of `spindle design` against the truth: a small space, every design of it simulated.

Three measurements:
- `truth`: random requirements. The cheapest design is searched, then every cheaper one that has the capacity and the
  tolerance is simulated: none may meet the need. Prints the share of the space that the search simulated, and repeats
  the confirming runs of what was found with other seeds.
- `error`: the queueing approximation against long simulations of random designs.
- `speed`: candidates per second through both formula nets.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace

import numpy as np

from spindle import _core
from spindle.design import nets
from spindle.design.drives import Candidate, candidates
from spindle.design.loads import Volume, demands, volumes
from spindle.design.prices import Prices
from spindle.design.reading import requirement_of
from spindle.design.requirement import Requirement, State
from spindle.design.search import VolumeSearch
from spindle.design.space import ArrayDesign, grid
from spindle.design.trial import LONG, SHORT, Effort, Simulator
from spindle.run.watch import SilentWatch

DRIVES = ("ST18000NM000J", "ST3600057SS", "WD3000GLFS", "WD10EACS")
FINAL = replace(LONG, states=(State.WHOLE, State.DEGRADED), only_bounded=True)
"""The confirming runs, of the search and of the truth: those of `spindle design` but for the rebuild, for no need here
bounds it."""
OTHER_SEEDS = 7000
"""Added to the seed for runs whose requests the search has not seen."""
BATCH = 64
WITH_DEGRADED = 0.4
"""Share of the needs that also bound the array with a missing drive."""


def requirement(draw: np.random.Generator, bays: int) -> Requirement:
    """A random need of a database on disks."""
    mix = int(draw.integers(5, 20)) * 5
    size = ("4KiB", "8KiB", "16KiB", "64KiB")[int(draw.integers(4))]
    usable = float(np.exp(draw.uniform(np.log(0.5), np.log(12))))
    rate = float(np.exp(draw.uniform(np.log(60), np.log(1200))))
    text = (
        f'usable = "{usable:.2f} TB"\nsurvive = {int(draw.integers(0, 3))}\n[limits]\nbays = {bays}\n'
        f'[space]\nspares = [0]\n[[load]]\nrate = "{rate:.0f} IOPS"\nmix = "{mix}/{100 - mix}"\nsize = "{size}"\n'
    )
    p99 = int(draw.integers(20, 80))
    text += f'p99 = "{p99}ms"\n'
    if draw.random() < WITH_DEGRADED:
        text += f'degraded = {{ p99 = "{2 * p99}ms" }}\n'
    return requirement_of(text, "bench")


def prices(draw: np.random.Generator) -> Prices:
    """Random prices: about what such drives cost beside each other."""
    usual = dict(zip(DRIVES, (300, 100, 70, 50), strict=True))
    return Prices({name: round(price * float(draw.uniform(0.6, 1.6))) for name, price in usual.items()}, "EUR", "bench")


def truth(count: int, bays: int, seed: int) -> None:
    """Compare the cheapest found with every cheaper design."""
    measured: list[Candidate] = []
    found_right, broken_later, cheaper_all = 0, 0, 0
    shares: list[float] = []
    dearer: list[float] = []
    spaces: list[int] = []
    draw = np.random.default_rng(seed)
    print(f"{'need':64} {'found':>6} {'truth':>6} {'space':>6} {'simulated':>9} {'cheaper ones':>12}")
    while len(spaces) < count:
        need, of = requirement(draw, bays), prices(draw)
        if not measured:
            measured = candidates(of, (), need.space.regions, True)
        drives = [replace(drive, price=of.of[drive.name]) for drive in measured]
        volume = volumes(need, ())[0]
        simulator = Simulator()
        best = VolumeSearch(need, volume, drives, simulator, SilentWatch(), final=FINAL).cheapest()
        used = simulator.runs
        cost = best.cost if best is not None else math.inf
        right, cheaper = _truth(need, volume, drives, simulator, cost)
        if best is None and math.isinf(right):
            continue  # an impossible need decides nothing about the cheapest
        space = len(grid(need, drives))
        spaces.append(space)
        shares.append(used / space)
        cheaper_all += cheaper
        found_right += right >= cost
        dearer.append(cost / min(right, cost) - 1)
        words = f"{need.usable_bytes / 1e12:.1f} TB, {need.loads[0].rate_iops:.0f} IOPS, survive {need.survive}: "
        if best is not None:
            again = simulator.evaluate([best.design], volume, FINAL, 1.0, need.seed + OTHER_SEEDS)[0]
            broken_later += not again.meets
            words += f"{best.design.drives} x {best.design.drive}, {best.design.scheme.name}"
        print(f"{words:64} {cost:6.0f} {min(right, cost):6.0f} {space:6} {used:9} {cheaper:12}", flush=True)
    print(
        f"the cheapest was found in {found_right} of {count}; otherwise at most {100 * max(dearer):.1f} % dearer; "
        f"at most {100 * max(shares):.1f} % of the space simulated (mean {100 * float(np.mean(shares)):.1f} %)\n"
        f"spaces of {min(spaces)} to {max(spaces)} designs, {cheaper_all} cheaper ones simulated; "
        f"{broken_later} of the found designs break a bound in runs with other seeds"
    )
    if found_right < 0.95 * count or max(dearer) > 0.03 or max(shares) > 0.05:
        sys.exit("the search missed its goal")


def _truth(
    need: Requirement, volume: Volume, drives: list[Candidate], simulator: Simulator, cost: float
) -> tuple[float, int]:
    """Cost of the cheapest design below `cost` that meets the need, infinite if there is none; the number simulated.

    Every design is simulated whatever the formulas say of its speed; only space, tolerance and bays are facts. A design
    that misses the bounds twofold in the short run, or once in the first confirming run, has no further one.
    """
    of = grid(need, drives)
    facts = (of.usable >= volume.needed_bytes) & (of.of_scheme("tolerance") >= need.survive) & (of.cost < cost - 1e-9)
    rows = np.flatnonzero(facts)
    rows = rows[np.lexsort((rows, of.cost[rows]))]
    for first in range(0, len(rows), BATCH):
        some = [of.design(int(row)) for row in rows[first : first + BATCH]]
        left = _meeting(simulator, some, volume, SHORT, need.seed, 2.0)
        for effort in (replace(FINAL, states=(State.WHOLE,), seeds=1), FINAL):
            left = _meeting(simulator, left, volume, effort, need.seed + 1000, 1.0)
        if left:
            at = {design: float(of.cost[row]) for design, row in zip(some, rows[first : first + BATCH], strict=True)}
            return min(at[design] for design in left), first + len(some)
    return math.inf, len(rows)


def _meeting(
    simulator: Simulator, designs: list[ArrayDesign], volume: Volume, effort: Effort, seed: int, most: float
) -> list[ArrayDesign]:
    """The designs that come within `most` times the bounds."""
    outcomes = simulator.evaluate(designs, volume, effort, 1.0, seed)
    return [design for design, outcome in zip(designs, outcomes, strict=True) if outcome.share <= most]


def error(count: int, seed: int) -> None:
    """Compare approximated with simulated latencies of random designs below 90 % of saturation."""
    draw = np.random.default_rng(seed)
    simulator = Simulator()
    ratios: dict[tuple[str, str], list[float]] = {}
    measured: list[Candidate] = []
    wrong_order = [0, 0]
    for _ in range(max(1, count // 12)):
        need, of_prices = requirement(draw, 16), prices(draw)
        measured = measured or candidates(of_prices, (), need.space.regions, True)
        of, volume = grid(need, measured), volumes(need, ())[0]
        work = nets.member_work(of, demands(volume.loads))
        rows = np.flatnonzero((nets.utilisation(of, work, 0) < 0.9) & (of.usable >= volume.needed_bytes))
        rows = np.sort(draw.permutation(rows)[:12])
        if not len(rows):
            continue
        some = of.take(rows)
        guess = nets.estimate(some, nets.member_work(some, demands(volume.loads)))
        outcomes = simulator.evaluate([some.design(at) for at in range(len(rows))], volume, Effort(10_000, 1), 1.0)
        worst: list[tuple[float, float]] = []
        for at, outcome in enumerate(outcomes):
            kind = "parity" if some.design(at).scheme.parity else "mirrors, stripes"
            for figure in outcome.figures:
                if figure.state is State.WHOLE:
                    for key in ("mean", "p99"):
                        value = float(guess.of(key, figure.operation == "write")[at])
                        ratios.setdefault((f"{figure.operation}, {kind}", key), []).append(
                            value / figure.latency_ns[key]
                        )
            both = max(float(guess.of("p99", False)[at]), float(guess.of("p99", True)[at]))
            worst.append((both, outcome.latency_ns))
        for one, (guessed, simulated) in enumerate(worst):
            for other, also in worst[one + 1 :]:
                if max(simulated, also) > 1.1 * min(simulated, also):
                    wrong_order[1] += 1
                    wrong_order[0] += (guessed < other) != (simulated < also)
    print("approximated / simulated       n   5 %   50 %   95 %")
    for (operation, key), values in sorted(ratios.items()):
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        print(f"{operation:23} {key:4} {len(values):4} {low:5.2f} {middle:6.2f} {high:6.2f}")
    share = 100 * wrong_order[0] / max(1, wrong_order[1])
    print(f"{wrong_order[1]} pairs of designs whose largest p99 differs by 10 %: {share:.0f} % in the wrong order")


def speed() -> None:
    """Candidates per CPU second of the formula nets, on a space of more than a million."""
    need = requirement(np.random.default_rng(1), 64)
    need = replace(
        need,
        space=replace(
            need.space,
            spares=(0, 1, 2),
            regions=(1.0, 0.75, 0.5, 0.25),
            chunks=tuple(4096 << at for at in range(4, 10)),
        ),
    )
    of_prices = Prices(dict.fromkeys(_core.drive_names(), 100.0), "EUR", "bench")
    drives = candidates(of_prices, (), need.space.regions, True)
    volume = volumes(need, ())[0]
    start = time.process_time()
    of = grid(need, drives)
    needs = nets.closed_needs(of, volume, need, 1.0)
    rest = of.take(np.logical_and.reduce([one.met for one in needs]))
    closed = time.process_time()
    nets.predicted_share(rest, volume, 1.0)
    end = time.process_time()
    print(
        f"{len(of)} candidates: closed formulas {closed - start:.2f} s of CPU time "
        f"({len(of) / (closed - start) / 1e6:.1f} million/s), {len(rest)} left; "
        f"queueing approximation {end - closed:.2f} s ({len(rest) / (end - closed) / 1e6:.1f} million/s)"
    )
    if end - start > 60 * len(of) / 1e6:
        sys.exit("slower than 10^6 candidates in 60 s")


def main() -> None:
    """Run what was asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("speed", "error", "truth")
    arguments.add_argument("which", choices=[*names, "all"], nargs="*", default="all")
    arguments.add_argument("--count", type=int, default=40, help="needs of `truth`; `error` has 6 designs for each")
    arguments.add_argument("--bays", type=int, default=32, help="bays of `truth`: 32 give 23 880 designs")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    for which in names if "all" in given.which else given.which:
        if which == "truth":
            truth(given.count, given.bays, given.seed)
        elif which == "error":
            error(6 * given.count, given.seed)
        else:
            speed()


if __name__ == "__main__":
    main()
