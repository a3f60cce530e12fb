"""Pairwise designs: few combinations that contain every pair of levels of two factors.

Greedy, one combination at a time, after D. M. Cohen et al., "The AETG System" (IEEE Trans. Software Eng. 23, 1997): of
several candidates, each begun with a missing pair and completed level by level, the one with the most new pairs is
taken. About two to three times the product of the two largest factors; deterministic for a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations

CANDIDATES = 16
"""More candidates hardly reduce the design: AETG used 50 for the last few per cent."""
STEPS = 2_000
"""Most levels tried to complete a combination before it counts as excluded."""

Row = list[str | None]
Pair = tuple[int, str, int, str]


def covering(
    factors: Sequence[Sequence[str]], allowed: Callable[[Sequence[str | None]], bool], seed: int
) -> list[list[str]]:
    """A covering design. `allowed` returns True for a partial combination that is not excluded."""
    if len(factors) < 2:
        return [[label] for label in (factors[0] if factors else []) if allowed([label])] if factors else [[]]
    chance = random.Random(seed)
    missing: dict[Pair, None] = {
        (a, one, b, other): None
        for a, b in combinations(range(len(factors)), 2)
        for one in factors[a]
        for other in factors[b]
    }
    rows: list[list[str]] = []
    while missing:
        start = next(iter(missing))
        best: list[str] | None = None
        for _ in range(CANDIDATES):
            row = _complete(start, factors, missing, allowed, chance)
            if row is None:
                break
            if best is None or _new(row, missing) > _new(best, missing):
                best = row
        if best is None:
            del missing[start]  # excluded
            continue
        rows.append(best)
        for pair in _pairs(best):
            missing.pop(pair, None)
    return rows


def _pairs(row: Sequence[str]) -> list[Pair]:
    return [(a, row[a], b, row[b]) for a, b in combinations(range(len(row)), 2)]


def _new(row: Sequence[str], missing: dict[Pair, None]) -> int:
    return sum(pair in missing for pair in _pairs(row))


def _complete(
    start: Pair,
    factors: Sequence[Sequence[str]],
    missing: dict[Pair, None],
    allowed: Callable[[Sequence[str | None]], bool],
    chance: random.Random,
) -> list[str] | None:
    """Complete the pair with the other factors' levels in random order; go back a step if all are excluded."""
    row: Row = [None] * len(factors)
    row[start[0]], row[start[2]] = start[1], start[3]
    if not allowed(row):
        return None
    open_ones = [at for at in range(len(factors)) if row[at] is None]
    chance.shuffle(open_ones)
    steps = 0

    def gain(at: int, label: str) -> int:
        return sum(
            ((a, row[a], at, label) if a < at else (at, label, a, row[a])) in missing
            for a in range(len(row))
            if row[a] is not None
        )

    def fill(depth: int) -> bool:
        nonlocal steps
        if depth == len(open_ones):
            return True
        at = open_ones[depth]
        labels = list(factors[at])
        chance.shuffle(labels)
        for label in sorted(labels, key=lambda one: -gain(at, one)):
            steps += 1
            if steps > STEPS:
                return False
            row[at] = label
            if allowed(row) and fill(depth + 1):
                return True
            row[at] = None
        return False

    return [label for label in row if label is not None] if fill(0) else None
