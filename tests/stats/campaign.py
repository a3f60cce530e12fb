"""Made-up records and trials whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from spindle.result.record import Level, RunRecord, Verdict
from spindle.stats.trial import Side, Trial
from tests.cli.records import figures, op, record, series, stream
from tests.stats.noise import autoregressive

Numbers = Sequence[float] | NDArray[np.float64]


def run(
    iops: float,
    *,
    number: int = 0,
    day: int = 1,
    seconds: int = 60,
    rates: Numbers | None = None,
    invalid: bool = False,
    p99_ms: float | None = None,
    **changes: Any,
) -> RunRecord:
    """A minute of random 4 KiB reads; run `number` of a day."""
    iops = float(iops)
    read = op(iops, seconds, mean_ms=16_000 / iops)
    if p99_ms is not None:
        points = [(p, round(float(p99_ms) * 1e6) if p == 99.0 else ns) for p, ns in read.latency.percentiles]
        read = replace(read, latency=replace(read.latency, percentiles=points))
    found = figures(stream(read, seconds=seconds), seconds=seconds)
    if rates is not None:
        found = replace(found, series=series([float(rate) * 4096 for rate in rates]))
    made = record(found, overrides=[("write_fraction", "0"), ("fsync_fraction", "0"), ("size", "4KiB")])
    verdicts = [Verdict(check="cache-share", level=Level.INVALID, evidence="cached")] if invalid else []
    minute, hour = number % 60, number // 60
    return replace(
        made,
        id=f"202601{day:02}T{hour:02}{minute:02}00Z-{number:06x}",
        started=f"2026-01-{day:02}T{hour:02}:{minute:02}:00Z",
        verdicts=verdicts,
        **changes,
    )


def sides(
    values: Mapping[str, Numbers], *, blocks: bool = False, metric: str = "iops", interleaved: bool = True
) -> list[Side]:
    """Alternatives with one value a trial: in blocks whose order is balanced, in turns, or one after the other."""
    found = []
    for at, (label, numbers) in enumerate(values.items()):
        trials = []
        for number, value in enumerate(numbers):
            turn = at if number % 2 == 0 else len(values) - 1 - at  # A B, B A, A B ...
            place = number * len(values) + (turn if blocks else at) if interleaved else at * 10_000 + number
            trials.append(
                Trial(
                    id=f"{label}-{number}",
                    values={metric: float(value)},
                    workload="w",
                    target="t",
                    campaign="c" if blocks else None,
                    block=number if blocks else None,
                    order=(f"{place:06}", number),
                )
            )
        found.append(Side(label, trials))
    return found


def in_random_blocks(
    effects: Sequence[float], blocks: int, noise: float, rho: float, draw: np.random.Generator
) -> dict[str, list[float]]:
    """A campaign: each block runs every alternative once, in an order drawn at random, while the machine's speed
    wanders (AR(1) from trial to trial). Relative effects and noise."""
    speed = autoregressive(blocks * len(effects), rho, draw).reshape(blocks, len(effects)) * noise
    found: dict[str, list[float]] = {chr(65 + at): [] for at in range(len(effects))}
    for block in range(blocks):
        for place, at in enumerate(draw.permutation(len(effects))):
            found[chr(65 + at)].append(1000.0 * (1 + effects[at]) * float(np.exp(speed[block, place])))
    return found
