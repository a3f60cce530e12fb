"""A Monte Carlo simulation of an array: many lives at a time, with importance sampling.

It shares no code with the chain but the description of the array: it keeps the set of failed drives of every life, and
draws times. A loss is rare, so failures are drawn more often than they happen, and each life counts by its likelihood
ratio: the first failure always falls within the time (forcing), a failure while another drive is failed is about as
likely as the end of the rebuild (failure biasing: Shahabuddin, Management Science 40(3), 1994), every second failure
falls on a drive whose failure loses data, and unreadable sectors are as likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .group import HOURS_PER_YEAR, Group
from .redundancy import Redundancy, redundancy_of

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

BIASED = 0.4
"""Expected failures, as drawn, in the time that an array is without one drive."""
FATAL = 0.5
"""Share of the drawn failures that fall on a drive whose failure loses data, if there is one."""
SECTORS = 0.5
"""Expected unreadable sectors, as drawn, in a rebuild without redundancy."""
BATCH = 20_000
"""Lives at a time."""
Z95 = 1.959964
LEAST_TILT = 1e-6
"""Skewness that is taken as none: the formula would lose its digits."""


class Estimate(Struct, frozen=True, kw_only=True):
    """A probability with its 95 % interval of sampling."""

    probability: float
    low: float
    high: float
    by_drives: float
    by_sectors: float
    lives: int

    @property
    def relative_error(self) -> float:
        """Half of the interval as a share of the probability."""
        return (self.high - self.low) / 2 / self.probability if self.probability else math.inf


def estimate(
    group: Group,
    years: float = 1.0,
    *,
    lives: int = BATCH,
    within: float | None = None,
    most_lives: int = 4_000_000,
    seed: int = 1,
    fixed: bool = False,
) -> Estimate:
    """Estimate the probability of a loss within `years`, from a whole array on.

    `lives`: number to simulate at least; `within`: go on until half of the interval is at most this share of the
    probability, or `most_lives`. `fixed`: each rebuild takes exactly its mean time, instead of an Erlang time.
    """
    random = np.random.default_rng(seed)
    done, sums, squares, cubes, drives = 0, 0.0, 0.0, 0.0, 0.0
    while True:
        weights, by_drives = _Lives(group, years, min(BATCH, max(lives, 1000)), random, fixed).run()
        done += len(weights)
        sums += float(weights.sum())
        squares += float((weights**2).sum())
        cubes += float((weights**3).sum())
        drives += float(weights[by_drives].sum())
        mean = sums / done
        low, high = interval(done, mean, squares / done, cubes / done)
        enough = within is None or (mean > 0 and (high - low) / 2 <= within * mean) or done >= most_lives
        if done >= lives and enough:
            break
    return Estimate(
        probability=mean,
        low=max(low, 0.0),
        high=min(high, 1.0),
        by_drives=drives / done,
        by_sectors=max(mean - drives / done, 0.0),
        lives=done,
    )


def interval(count: int, mean: float, mean_square: float, mean_cube: float) -> tuple[float, float]:
    """Return the 95 % interval of a mean, from the first three moments of a sample of `count`.

    The weights of importance sampling are skewed, and a sample without its rare large weights has too small a mean and
    too small a spread at once. Hall's transformation takes the skewness out of the studentized mean (Peter Hall, "On
    the Removal of Skewness by Transformation", Journal of the Royal Statistical Society B 54(1), 1992).
    """
    variance = mean_square - mean**2
    if variance <= 0:
        return mean, mean
    error = math.sqrt(variance / count)
    skewness: float = (mean_cube - 3 * mean * mean_square + 2 * mean**3) / variance**1.5
    tilt = skewness / math.sqrt(count)

    def studentized(normal: float) -> float:
        if abs(tilt) < LEAST_TILT:
            return normal
        root = math.cbrt(1 + tilt * (normal - tilt / 6))
        return 3 / tilt * (root - 1)

    return mean - error * studentized(Z95), mean - error * studentized(-Z95)


class _Lives:
    """Lives of an array, event by event until each has lost data or come to its end. Times are hours from the start."""

    def __init__(self, group: Group, years: float, count: int, random: np.random.Generator, fixed: bool) -> None:
        self._group, self._of, self._random, self._fixed = group, redundancy_of(group), random, fixed
        self._end = years * HOURS_PER_YEAR
        self._fatal = _lost_by_one_more(self._of)
        self.now = np.zeros(count)
        self.log_weight = np.zeros(count)
        self.failed = np.zeros((count, self._of.drives), dtype=bool)
        self.ordered = np.zeros(count, dtype=np.int64)
        self.stage = np.zeros(count, dtype=np.int64)
        self.rebuilt = np.full(count, -1)
        self.stage_left = np.full(count, np.inf)
        self._expected = group.drives * group.failure_rate * self._end
        self._bias_within = BIASED / max(1.0, self._expected)

    def run(self) -> tuple[Numbers, Flags]:
        """Return (weight of each life that lost data, 0 of the others; whether it lost it by failed drives)."""
        weights = np.zeros(len(self.now))
        by_drives = np.zeros(len(self.now), dtype=bool)
        live = np.arange(len(self.now))
        self._first_failure()
        lost = self._lost_now(live)
        self._start_rebuilds(live)
        while True:
            weights[live[lost]] = np.exp(self.log_weight[live[lost]])
            by_drives[live[lost]] = True
            live = live[~lost & (self.now[live] < self._end)]
            if not live.size:
                return weights, by_drives
            lost, hit = self._step(live)
            weights[live[hit]] = np.exp(self.log_weight[live[hit]])
            live, lost = live[~hit], lost[~hit]

    def _hazard(self, hours: Numbers) -> Numbers:
        """Equivalent hours at the mean rate until a time."""
        wear = self._group.wear
        if wear.shape == 1:
            return hours
        life = wear.life_years * HOURS_PER_YEAR
        before = wear.age_years * HOURS_PER_YEAR
        grown: Numbers = life * ((before + hours) / life) ** wear.shape - life * (before / life) ** wear.shape
        return grown

    def _hours(self, hazard: Numbers) -> Numbers:
        """The inverse of `_hazard`."""
        wear = self._group.wear
        if wear.shape == 1:
            return hazard
        life = wear.life_years * HOURS_PER_YEAR
        before = wear.age_years * HOURS_PER_YEAR
        hours: Numbers = life * (hazard / life + (before / life) ** wear.shape) ** (1 / wear.shape) - before
        return hours

    def _first_failure(self) -> None:
        """Draw the first failure within the time, in every life."""
        rate = self._of.drives * self._group.failure_rate
        whole = float(self._hazard(np.array([self._end]))[0])
        certain = -math.expm1(-rate * whole)
        drawn = -np.log1p(-self._random.random(len(self.now)) * certain) / rate
        self.now = self._hours(drawn)
        self.log_weight += math.log(certain)
        self._fail(np.arange(len(self.now)))

    def _step(self, live: NDArray[np.int64]) -> tuple[Flags, Flags]:
        """Carry each live life to its next event. Returns (lost by a failed drive, lost by an unreadable sector)."""
        now, failed = self.now[live], self.failed[live].sum(axis=1)
        rate = (
            (self._of.drives - failed)
            * self._group.failure_rate
            * self._group.batch_correlation ** failed.astype(float)
        )
        boost = self._boost(live, failed, rate)
        begin = self._hazard(now)
        drawn = self._random.exponential(size=len(live)) / (rate * boost)
        failure = self._hours(begin + drawn) - now
        arrival = self._arrivals(live)
        stage = self.stage_left[live]
        passed = np.minimum(np.minimum(failure, arrival), np.minimum(stage, self._end - now))
        self.log_weight[live] += (boost - 1) * rate * (self._hazard(now + passed) - begin)
        self.now[live] += passed
        self.stage_left[live] -= passed
        fails, arrives, ends = passed == failure, passed == arrival, passed == stage
        self.log_weight[live[fails]] -= np.log(boost[fails])
        hit = np.zeros(len(live), dtype=bool)
        hit[ends] = self._stage_ends(live[ends])
        self._fail(live[fails])
        self.ordered[live[arrives & ~fails]] -= 1
        lost = np.zeros(len(live), dtype=bool)
        lost[fails] = self._lost_now(live[fails])
        self._start_rebuilds(live[~lost & ~hit])
        return lost, hit

    def _boost(self, live: NDArray[np.int64], failed: NDArray[np.int64], rate: Numbers) -> Numbers:
        """Factor by which failures are drawn more often while a drive is failed."""
        group = self._group
        waits = self.rebuilt[live] < 0
        hours = group.rebuild_hours + np.where(waits, group.replace_hours, 0.0)
        slope = self._slope(self.now[live])
        boosted: Numbers = np.where(failed > 0, np.maximum(1.0, self._bias_within / (rate * slope * hours)), 1.0)
        return boosted

    def _slope(self, now: Numbers) -> Numbers:
        """Failure rate over the next day as a multiple of the mean."""
        day = 24.0
        slope: Numbers = (self._hazard(now + day) - self._hazard(now)) / day
        return np.maximum(slope, 1e-9)

    def _arrivals(self, live: NDArray[np.int64]) -> Numbers:
        ordered = self.ordered[live]
        drawn = self._random.exponential(size=len(live)) * self._group.replace_hours
        arrivals: Numbers = np.where(ordered > 0, drawn / np.maximum(ordered, 1), np.inf)
        return arrivals

    def _fail(self, which: NDArray[np.int64]) -> None:
        """Choose the drive that fails, and count its replacement as ordered."""
        if not which.size:
            return
        working = ~self.failed[which]
        fatal = self._fatal(self.failed[which]) & working
        count, all_working = fatal.sum(axis=1), working.sum(axis=1)
        share = count / all_working
        drawn_share = np.where((share > 0) & (share < FATAL), FATAL, share)
        to_fatal = self._random.random(len(which)) < drawn_share
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(to_fatal, share / drawn_share, (1 - share) / (1 - drawn_share))
        self.log_weight[which] += np.log(ratio)
        choice = np.where(to_fatal[:, None], fatal, working & ~fatal)
        keys = np.where(choice, self._random.random(choice.shape), -1.0)
        self.failed[which, keys.argmax(axis=1)] = True
        if self._group.replace_hours:
            self.ordered[which] += 1

    def _lost_now(self, which: NDArray[np.int64]) -> Flags:
        """True where the failed drives are more than the array survives."""
        failed = self.failed[which]
        if self._of.window:
            return _windows_lost(self._of, failed)
        lost: Flags = np.any(_failed_by_group(self._of, failed) > self._of.tolerance, axis=1)
        return lost

    def _start_rebuilds(self, which: NDArray[np.int64]) -> None:
        """Begin the rebuild of a failed drive, any of them, where a replacement is there and none is running."""
        count = self.failed[which].sum(axis=1)
        ready = (self.rebuilt[which] < 0) & (count > 0) & (self._group.spares + count - self.ordered[which] >= 1)
        begin = which[ready]
        if begin.size:
            keys = np.where(self.failed[begin], self._random.random((len(begin), self._of.drives)), -1.0)
            self.rebuilt[begin] = keys.argmax(axis=1)
            self.stage[begin] = 0
            self.stage_left[begin] = self._stage_hours(len(begin))

    def _stage_hours(self, count: int) -> Numbers:
        mean = self._group.rebuild_hours / self._group.rebuild_stages
        return np.full(count, mean) if self._fixed else self._random.exponential(size=count) * mean

    def _stage_ends(self, which: NDArray[np.int64]) -> Flags:
        """End a stage of the rebuild; True where it read an unreadable sector without redundancy."""
        hit = self._unreadable(which)
        self.stage[which] += 1
        whole = self.stage[which] >= self._group.rebuild_stages
        done = which[whole]
        self.failed[done, self.rebuilt[done]] = False
        self.rebuilt[done] = -1
        self.stage_left[which] = self._stage_hours(len(which))
        self.stage_left[done] = np.inf
        return hit

    def _unreadable(self, which: NDArray[np.int64]) -> Flags:
        """Draw unreadable sectors of the stage, more than there are, and weigh them."""
        stages = self._group.rebuild_stages
        share = self._without_redundancy(which)
        expected = self._expected_sectors(which) / stages
        drawn = np.maximum(expected, np.where(expected > 0, SECTORS / stages / max(1.0, self._expected), 0.0))
        chance, drawn_chance = -np.expm1(-expected) * share, -np.expm1(-drawn) * share
        hit = self._random.random(len(which)) < drawn_chance
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(hit, chance / drawn_chance, (1 - chance) / (1 - drawn_chance))
        self.log_weight[which] += np.log(ratio)
        return hit

    def _expected_sectors(self, which: NDArray[np.int64]) -> Numbers:
        if self._group.scrub_days is not None or not self._group.latent_per_year:
            return np.full(len(which), self._group.unreadable())
        return np.array([self._group.unreadable(hours / HOURS_PER_YEAR) for hours in self.now[which]])

    def _without_redundancy(self, which: NDArray[np.int64]) -> Numbers:
        """Share of the data of the rebuilt drive that no second drive can give."""
        of, failed, rebuilt = self._of, self.failed[which], self.rebuilt[which]
        if not of.window:
            groups = _failed_by_group(of, failed)
            own: Numbers = (groups[np.arange(len(which)), rebuilt // of.width] == of.tolerance).astype(float)
            return own
        total, critical = np.zeros(len(which)), np.zeros(len(which))
        for start in range(0, of.drives, of.step):
            members = [(start + at) % of.drives for at in range(of.window)]
            contains = np.isin(rebuilt, members)
            total += contains
            critical += contains & (failed[:, members].sum(axis=1) == of.window - 1)
        return critical / total


def _lost_by_one_more(of: Redundancy) -> Callable[[Flags], Flags]:
    """Return the function that marks the drives whose failure loses data."""

    def groups(failed: Flags) -> Flags:
        full = _failed_by_group(of, failed) >= of.tolerance
        return np.repeat(full, of.width, axis=1)

    def windows(failed: Flags) -> Flags:
        marked = np.zeros_like(failed)
        for start in range(0, of.drives, of.step):
            members = [(start + at) % of.drives for at in range(of.window)]
            last = failed[:, members].sum(axis=1) == of.window - 1
            marked[:, members] |= last[:, None] & ~failed[:, members]
        return marked

    return windows if of.window else groups


def _failed_by_group(of: Redundancy, failed: Flags) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = failed.reshape(len(failed), of.drives // of.width, of.width).sum(axis=2)
    return counts


def _windows_lost(of: Redundancy, failed: Flags) -> Flags:
    lost = np.zeros(len(failed), dtype=bool)
    for start in range(0, of.drives, of.step):
        lost |= failed[:, [(start + at) % of.drives for at in range(of.window)]].all(axis=1)
    return lost
