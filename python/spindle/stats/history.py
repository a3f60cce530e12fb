"""What the order of trials in time, and the seconds of a run, tell about their figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spindle.stats.change import changes, drift, warm_up
from spindle.stats.series import of_run
from spindle.stats.trial import Side
from spindle.stats.words import percent

SURE = 0.01
"""A drift is told below this p: every side is looked at, and most are fine."""
FEWEST = 10
"""Trials that can show a change of level."""


def history_notes(sides: Sequence[Side], name: str) -> list[str]:
    """Lines about what was not the same all the time, in the metric that tells most."""
    notes: list[str] = []
    for side in sides:
        notes += _of_seconds(side, name) if len(side.trials) == 1 else _of_trials(side, name)
    return notes


def _of_seconds(side: Side, name: str) -> list[str]:
    """A single run: its figures are only as good as its seconds are alike."""
    rate = name if name.endswith(("iops", "bytes_per_s")) else "iops"
    series = of_run(side.trials[0], rate)
    if series is None or len(series) < FEWEST or not series.any():
        return []
    warmth = warm_up(series)
    if warmth.intervals:
        way = "below" if warmth.off < 0 else "above"
        return [
            f"{side.label}: its first {warmth.intervals} intervals lie {percent(abs(warmth.off))} {way} the rest and "
            "look like a warm-up; a ramp (`ramp` in the workload) leaves it out."
        ]
    if found := changes(series):
        first = found[0]
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        return [
            f"{side.label}: {rate} changed from {first.before:.4g} to {first.after:.4g} a second after interval "
            f"{first.at}{more}: not one figure, but several."
        ]
    trend = drift(series.tolist())
    if trend is not None and trend.p < SURE:
        return [f"{side.label}: {rate} drifted by {percent(trend.over(len(series)), sign=True)} during the run."]
    return []


def _of_trials(side: Side, name: str) -> list[str]:
    """Several trials in order of time."""
    if len({trial.workload for trial in side.trials}) > 1 or any(trial.cell for trial in side.trials):
        return []  # they differ on purpose
    trials = sorted(
        (trial for trial in side.trials if math.isfinite(trial.values.get(name, math.nan))),
        key=lambda trial: trial.order,
    )
    values = np.asarray([trial.values[name] for trial in trials], dtype=np.float64)
    if len(values) < FEWEST or values.min() <= 0:
        return []
    if found := changes(np.log(values), shortest=3):
        first = found[0]
        more = f" (and {len(found) - 1} more such change{'s' if len(found) > 2 else ''})" if len(found) > 1 else ""
        return [
            f"{side.label}: {name} changed by {percent(math.expm1(first.after - first.before), sign=True)} for good at "
            f"trial {first.at + 1} of {len(values)}, {trials[first.at].id}{more}: it is not one alternative."
        ]
    trend = drift(values.tolist())
    if trend is not None and trend.p < SURE:
        over = percent(trend.over(len(values)), sign=True)
        return [f"{side.label}: {name} drifted by {over} from the first to the last of its {len(values)} trials."]
    return []
