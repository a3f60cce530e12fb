"""A gate for changes: detects losses in any metric.

Two one-sided tests against the threshold: *lost* if the loss exceeds it with the requested confidence (of all metrics
together: Holm), *fine* if a larger loss is excluded, else *unclear*, and more trials are needed. A significant loss
that may be below the threshold is unclear too; the text says so. *Untested*: no number of such trials could answer. One
run on each side, or all of one side before all of the other, unless the baseline has several earlier sessions, which
show how much sessions differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spindle.base.numbers import as_change
from spindle.stats.arrangement import APART
from spindle.stats.compare import common_metrics, order_notes
from spindle.stats.difference import Difference, TestedDifference, examine
from spindle.stats.errors import Incomparable
from spindle.stats.estimate import kind_of_mean
from spindle.stats.history import history_notes
from spindle.stats.likeness import Likeness
from spindle.stats.likeness import of as likeness_of
from spindle.stats.names import Direction, metric
from spindle.stats.power import sure_noise, trials_needed
from spindle.stats.series import of_run
from spindle.stats.sessions import FEWEST_SESSIONS
from spindle.stats.strata import strata
from spindle.stats.trial import Side

Outcome = Literal["fine", "lost", "unclear", "untested"]
SESSIONS = (
    "The baseline is from earlier sessions: their differences count as noise. A change of the machine that "
    "is larger counts as a loss."
)
TOO_FEW = (
    f"A baseline of {FEWEST_SESSIONS} earlier sessions and more is tested (such as nights: six hours and more apart, "
    "at about the same hour, the new runs not much later): tag each night's runs."
)
_WORST: tuple[Outcome, ...] = ("lost", "untested", "unclear", "fine")


@dataclass(frozen=True)
class Check:
    """The test of one metric. Losses are shares of the baseline; a negative one is a gain."""

    metric: str
    outcome: Outcome
    baseline: float
    """Mean (geometric)."""
    now: float
    loss: float
    at_least: float | None
    """One-sided bounds with the confidence; None: the spread is unknown."""
    at_most: float | None
    p: float | None
    """p of these figures if the loss were at the threshold."""
    trials_baseline: int
    trials_now: int
    needed: int | None
    """Trials of each side that distinguish a loss of twice the threshold from one within it (a threshold of 0: of 5
    %).
    """
    words: str


@dataclass(frozen=True)
class Gate:
    """The tests of all metrics."""

    baseline: str
    now: str
    threshold: float
    confidence: float
    checks: list[Check]
    means: str
    """Kind of the means in `baseline` and `now`: `geometric means`."""
    likeness: Likeness
    notes: list[str]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome."""
        found = {check.outcome for check in self.checks}
        return next(outcome for outcome in _WORST if outcome in found)


def gate(
    baseline: Side,
    now: Side,
    metrics: Sequence[str] = (),
    *,
    threshold: float = 0.05,
    confidence: float = 0.95,
    power: float = 0.9,
    across_time: bool = False,
    notes: Sequence[str] = (),
) -> Gate:
    """Compare `now` with `baseline`; `across_time` as in `compare`. Raises Incomparable: one line."""
    sides = [baseline, now]
    chosen = list(metrics) or common_metrics(sides)
    for name in chosen:
        if metric(name).better is Direction.NEITHER:
            raise Incomparable(f"`metric=` {name}: neither more nor less of it is a loss; choose another")
    known = strata(sides, across_time=across_time, history=True)
    tested = [examine(name, baseline, now, known, of_run) for name in chosen]
    ps = [_beyond(each, threshold) for each in tested]
    decided = _step_down(ps, 1 - confidence)
    checks = [
        _check(each, p, lost, share, threshold, confidence, power)
        for each, p, (lost, share) in zip(tested, ps, decided, strict=True)
    ]
    order = order_notes([each.found for each in tested], across_time=across_time)
    if any(each.found.basis == "sessions" for each in tested):
        order = [SESSIONS, *order]
    elif any(each.found.obstacle == APART for each in tested):
        order = [*order, TOO_FEW]
    lines = [*notes, *order, *history_notes(sides, chosen[0])]
    means = kind_of_mean(*([1.0 if each.found.relative else 0.0] for each in tested))
    return Gate(baseline.label, now.label, threshold, confidence, checks, means, likeness_of(sides), lines)


def _margin(found: Difference, threshold: float) -> float | None:
    """The threshold as a difference on the scale of the test; None if the baseline is 0."""
    up = metric(found.metric).better is Direction.LOWER
    if found.relative:
        return math.log1p(threshold if up else -threshold)
    if found.mean_a <= 0:
        return None
    return found.mean_a * (threshold if up else -threshold)


def _worse(found: Difference) -> float:
    """Direction that is worse."""
    return 1.0 if metric(found.metric).better is Direction.LOWER else -1.0


def _known(each: TestedDifference, threshold: float) -> bool:
    return (
        each.contrast is not None
        and each.contrast.freedom > 0
        and each.found.basis != "within-run"
        and _margin(each.found, threshold) is not None
    )


def _beyond(each: TestedDifference, threshold: float) -> float | None:
    """One-sided p of a loss no larger than the threshold."""
    if not _known(each, threshold):
        return None
    contrast, margin = each.contrast, _margin(each.found, threshold)
    assert contrast is not None
    assert margin is not None
    return contrast.beyond(margin, _worse(each.found))


def _step_down(ps: Sequence[float | None], alpha: float) -> list[tuple[bool, float]]:
    """Holm: true for each that is rejected, and the error probability of its step."""
    order = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    found = [(False, alpha / max(len(order), 1))] * len(ps)
    for rank, (p, at) in enumerate(order):
        share = alpha / (len(order) - rank)
        if p >= share:
            for _, rest in order[rank:]:
                found[rest] = (False, share)
            break
        found[at] = (True, share)
    return found


def _check(
    each: TestedDifference, p: float | None, lost: bool, share: float, threshold: float, confidence: float, power: float
) -> Check:
    found = each.found
    least = most = None
    outcome: Outcome = "lost" if lost else "unclear"
    loss = _loss(found, found.change)
    if found.obstacle or found.trials_a == found.trials_b == 1:
        outcome = "untested"
    if p is not None:
        least, most = _bounds(each, share)
        if not lost and most <= threshold + 1e-12:
            outcome = "fine"
    needed = _needed(found, threshold, confidence, power)
    return Check(
        metric=found.metric,
        outcome=outcome,
        baseline=found.mean_a,
        now=found.mean_b,
        loss=loss,
        at_least=least,
        at_most=most,
        p=p,
        trials_baseline=found.trials_a,
        trials_now=found.trials_b,
        needed=needed,
        words=_words(found, outcome, loss, least, most, threshold, needed),
    )


def _loss(found: Difference, change: float) -> float:
    """A change as a lost share of the baseline."""
    share = change if found.relative else change / found.mean_a if found.mean_a > 0 else math.nan
    return _worse(found) * share


def _bounds(each: TestedDifference, share: float) -> tuple[float, float]:
    """One-sided limits of the loss."""
    contrast = each.contrast
    assert contrast is not None
    reach = contrast.reach(1 - share)
    ends = [contrast.difference - reach, contrast.difference + reach]
    if each.found.relative:
        ends = [math.expm1(min(end, 700.0)) for end in ends]
    low, high = sorted(_loss(each.found, end) for end in ends)
    return low, high


def _needed(found: Difference, threshold: float, confidence: float, power: float) -> int | None:
    if found.noise is None or not found.relative or found.basis in ("one-run", "sessions"):
        return None
    beyond = threshold or 0.05
    noise = sure_noise(math.log1p(found.noise), found.freedom)
    # One-sided at `confidence` is two-sided at 2 x confidence - 1.
    return trials_needed(beyond, noise, power=power, confidence=2 * confidence - 1, blocks=found.basis == "blocks")


def _words(
    found: Difference,
    outcome: Outcome,
    loss: float,
    least: float | None,
    most: float | None,
    threshold: float,
    needed: int | None,
) -> str:
    if least is None or most is None:
        if not found.trials_a or not found.trials_b:
            return "unclear: not measured on both sides"
        if found.mean_a <= 0:
            return "unclear: the baseline is 0"
        why = found.obstacle or "one run on each side does not show how much of it is chance"
        return f"not tested: {_size(loss)} was seen, but {why}"
    more = ""
    if needed is not None and needed > min(found.trials_a, found.trials_b):
        more = f"; {needed} trials of each would decide"
    limit = f"{100 * threshold:g} %"
    match outcome:
        case "lost":
            return f"lost {as_change(loss)}, significantly more than {as_change(max(least, threshold))}: beyond {limit}"
        case "fine" if most <= 0 < -loss:
            return f"fine: a gain of {as_change(-loss)}, at least {as_change(-most)}"
        case "fine":
            return f"fine: {_size(loss)}, a loss beyond {limit} is excluded (at most {as_change(max(most, 0.0))})"
        case _ if least > 0:
            return (
                f"unclear: a loss is significant ({as_change(least)} to {as_change(most)}), but not that it is beyond "
                f"{limit}{more}"
            )
        case _:
            return f"unclear: between {_size(least)} and {_size(most)}{more}"


def _size(loss: float) -> str:
    if loss == 0:
        return "no change"
    return f"a {'loss' if loss > 0 else 'gain'} of {as_change(abs(loss))}"
