"""Several objectives: each trial of the search looks for the best of another mixture of them, and the points that no
other is expected to beat in every objective are the front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spindle.search.process import Process, fitted
from spindle.search.space import Numbers, Point, Space
from spindle.search.strategies import LIKELY, feasible
from spindle.search.trials import Goal, TrialPoint, belief

_LINEAR = 0.05
"""Share of the sum beside the least of the weighted objectives (Knowles, IEEE Trans. Evolutionary Computation 10 (2006)
50-66)."""
_NEAREST = 6
_ALIKE = 0.02
"""Points are alike if they differ by no more than this share of the front's reach in each objective."""


@dataclass(frozen=True)
class Scored:
    """A trial with the merit of each objective: higher is better. None: it failed."""

    trial: TrialPoint
    merits: tuple[float, ...] | None


def scored(
    trials: Sequence[TrialPoint], values: Sequence[tuple[float | None, ...]], higher: Sequence[bool]
) -> list[Scored]:
    """Trials with merits on a scale of ratios where all values of an objective are above 0."""
    relative = [all(one[at] is None or (one[at] or 0) > 0 for one in values) for at in range(len(higher))]
    found = []
    for trial, own in zip(trials, values, strict=True):
        merits = [
            (1 if up else -1) * (math.log(value) if ratio else value)
            for value, up, ratio in zip(own, higher, relative, strict=True)
            if value is not None
        ]
        found.append(Scored(trial, tuple(merits) if len(merits) == len(higher) else None))
    return found


def mixed(trials: Sequence[Scored], weights: Sequence[float]) -> list[TrialPoint]:
    """The trials with one value: the least of the weighted objectives, each from 0 to 1 over the trials."""
    known = np.asarray([one.merits for one in trials if one.merits is not None])
    if not len(known):
        return [replace(one.trial, value=None) for one in trials]
    low, reach = known.min(axis=0), np.ptp(known, axis=0)
    reach[reach == 0] = 1.0
    found = []
    for one in trials:
        if one.merits is None:
            found.append(replace(one.trial, value=None))
            continue
        parts = np.asarray(weights) * (np.asarray(one.merits) - low) / reach
        # As a logarithm is taken of values above 0.
        found.append(replace(one.trial, value=math.exp(float(parts.min() + _LINEAR * parts.sum()))))
    return found


def weights(at: int, count: int) -> tuple[float, ...]:
    """The mixture of trial number `at`: spread evenly over all mixtures, ends included."""
    steps = 5
    if count == 2:
        share = (2 * at % steps) / (steps - 1)
        return (1 - share, share)
    turn = at % (count + 1)
    return tuple(1.0 / count if turn == count else float(turn == one) for one in range(count))


def front(space: Space, trials: Sequence[Scored], goal: Goal, start: Point, most: int) -> list[Point]:
    """Points that are expected to be on the front, at most `most`, spread along it, without the start. The bounds are
    those of `goal`.
    """
    known = [one for one in trials if one.merits is not None]
    if not known:
        return []
    points = [one.trial.point for one in known]
    blocks = [one.trial.block for one in known]
    objectives = np.asarray([one.merits for one in known])
    processes = [fitted(space, points, list(column), blocks) for column in objectives.T]
    tried = list(dict.fromkeys(points))
    near = {
        other: None
        for process in processes
        for at in np.argsort(-process.at(tried)[0])[:_NEAREST]
        for other in space.neighbours(tried[at])
    }
    candidates = list(dict.fromkeys([*tried, *near]))
    if goal.limits:
        found = belief(space, [one.trial for one in trials], goal)
        assert found is not None
        safe = feasible(found, candidates)
        candidates = [one for one, share in zip(candidates, safe, strict=True) if share >= LIKELY]
    if not candidates:
        return []
    means = np.stack([process.at(candidates)[0] for process in processes], axis=1)
    kept = [at for at in range(len(candidates)) if not _is_beaten(means, at)]
    points = _simplest(processes, [candidates[at] for at in kept], start)
    if not points:
        return []
    ends = np.stack([process.at(points)[0] for process in processes], axis=1)
    along = np.argsort(ends[:, 0], kind="stable")
    return [points[along[at]] for at in _spread(ends[along], most)]


def _is_beaten(means: Numbers, at: int) -> bool:
    others = (means >= means[at]).all(axis=1) & (means > means[at]).any(axis=1)
    return bool(others.any())


def _simplest(processes: Sequence[Process], kept: Sequence[Point], start: Point) -> list[Point]:
    """The point with the fewest changes from the start, of points that are alike, and none that is like the start:
    settings that do not matter stay as they are. Alike: no difference in any objective is expected beyond its standard
    error, or beyond `_ALIKE` of the front.
    """
    near = [_ALIKE * float(np.ptp(process.at([start, *kept])[0])) for process in processes]

    def alike(one: Point, other: Point) -> bool:
        differences = (process.contrast([one], [other]) for process in processes)
        return all(abs(change) <= max(least, error) for (change, error), least in zip(differences, near, strict=True))

    taken = [start]
    for point in sorted(kept, key=lambda point: sum(a != b for a, b in zip(point, start, strict=True))):
        if not any(alike(point, other) for other in taken):
            taken.append(point)
    return taken[1:]


def _spread(means: Numbers, most: int) -> list[int]:
    """Numbers of at most `most` points along the front: both ends, then each time the one farthest from the others."""
    if len(means) <= most:
        return list(range(len(means)))
    scaled = (means - means.min(axis=0)) / np.maximum(np.ptp(means, axis=0), 1e-12)
    chosen = [0, len(means) - 1][:most]
    while len(chosen) < most:
        apart = np.abs(scaled[:, None, :] - scaled[None, chosen, :]).sum(axis=2).min(axis=1)
        chosen.append(int(np.argmax(apart)))
    return sorted(set(chosen))
