"""Statistical findings about the cases: significant differences, the best, the effect of each factor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spindle.base import units
from spindle.report.document.alike import alike
from spindle.report.document.model import Paragraph
from spindle.report.document.trial import Case, bytes_per_s_of, iops_of, is_names, is_streaming, unit_of
from spindle.result.record import Level
from spindle.stats.compare import common_metrics, compare
from spindle.stats.effects import Effects, effects
from spindle.stats.errors import Incomparable
from spindle.stats.estimate import mean_of_trials
from spindle.stats.ranking import rank
from spindle.stats.strata import strata
from spindle.stats.trial import Side, Trial, trial_of

MOST_SIDES = 60
"""Most cases compared in pairs; of more, only the factors are shown."""
MOST_NAMED = 3
"""Most names listed in a sentence."""
MOST_SETS = 8
"""Most sets of incomparable cases listed."""


@dataclass(frozen=True)
class Group:
    """Comparable cases."""

    name: str
    """How it differs from the other groups: `random reads`; empty if there is only one."""
    cases: Sequence[Case]

    @property
    def sides(self) -> list[Side]:
        """Their valid runs."""
        return [Side(case.label, trials) for case in self.cases if (trials := _trials(case))]

    def factors(self) -> Effects | None:
        """Effect of each trait on the main metric."""
        sides = self.sides
        if len(sides) < 3:
            return None
        try:
            metrics = common_metrics(sides)
        except Incomparable:
            return None
        trials = [trial for side in sides for trial in side.trials]
        return effects(metrics[0], trials, modelled=strata(sides).modelled)


def _trials(case: Case) -> list[Trial]:
    return [
        trial_of(
            trial.run, campaign=trial.entry.campaign, block=trial.entry.block, cell=dict(case.traits), place=number
        )
        for number, trial in enumerate(case.trials)
        if trial.level is not Level.INVALID
    ]


def groups_of(cases: Sequence[Case]) -> list[Group]:
    """Return groups of comparable cases, in the order of the cases; groups of one case are left out."""
    return [Group(name, members) for name, members in alike(cases) if len(members) > 1]


def unlike(cases: Sequence[Case]) -> Iterator[Paragraph]:
    """Say which cases are not compared with each other, and how they differ."""
    sets = alike(cases)
    if len(sets) > 1:
        listed = "; ".join(
            f"{name}: {members[0].label}" if len(members) == 1 else f"{name}: {len(members)} cases"
            for name, members in sets[:MOST_SETS]
        )
        more = f"; and {len(sets) - MOST_SETS} more" if len(sets) > MOST_SETS else ""
        yield Paragraph(f"Not compared with each other, because their requests differ: {listed}{more}.")


def words(groups: Sequence[Group]) -> Iterator[Paragraph]:
    """Yield a sentence for each metric of each group."""
    for group in groups:
        sides = group.sides
        if len(sides) < 2:
            continue
        before = f"{group.name}: " if group.name else ""
        try:
            found = list(_of(group, sides))
        except Incomparable:
            continue
        yield from (Paragraph(f"{before}{text}") for text in found)


def _of(group: Group, sides: list[Side]) -> Iterator[str]:
    if len(sides) == 2:
        comparison = compare(sides)
        yield from (_sentence(finding.words) for finding in comparison.findings)
        yield from comparison.notes[:2]
        return
    yield from _range(group)
    if len(sides) > MOST_SIDES:
        yield f"{len(sides)} cases are too many for a test of each pair; none is called best."
        known = group.factors()
        if known is not None and known.relative and known.tested and (text := explained(known)):
            yield text
        return
    if all(len(side.trials) < 2 for side in sides):
        yield "One run of each: significance cannot be tested, none is called best."
        return
    for name in common_metrics(sides):
        ranking = rank(name, sides, strata(sides))
        if ranking is not None:
            yield _sentence(ranking.words)


def _sentence(text: str) -> str:
    first = text[:1].upper() if text[1:2].isalpha() else text[:1]  # not the `r` of `r/s`
    return f"{first}{text[1:]}" + ("" if text.endswith(".") else ".")


def _range(group: Group) -> Iterator[str]:
    """Give the range of the means. No case is named: the test that follows decides which differ."""
    believed = [case for case in group.cases if case.level is not Level.INVALID]
    if len(believed) < 2:
        return
    streaming = is_streaming(believed[0].trials[0].run)
    least, *_, most = sorted(believed, key=lambda case: rate(case, streaming))
    yield (
        f"Throughput of {len(believed)} cases: from {_rate_words(least, streaming)} to {_rate_words(most, streaming)}."
    )


def rate(case: Case, streaming: bool) -> float:
    """Return the geometric mean over the trials: bytes per second of streams, else requests per second."""
    rates = [bytes_per_s_of(trial.run) if streaming else iops_of(trial.run) for trial in case.trials]
    return mean_of_trials(rates)


def _rate_words(case: Case, streaming: bool) -> str:
    if streaming:
        return units.rate(rate(case, streaming))
    return f"{units.count(rate(case, streaming))} {unit_of(case)}"


def single(case: Case) -> Paragraph:
    """Describe the only case."""
    run = case.trials[0].run
    latencies = [mean for trial in case.trials if (mean := trial.run.figures.mean_latency_ns()) is not None]
    text = f"{run.workload.name} on {run.target.place}: {_rate_words(case, False)}" + (
        "" if is_names(run) else f", {units.rate(rate(case, True))}"
    )
    if latencies:
        text += f", {units.duration(mean_of_trials(latencies))} mean latency"
    if len(case.trials) > 1:
        text += f" (geometric mean of {len(case.trials)} runs)"
    return Paragraph(text + ".")


def explained(known: Effects) -> str:
    """`depth explains 91 % of the differences; scheduler explains 7.3 %.`; empty without significant effects."""
    clear = [effect for effect in known.effects if effect.significant and len(effect.factors) == 1]
    if not clear:
        return ""
    shares = [f"{effect.name} explains {units.percent(effect.share)}" for effect in clear]
    return f"{some([f'{shares[0]} of the differences', *shares[1:]], '; ')}."


def some(names: Sequence[str], between: str) -> str:
    """List the first of them, and the number of the others."""
    more = len(names) - MOST_NAMED
    return between.join([*names[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
