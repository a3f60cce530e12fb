"""Changes over the order of trials in time, and over the seconds of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spindle.base.numbers import as_change
from spindle.stats.change import changes, drift, warm_up
from spindle.stats.series import of_run
from spindle.stats.trial import Side

SURE = 0.01
"""A drift is reported below this p: every side is tested, and most have none."""
FEWEST = 10
"""Fewest trials that can show a change of level."""


def history_notes(sides: Sequence[Side], name: str) -> list[str]:
    """Lines about changes over time, in the most informative metric."""
    notes: list[str] = []
    for side in sides:
        notes += _of_seconds(side, name) if len(side.trials) == 1 else _of_trials(side, name)
    return notes


def _of_seconds(side: Side, name: str) -> list[str]:
    """A single run: changes from second to second."""
    rate = name if name.endswith(("iops", "bytes_per_s")) else "iops"
    series = of_run(side.trials[0], rate)
    if series is None or len(series) < FEWEST or not series.any():
        return []
    warm = warm_up(series)
    if warm.intervals:
        way = "below" if warm.off < 0 else "above"
        return [
            f"{side.label}: its first {warm.intervals} intervals are {as_change(abs(warm.off))} {way} the rest and "
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
        return [f"{side.label}: {rate} drifted by {as_change(trend.over(len(series)), sign=True)} during the run."]
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
            f"{side.label}: {name} changed by {as_change(math.expm1(first.after - first.before), sign=True)} "
            "for good at "
            f"trial {first.at + 1} of {len(values)}, {trials[first.at].id}{more}: it is not one alternative."
        ]
    trend = drift(values.tolist())
    if trend is not None and trend.p < SURE:
        over = as_change(trend.over(len(values)), sign=True)
        return [f"{side.label}: {name} drifted by {over} from the first to the last of its {len(values)} trials."]
    return []
