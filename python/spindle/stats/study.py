"""A complete comparison of some alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spindle.stats.compare import Comparison, common_metrics, compare
from spindle.stats.curves import Curves, curves
from spindle.stats.effects import Effects, effects
from spindle.stats.errors import Incomparable
from spindle.stats.likeness import Likeness
from spindle.stats.ranking import Ranking, rank
from spindle.stats.strata import strata
from spindle.stats.trial import Side


@dataclass(frozen=True)
class Study:
    """The findings."""

    comparison: Comparison
    """Every alternative with the first."""
    pairwise: bool
    """True if this comparison was requested, and not the ranking of many."""
    rankings: list[Ranking]
    """Rankings of three and more, in each metric."""
    effects: list[Effects]
    """Effects of a campaign's factors, in each metric."""
    curves: list[Curves]
    """Whole latency distributions, if requested."""


def study(
    sides: Sequence[Side],
    metrics: Sequence[str] = (),
    *,
    confidence: float = 0.95,
    apart: float = 0.05,
    power: float = 0.9,
    percentiles: bool = False,
    cells: bool = False,
    across_time: bool = False,
    notes: Sequence[str] = (),
) -> Study:
    """Compare sides. `cells`: they are the cells of one campaign. Raises Incomparable: one line."""
    check_names(sides, metrics)
    chosen = list(metrics) or common_metrics(sides)
    comparison = compare(sides, chosen, confidence=confidence, apart=apart, power=power, across_time=across_time)
    comparison = replace(comparison, notes=[*notes, *comparison.notes])
    if cells:  # they differ on purpose
        comparison = replace(comparison, likeness=Likeness(True, True, []))
    trials = [trial for side in sides for trial in side.trials]
    known = strata(sides, across_time=across_time)
    ranked = [rank(name, sides, known, confidence) for name in chosen] if len(sides) > 2 else []
    if ranked and not any(ranked) and all(len(side.trials) == 1 for side in sides):
        alone = "One trial of each alternative does not show how much trials scatter, so none is ranked; repeat them."
        comparison = replace(comparison, notes=[*comparison.notes, alone])
    explained = (
        [effects(name, trials, confidence, modelled=known.modelled, across_time=across_time) for name in chosen]
        if cells
        else []
    )
    drawn = curves(sides, confidence, across_time=across_time) if percentiles else []
    if percentiles and not drawn:
        lack = "No run has the histogram that a comparison of whole distributions needs."
        comparison = replace(comparison, notes=[*comparison.notes, lack])
    return Study(
        comparison=comparison,
        pairwise=not cells or len(sides) == 2,
        rankings=[each for each in ranked if each is not None],
        effects=[each for each in explained if each is not None],
        curves=drawn,
    )


def check_names(sides: Sequence[Side], metrics: Sequence[str]) -> None:
    """Raise Incomparable for a metric that no trial has."""
    import difflib

    there = sorted({name for side in sides for trial in side.trials for name in trial.values})
    for name in metrics:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=3)
            hint = f"near to it are {', '.join(near)}" if near else f"there are {', '.join(there[:12])} ..."
            raise Incomparable(f"`metric=` {name}: no run has it; {hint}")
