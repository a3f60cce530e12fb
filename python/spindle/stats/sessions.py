"""Comparison of a new session with several earlier ones, as in a gate in continuous integration.

Each day's runs share the machine's state of that day, so a session counts as one value. The earlier sessions show how
much sessions differ, and the new one must differ by more. Successive sessions may be correlated; if the machine wanders
at random, the new one is further from the mean of the earlier ones than they are from each other, and their variance is
too small by a factor of about two. `WANDER` allows for that and for a steady drift (docs/explanation/statistics.md has
the rates).

Runs belong to different sessions if the time between them is at least `LEAST_S`, and at least `APART` of the time
between the last earlier run and the first new one: runs a minute apart do not show how days differ. Nor do nights show
how days differ from them: one earlier session must have begun at about the same hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from spindle.stats.model import Contrast, Indices, Numbers
from spindle.stats.trial import Trial

FEWEST_SESSIONS = 5
"""Fewest earlier sessions. Fewer hardly show how sessions differ."""
WANDER = 2.5
"""Variance of the distance between the new session and the mean of the earlier ones, in variances of a session."""
APART = 0.25
LEAST_S = 6 * 3600.0
_DAY_S = 24 * 3600.0
SAME_HOUR_S = 6 * 3600.0
"""Larger differences between times of the day count as another hour."""


def against_earlier(values: Numbers, groups: Indices, trials: Sequence[Trial]) -> Contrast | None:
    """Group 1 less group 0; None: group 0 does not have enough earlier sessions."""
    earlier = _sessions(values, groups, trials)
    if earlier is None or len(earlier) < FEWEST_SESSIONS:
        return None
    spread = float(earlier.std(ddof=1))
    if spread <= 1e-12 * (1 + float(np.abs(earlier).max())):
        return None  # equal figures do not show their noise
    difference = float(values[groups == 1].mean() - earlier.mean())
    return Contrast(difference, WANDER * spread**2, float(len(earlier) - 1), spread)


def _sessions(values: Numbers, groups: Indices, trials: Sequence[Trial]) -> Numbers | None:
    """Means of the earlier sessions; None: their times are unknown, or they were not all before the new runs."""
    try:
        seconds = np.asarray([datetime.fromisoformat(trial.order[0]).timestamp() for trial in trials])
    except ValueError:
        return None
    before, own = seconds[groups == 0], values[groups == 0]
    first = float(seconds[groups == 1].min())
    since = first - float(before.max())
    hours = np.abs(before - first) % _DAY_S
    if since < LEAST_S or np.minimum(hours, _DAY_S - hours).min() > SAME_HOUR_S:
        return None
    order = np.argsort(before, kind="stable")
    begins = np.flatnonzero(np.diff(before[order]) >= max(LEAST_S, APART * since)) + 1
    found: Numbers = np.asarray([part.mean() for part in np.split(own[order], begins)])
    return found
