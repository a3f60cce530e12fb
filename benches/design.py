"""The search of `spindle design` against the truth: a small space, every design of it simulated.

Three measurements:
- `truth`: random requirements. The cheapest design is searched, then every cheaper one that has the capacity and the
  tolerance is simulated: none may meet the need. Prints the share of the space that the search simulated.
- `error`: the queueing approximation against long simulations of random designs.
- `speed`: candidates per second through both formula nets.
"""

from __future__ import annotations

import argparse
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
from spindle.design.space import grid
from spindle.design.trial import SHORT, Effort, Simulator
from spindle.run.watch import SilentWatch

DRIVES = ("ST18000NM000J", "ST3600057SS", "WD3000GLFS", "WD10EACS")
FINAL = Effort(8000, 1)
"""The confirming runs of this bench: of the search and of the truth."""
BATCH = 64


def requirement(draw: np.random.Generator, bays: int) -> Requirement:
    """A random need of a database on disks."""
    mix = int(draw.integers(5, 20)) * 5
    size = ("4KiB", "8KiB", "16KiB", "64KiB")[int(draw.integers(4))]
    usable = float(np.exp(draw.uniform(np.log(0.5), np.log(12))))
    rate = float(np.exp(draw.uniform(np.log(60), np.log(1200))))
    text = (
        f'usable = "{usable:.2f} TB"\nsurvive = {int(draw.integers(0, 3))}\n[limits]\nbays = {bays}\n'
        f'[space]\nspares = [0]\n[[load]]\nrate = "{rate:.0f} IOPS"\nmix = "{mix}/{100 - mix}"\nsize = "{size}"\n'
        f'p99 = "{int(draw.integers(20, 80))}ms"\n'
    )
    return requirement_of(text, "bench")


def prices(draw: np.random.Generator) -> Prices:
    """Random prices: about what such drives cost beside each other."""
    usual = dict(zip(DRIVES, (300, 100, 70, 50), strict=True))
    return Prices({name: round(price * float(draw.uniform(0.6, 1.6))) for name, price in usual.items()}, "EUR", "bench")


def truth(count: int, bays: int, seed: int) -> None:
    """Compare the cheapest found with every cheaper design."""
    measured: list[Candidate] = []
    found_right = 0
    shares: list[float] = []
    dearer: list[float] = []
    number = 0
    draw = np.random.default_rng(seed)
    print(f"{'need':64} {'found':>6} {'truth':>6} {'space':>6} {'simulated':>9} {'cheaper ones':>12}")
    while number < count:
        need, of = requirement(draw, bays), prices(draw)
        if not measured:
            measured = candidates(of, (), need.space.regions, True)
        drives = [replace(drive, price=of.of[drive.name]) for drive in measured]
        volume = volumes(need, ())[0]
        simulator = Simulator()
        search = VolumeSearch(need, volume, drives, simulator, SilentWatch(), final=FINAL)
        best = search.cheapest()
        if best is None:
            continue  # an impossible need decides nothing about the cheapest
        number += 1
        used = simulator.runs
        right, cheaper = _truth(need, volume, drives, simulator, best.cost)
        space = len(grid(need, drives))
        shares.append(used / space)
        found_right += right >= best.cost
        dearer.append(best.cost / min(right, best.cost) - 1)
        words = f"{need.usable_bytes / 1e12:.1f} TB, {need.loads[0].rate_iops:.0f} IOPS, survive {need.survive}: "
        words += f"{best.design.drives} x {best.design.drive}, {best.design.scheme.name}"
        print(f"{words:64} {best.cost:6.0f} {min(right, best.cost):6.0f} {space:6} {used:9} {cheaper:12}", flush=True)
    print(
        f"the cheapest was found in {found_right} of {count}; otherwise at most {100 * max(dearer):.1f} % dearer; "
        f"at most {100 * max(shares):.1f} % of the space simulated (mean {100 * float(np.mean(shares)):.1f} %)"
    )
    if found_right < 0.95 * count or max(dearer) > 0.03 or max(shares) > 0.05:
        sys.exit("the search missed its goal")


def _truth(
    need: Requirement, volume: Volume, drives: list[Candidate], simulator: Simulator, cost: float
) -> tuple[float, int]:
    """Cost of the cheapest design below `cost` that meets the need, infinite if there is none; the number simulated.

    Every design is simulated whatever the formulas say of its speed; only space, tolerance and bays are facts. A design
    that misses the bounds twofold in the short run has no confirming run.
    """
    of = grid(need, drives)
    facts = (of.usable >= volume.needed_bytes) & (of.of_scheme("tolerance") >= need.survive) & (of.cost < cost - 1e-9)
    rows = np.flatnonzero(facts)
    rows = rows[np.lexsort((rows, of.cost[rows]))]
    for first in range(0, len(rows), BATCH):
        some = [of.design(int(row)) for row in rows[first : first + BATCH]]
        shorts = simulator.evaluate(some, volume, SHORT, 1.0, need.seed)
        near = [design for design, outcome in zip(some, shorts, strict=True) if outcome.share <= 2]
        finals = simulator.evaluate(near, volume, FINAL, 1.0, need.seed + 1000)
        if any(outcome.meets for outcome in finals):
            good = [one for one, outcome in zip(near, finals, strict=True) if outcome.meets]
            at = {design: float(of.cost[row]) for design, row in zip(some, rows[first : first + BATCH], strict=True)}
            return min(at[design] for design in good), len(rows)
    return float("inf"), len(rows)


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
    arguments.add_argument("which", choices=("truth", "error", "speed"), nargs="*", default=["speed", "error", "truth"])
    arguments.add_argument("--count", type=int, default=40, help="needs of `truth`; `error` has 6 designs for each")
    arguments.add_argument("--bays", type=int, default=16)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    for which in given.which:
        if which == "truth":
            truth(given.count, given.bays, given.seed)
        elif which == "error":
            error(6 * given.count, given.seed)
        else:
            speed()


if __name__ == "__main__":
    main()
