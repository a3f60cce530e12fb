"""Comparison of alternatives: each with the first, in every metric, with one error probability for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spindle.base.numbers import as_change
from spindle.stats import likeness
from spindle.stats.arrangement import ENOUGH_BLOCKS, NOT_MET, TWO_BLOCKS
from spindle.stats.difference import Difference, TestedDifference, examine
from spindle.stats.errors import Incomparable
from spindle.stats.estimate import kind_of_mean
from spindle.stats.history import history_notes
from spindle.stats.metric import main_metrics
from spindle.stats.names import metric
from spindle.stats.power import detectable, sure_noise, trials_needed
from spindle.stats.series import of_run
from spindle.stats.strata import strata
from spindle.stats.trial import Side
from spindle.stats.words import Sentence, sentence


@dataclass(frozen=True)
class PowerAnalysis:
    """The effect of more trials."""

    apart: float
    """The difference that should be detected, relative."""
    needed: int | None
    """Trials of each alternative that detect it with the requested power; None: too many, or the noise is unknown."""
    finds: float | None
    """Smallest difference that the existing number of trials detects with that power."""
    power: float


@dataclass(frozen=True)
class DescribedDifference:
    """One difference, in numbers and in words."""

    difference: Difference
    words: str
    outcome: Sentence
    planning: PowerAnalysis


@dataclass(frozen=True)
class Comparison:
    """The findings."""

    confidence: float
    """Confidence of all statements together."""
    sides: list[str]
    counts: list[int]
    findings: list[DescribedDifference]
    likeness: likeness.Likeness
    notes: list[str]

    @property
    def means(self) -> str:
        """Kind of the means: `geometric means`."""
        found = [finding.difference for finding in self.findings]
        return kind_of_mean(*([1.0 if each.relative else 0.0] for each in found if each.trials_a and each.trials_b))

    def of(self, name: str) -> list[DescribedDifference]:
        """The findings in one metric."""
        return [finding for finding in self.findings if finding.difference.metric == name]


def compare(
    sides: Sequence[Side],
    metrics: Sequence[str] = (),
    *,
    confidence: float = 0.95,
    apart: float = 0.05,
    power: float = 0.9,
    across_time: bool = False,
) -> Comparison:
    """Compare every side with the first, in `metrics` (empty: the most informative ones).

    The statements together have `confidence` (Holm, Scandinavian J. of Statistics 6 (1979) 65-70). `across_time`:
    compare sides that ran one after the other as if the machine had not changed. Raises Incomparable: one line.
    """
    chosen = list(metrics) or common_metrics(sides)
    known = strata(sides, across_time=across_time)
    first = sides[0]
    tested = [examine(name, first, other, known, of_run) for name in chosen for other in sides[1:]]
    found = corrected(tested, confidence)
    notes = [*_notes(sides, found), *order_notes(found, across_time=across_time), *history_notes(sides, chosen[0])]
    planned = [
        _planning(each, _whole_noise(test), apart, power, confidence, len(found))
        for test, each in zip(tested, found, strict=True)
    ]
    return Comparison(
        confidence=confidence,
        sides=[side.label for side in sides],
        counts=[len(side.trials) for side in sides],
        findings=[
            DescribedDifference(each, *sentence(each, metric(each.metric)), plan)
            for each, plan in zip(found, planned, strict=True)
        ],
        likeness=likeness.of(sides),
        notes=notes,
    )


def common_metrics(sides: Sequence[Side]) -> list[str]:
    """The most informative metrics that every side has."""
    there = [set[str]().union(*(trial.values for trial in side.trials)) for side in sides]
    common = sorted(set.intersection(*there))
    if not common:
        raise Incomparable(
            f"{', '.join(side.label for side in sides)}: no common metric; compare results of the same kind"
        )
    chosen = main_metrics(common, dict(sides[0].trials[0].values))
    moved = [name for name in chosen if any(trial.values.get(name) for side in sides for trial in side.trials)]
    return moved or chosen  # a metric that is 0 in every trial (writes of a read load) needs no comparison


def corrected(tested: Sequence[TestedDifference], confidence: float) -> list[Difference]:
    """Holm's step-down over all of them. Each interval has the confidence of the step that decided it, so that
    interval and decision agree.
    """
    ordered = sorted((each for each in tested if each.found.p is not None), key=lambda each: each.found.p or 0.0)
    count, alpha = len(ordered), 1 - confidence
    decided: dict[int, Difference] = {}
    running, stopped = 0.0, None
    for rank, each in enumerate(ordered):
        running = min(1.0, max(running, (count - rank) * (each.found.p or 0.0)))
        significant = stopped is None and running < alpha
        if not significant and stopped is None:
            stopped = count - rank
        share = alpha / (count - rank if stopped is None else stopped)
        decided[id(each)] = each.at(1 - share, running, significant)
    return [decided.get(id(each), each.found) for each in tested]


def _whole_noise(tested: TestedDifference) -> float:
    """Standard deviation of a trial, with changes from block to block if the test counts them; else 0. On the scale
    of the test.
    """
    also = tested.contrast.also if tested.contrast is not None else None
    return also.spread if also is not None else 0.0


def _planning(
    found: Difference, whole: float, apart: float, power: float, confidence: float, comparisons: int
) -> PowerAnalysis:
    if found.noise is None or not found.relative or found.basis == "one-run":
        return PowerAnalysis(apart, None, None, power)
    noise = math.log1p(found.noise)
    few = min(found.trials_a, found.trials_b)
    blocks = found.basis == "blocks"
    few_blocks = max(noise, whole) if blocks and few < ENOUGH_BLOCKS else noise
    finds = detectable(few, few_blocks, power=power, confidence=confidence, comparisons=comparisons, blocks=blocks)

    def needed(noise: float) -> int | None:
        return trials_needed(
            apart,
            sure_noise(noise, found.freedom),
            power=power,
            confidence=confidence,
            comparisons=comparisons,
            blocks=blocks,
        )

    least = needed(noise)
    if whole > noise and least is not None and least < ENOUGH_BLOCKS:  # few blocks must be equal, many need not
        least = max(least, min(needed(whole) or ENOUGH_BLOCKS, ENOUGH_BLOCKS))
    return PowerAnalysis(apart, least, finds, power)


def _notes(sides: Sequence[Side], found: Sequence[Difference]) -> list[str]:
    notes: list[str] = []
    bases = {each.basis for each in found}
    if "within-run" not in bases and any(each.trials_a == each.trials_b == 1 for each in found):
        notes.append("One run on each side does not show how much runs differ; repeat them.")
    if "within-run" in bases:
        notes.append(
            "One run on each side: the interval is that of each run's own mean, second by second. How much "
            "one run differs from the next is unknown, so nothing is claimed beyond these two runs; repeat them."
        )
    if "one-run" in bases:
        notes.append(
            "A side with a single run is compared by the spread of the other, as if both had the same; a second run "
            "would show it."
        )
    if any(each.identical for each in found):
        notes.append(
            "The trials of each side are the same to the last digit (a model with one seed): the difference is exact "
            "for this seed, and says nothing about others."
        )
    if correlation := max((each.correlation for each in found), default=0.0):
        notes.append(
            f"Successive trials resemble each other (correlation {correlation:.2f}): the intervals are widened for it."
        )
    if left_out := max((each.left_out for each in found), default=0):
        notes.append(f"{left_out} trial{'s have' if left_out > 1 else ' has'} not every metric, and is left out there.")
    seen = {trial.id for trial in sides[0].trials}
    for other in sides[1:]:
        if both := len(seen & {trial.id for trial in other.trials}):
            notes.append(f"{both} run{'s are' if both > 1 else ' is'} both in {sides[0].label} and in {other.label}.")
    return notes


def order_notes(found: Sequence[Difference], *, across_time: bool) -> list[str]:
    """The reason why the order of the trials allows no answer, and the remedy."""
    notes = [
        f"{obstacle[:1].upper()}{obstacle[1:]}: {_remedy(obstacle)}"
        for obstacle in dict.fromkeys(each.obstacle for each in found if each.obstacle)
    ]
    if across_time:
        notes.append(
            "`across_time=`: this assumes that the machine did not change. If it did, the difference may come from it."
        )
    if unresolved := max((each.resolution for each in found if each.relative), default=0.0):
        notes.append(
            f"Trials repeat each other's figures to the last digit that can be resolved (about "
            f"{as_change(unresolved)}): "
            "they are rounded, not equal, and no interval is narrower than that. Longer trials resolve more."
        )
    return notes


def _remedy(obstacle: str) -> str:
    if obstacle == TWO_BLOCKS:
        return "make more of them."
    if obstacle == NOT_MET:
        return "compare slices that differ in one factor alone."
    return (
        "let them take turns, at least twice each, or let a campaign do so. `across_time=True` compares them as if the "
        "machine had been the same all the time."
    )
