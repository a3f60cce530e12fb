"""What statistics allow one to say of the cases: which differ, which is best, what each factor does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spindle.report.document.model import Words
from spindle.report.document.traits import place
from spindle.report.document.trial import Case, bytes_per_s_of, iops_of, is_observed, is_streaming
from spindle.result import units
from spindle.result.record import Level
from spindle.stats.compare import common_metrics, compare
from spindle.stats.effects import Effects, effects
from spindle.stats.errors import Incomparable
from spindle.stats.estimate import mean_of_trials
from spindle.stats.ranking import rank
from spindle.stats.strata import strata
from spindle.stats.trial import Side, Trial, trial_of

MOST_SIDES = 60
"""More are told by their factors alone."""


@dataclass(frozen=True)
class Group:
    """Cases that can be compared: streams with streams, and requests of the same mix."""

    name: str
    """`reads`, `20 % writes`; empty if there is only one."""
    cases: Sequence[Case]

    @property
    def sides(self) -> list[Side]:
        """What is believed of them."""
        return [Side(case.label, trials) for case in self.cases if (trials := _trials(case))]

    def factors(self) -> Effects | None:
        """What each trait does to the metric that tells most."""
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
    """In the order of the cases; those of one case say nothing."""
    found: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        run = case.trials[0].run
        mixes = tuple(stream.mix.of_calls for stream in run.workload.streams)
        observed = run.workload.name if is_observed(run) else None
        found.setdefault((is_streaming(run), mixes, observed), []).append(case)
    several = len(found) > 1
    return [Group(_name(members) if several else "", members) for members in found.values() if len(members) > 1]


def _name(cases: Sequence[Case]) -> str:
    run = cases[0].trials[0].run
    if is_observed(run):
        return run.workload.name
    shares = [stream.mix.of_calls for stream in run.workload.streams]
    mean = sum(shares) / len(shares)
    kind = "reads" if mean == 0 else "writes" if mean == 1 else f"{units.percent(mean)} writes"
    return f"sequential {kind}" if is_streaming(run) else kind


def words(groups: Sequence[Group]) -> Iterator[Words]:
    """A sentence for each metric of each group."""
    for group in groups:
        sides = group.sides
        if len(sides) < 2:
            continue
        before = f"{group.name}: " if group.name else ""
        try:
            found = list(_of(group, sides))
        except Incomparable:
            continue
        yield from (Words(f"{before}{text}") for text in found)


def _of(group: Group, sides: list[Side]) -> Iterator[str]:
    if len(sides) == 2:
        comparison = compare(sides)
        yield from (_sentence(finding.words) for finding in comparison.findings)
        yield from comparison.notes[:2]
        return
    yield _extremes(group)
    if len(sides) > MOST_SIDES or all(len(side.trials) < 2 for side in sides):
        return
    for name in common_metrics(sides):
        ranking = rank(name, sides, strata(sides))
        if ranking is not None:
            yield _sentence(ranking.words)


def _sentence(text: str) -> str:
    first = text[:1].upper() if text[1:2].isalpha() else text[:1]  # not the `r` of `r/s`
    return f"{first}{text[1:]}" + ("" if text.endswith(".") else ".")


def _extremes(group: Group) -> str:
    believed = [case for case in group.cases if case.level is not Level.INVALID]
    streaming = is_streaming(believed[0].trials[0].run)
    ranked = sorted(believed, key=lambda case: -rate(case, streaming))
    best, least = ranked[0], ranked[-1]
    text = (
        f"Most throughput of {len(group.cases)} cases: {best.label}, {_rate_words(best, streaming)}; "
        f"least: {least.label}, {_rate_words(least, streaming)}"
    )
    low = rate(least, streaming)
    return text + (f" (a factor of {units.significant(rate(best, streaming) / low, 2)})." if low else ".")


def rate(case: Case, streaming: bool) -> float:
    """Geometric mean over the trials: bytes per second of streams, else requests per second."""
    rates = [bytes_per_s_of(trial.run) if streaming else iops_of(trial.run) for trial in case.trials]
    return mean_of_trials(rates)


def _rate_words(case: Case, streaming: bool) -> str:
    return units.rate(rate(case, streaming)) if streaming else f"{units.count(rate(case, streaming))} IOPS"


def single(case: Case) -> Words:
    """The one case there is."""
    run = case.trials[0].run
    latencies = [mean for trial in case.trials if (mean := trial.run.figures.mean_latency_ns()) is not None]
    text = (
        f"{run.workload.name} on {place(run.target)}: {units.count(rate(case, False))} IOPS, "
        f"{units.rate(rate(case, True))}"
    )
    if latencies:
        text += f", {units.duration(mean_of_trials(latencies))} mean latency"
    if len(case.trials) > 1:
        text += f" (geometric mean of {len(case.trials)} runs)"
    return Words(text + ".")
