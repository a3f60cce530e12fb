"""A difference in one sentence."""

from __future__ import annotations

from typing import Literal

from spindle.stats.difference import Difference
from spindle.stats.metric import Better, Metric

Sentence = Literal["better", "worse", "different", "alike", "unknown"]
"""What the sentence says of b: better or worse than a, different where no way is better, not told apart, nothing."""


def sentence(found: Difference, metric: Metric) -> tuple[str, Sentence]:
    """`IOPS: B is 12 % faster than A (95 % interval 9 to 15 %)`, or what else the trials allow to say."""
    head = f"{metric.words[:1].upper()}{metric.words[1:]}: "
    if found.low is None or found.high is None:
        return head + _seen(found), "unknown"
    sure = f"{_digits(100 * found.confidence)} % interval"
    if found.identical:
        if found.change == 0:
            return f"{head}{found.a} and {found.b} are equal to the last digit", "alike"
        return f"{head}{found.b} is {_by(found, metric)} than {found.a}, exactly", _judged(found, metric)
    between = f"{sure} {_between(found)}"
    runs = "in these two runs " if found.basis == "within-run" else ""
    if found.told:
        text = f"{runs}{found.b} is {_by(found, metric)} than {found.a} ({between})"
        return head + text, _judged(found, metric)
    if not found.relative:
        return f"{head}{runs}{found.a} and {found.b} cannot be told apart ({between})", "alike"
    most = max(abs(found.low), abs(found.high))
    if most > 1:
        return f"{head}{runs}nothing can be told apart: the trials scatter too much or are too few ({between})", "alike"
    return (
        f"{head}{runs}no difference larger than {percent(most)} between {found.a} and {found.b} can be told apart "
        f"({between})"
    ), "alike"


def percent(share: float, sign: bool = False) -> str:
    """`0.35 %`, `4.2 %`, `12 %`; never more digits than mean something."""
    value = 100 * share
    size = abs(value)
    if size >= 1e6:
        return f"{'-' if value < 0 else '+' if sign else ''}over 1 000 000 %"
    decimals = 0 if size >= 9.95 else 1 if size >= 0.95 else 2
    text = f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}"
    if float(text) == 0:
        return "0 %" if value == 0 else f"under {'-' if value < 0 else ''}0.01 %" if not sign else f"{text} %"
    return f"{text} %"


def _between(found: Difference) -> str:
    assert found.low is not None
    assert found.high is not None
    if not found.relative:
        return f"{found.low:+.3g} to {found.high:+.3g}"
    return f"{percent(found.low, sign=True)} to {percent(found.high, sign=True)}"


def _seen(found: Difference) -> str:
    if not found.trials_a or not found.trials_b:
        without = [label for label, count in ((found.a, found.trials_a), (found.b, found.trials_b)) if not count]
        return f"{' and '.join(without)} {'has' if len(without) == 1 else 'have'} no such figure"
    size = percent(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    way = "above" if found.change > 0 else "below"
    seen = f"{found.b} was {size} {way} {found.a}" if found.change else f"{found.b} was equal to {found.a}"
    return f"{seen}; {found.obstacle or 'the runs do not tell how much of that is chance'}"


def _by(found: Difference, metric: Metric) -> str:
    """`12 % faster`, `12 % lower`."""
    size = percent(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    up = found.change > 0
    if metric.better is Better.HIGHER and (metric.unit.endswith("/s")):
        return f"{size} {'faster' if up else 'slower'}"
    return f"{size} {'higher' if up else 'lower'}"


def _judged(found: Difference, metric: Metric) -> Sentence:
    if metric.better is Better.NEITHER:
        return "different"
    return "better" if (found.change > 0) == (metric.better is Better.HIGHER) else "worse"


def _digits(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
