"""How often `steady` warns of a series that keeps its level, and calls one steady that does not.

Series of one-second throughputs are simulated: a level under normal noise whose neighbours correlate (AR(1)), and
shapes of several sizes upon it. Each gets one of three answers: a change was found, `unknown` (a step of 30 % could
hide in the noise), or ok. The tables are those of docs/explanation/measurement.md. Exits with 1 if a goal is
missed beyond chance: at most 5 % false alarms, at most 5 % called ok in spite of a step of 30 % or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from spindle import _core
from spindle.result.rules.steadiness import Series, could_hide, strongest

Numbers = NDArray[np.float64]
Random = np.random.Generator

LENGTHS = (10, 30, 60, 300)
NOISES = (0.02, 0.05, 0.10)
RHOS = (0.0, 0.3, 0.6, 0.8)
SIZES = (0.1, 0.2, 0.3, 0.5, 0.9)
WAYS = ("down", "up")
PLACES = (0.10, 0.25, 0.50, 0.75, 0.90)
ALARMS = 0.05
"""False alarms that are allowed in each row."""
CALLED_OK = 0.05
"""Share of series with a step of `LARGE` or more, at each place and size."""
LARGE = 0.3
LEVEL = 100e6


@dataclass(frozen=True)
class Cell:
    """One kind of series."""

    length: int
    noise: float
    rho: float
    shape: str = "level"
    size: float = 0.0
    at: float = 0.0
    """Place of a step or spike as a share of the run; period or dwell in s."""
    tails: str = "normal"


def noise(cell: Cell, draw: Random) -> Numbers:
    """Noise of standard deviation 1."""
    if cell.tails == "t3":
        return draw.standard_t(3, cell.length) / np.sqrt(3)
    if cell.tails == "skewed":
        return draw.gamma(4, 0.5, cell.length) - 2
    found = np.empty(cell.length)
    state = draw.standard_normal()
    fresh = np.sqrt(1 - cell.rho**2) * draw.standard_normal(cell.length)
    for at in range(cell.length):
        found[at] = state
        state = cell.rho * state + fresh[at]
    return found


def shape(cell: Cell, draw: Random) -> Numbers:
    """The level at each second, 1 where nothing happened."""
    n, size = cell.length, cell.size
    second = np.arange(n)
    place = max(1, round(cell.at * n))
    match cell.shape:
        case "level":
            return np.ones(n)
        case "down":
            return np.where(second < place, 1.0, 1 - size)
        case "up":
            return np.where(second < place, 1.0, 1 + size)
        case "drift":
            return 1 - size * second / (n - 1)
        case "sawtooth":
            return 1 - size * ((second + draw.uniform(0, cell.at)) / cell.at % 1)
        case "spike":
            begin = draw.integers(1, n - int(cell.at))
            return np.where((second >= begin) & (second < begin + cell.at), 1 - size, 1.0)
        case "flapping":
            return np.where((second + draw.integers(0, int(cell.at))) // cell.at % 2 == 0, 1.0, 1 - size)
        case "telegraph":
            low = np.cumsum(draw.random(n) < 1 / cell.at) % 2 == 1
            return np.where(low, 1 - size, 1.0)
    raise ValueError(cell.shape)


@dataclass(frozen=True)
class Answers:
    """Shares of the series of one cell."""

    found: float
    unknown: float
    ok: float
    repetitions: int


def answers(cell: Cell, repetitions: int) -> Answers:
    """The answers of `steady` for such series."""
    draw = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    found = unknown = 0
    for _ in range(repetitions):
        values = (LEVEL * np.maximum(0, shape(cell, draw) + cell.noise * noise(cell, draw))).tolist()
        if strongest([Series("throughput", values)]) is not None:
            found += 1
        elif could_hide(_core.step_ruled_out(values)):
            unknown += 1
    ok = repetitions - found - unknown
    return Answers(found / repetitions, unknown / repetitions, ok / repetitions, repetitions)


def kept(share: float, repetitions: int, goal: float) -> bool:
    """True if a share is at most its goal, up to chance."""
    return float(binomtest(round(share * repetitions), repetitions).proportion_ci(method="exact").low) <= goal


Measure = Callable[[Sequence[Cell]], list[Answers]]


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def span(shares: Sequence[float]) -> str:
    """From the least to the most, in percent."""
    low, high = (f"{100 * end:.3g}" for end in (min(shares), max(shares)))
    return low if low == high else f"{low}-{high}"


def level_kept(measure: Measure) -> Iterator[tuple[str, bool]]:
    yield "| seconds | noise | correlation 0 | 0.3 | 0.6 | 0.8 |", True
    yield "|---|---|---|---|---|---|", True
    for length in LENGTHS:
        for deviation in NOISES:
            each = measure([Cell(length, deviation, rho) for rho in RHOS])
            cells = " | ".join(f"{percent(one.found)}, {percent(one.unknown)}" for one in each)
            good = all(kept(one.found, one.repetitions, ALARMS) for one in each)
            yield f"| {length}{'' if good else ' *'} | {percent(deviation)} | {cells} |", good
    for tails, words in (("t3", "Student's t with 3 degrees of freedom"), ("skewed", "gamma, skewness 1")):
        for length in LENGTHS:
            one = measure([Cell(length, 0.05, 0.0, tails=tails)])[0]
            yield f"| {length} | 5 %, {words} | {percent(one.found)}, {percent(one.unknown)} | | | |", True


def steps(measure: Measure) -> Iterator[tuple[str, bool]]:
    yield "| seconds | noise | correlation | 10 % | 20 % | 30 % | 50 % | 90 % | called ok: 30 % | 50 % | 90 % |", True
    yield "|---|---|---|---|---|---|---|---|---|---|---|", True
    for length in LENGTHS:
        for deviation in NOISES:
            for rho in RHOS:
                least, most, good = [], [], True
                for size in SIZES:
                    each = measure([Cell(length, deviation, rho, way, size, at) for at in PLACES for way in WAYS])
                    least.append(percent(min(one.found for one in each)))
                    if size >= LARGE:
                        most.append(percent(max(one.ok for one in each)))
                        good = good and all(kept(one.ok, one.repetitions, CALLED_OK) for one in each)
                row = " | ".join([*least, *most])
                yield f"| {length}{'' if good else ' *'} | {percent(deviation)} | {rho:g} | {row} |", good


def shapes(measure: Measure) -> Iterator[tuple[str, bool]]:
    rows: list[tuple[str, str, float, float]] = [
        ("drift over the run", "drift", 0, 0),
        ("sawtooth, period a half of the run", "sawtooth", 0.5, 0),
        ("sawtooth, a fifth of the run", "sawtooth", 0.2, 0),
        ("sawtooth, 7 s", "sawtooth", 0, 7),
        ("spike of 1 s", "spike", 0, 1),
        ("spike of 3 s", "spike", 0, 3),
        ("two levels, each second", "flapping", 0, 1),
        ("two levels, each 3 s", "flapping", 0, 3),
        ("two levels, a fifth of the run each", "flapping", 0.2, 0),
        ("two levels, at random after 3 s on average", "telegraph", 0, 3),
    ]
    yield "| shape | size | " + " | ".join(f"{length} s" for length in LENGTHS) + " |", True
    yield "|---|---|" + "---|" * len(LENGTHS), True
    for words, name, share, seconds in rows:
        for size in SIZES:
            cells = []
            for length in LENGTHS:
                at = seconds or max(2, round(share * length))
                each = measure([Cell(length, 0.05, rho, name, size, at) for rho in RHOS])
                ok = 100 * max(one.ok for one in each)
                cells.append(f"{span([one.found for one in each])}, {ok:.3g}")
            yield f"| {words} | {percent(size)} | {' | '.join(cells)} |", True


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--repetitions", type=int, default=1000, help="of each stationary series; a fifth of it else")
    asked = options.parse_args()
    begun, whole = time.perf_counter(), True
    with ProcessPoolExecutor(os.cpu_count()) as pool:

        def measure(cells: Sequence[Cell], share: float) -> list[Answers]:
            longest = max(cell.length for cell in cells)
            repetitions = max(50, round(asked.repetitions * share * (0.5 if longest > 100 else 1)))
            return list(pool.map(partial(answers, repetitions=repetitions), cells))

        parts = (
            ("A level that is kept: a change is found (false alarm), `unknown`", level_kept, 1.0),
            ("Steps: found, the least of five places, up and down; and called ok, the most of them", steps, 0.2),
            (
                "Other shapes, noise of 5 %, in percent: found, from the least to the most of four correlations; "
                "and called ok, the most of them",
                shapes,
                0.1,
            ),
        )
        for title, table, share in parts:
            print(f"\n{title}\n")
            for line, good in table(partial(measure, share=share)):
                whole = whole and good
                print(line, flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
