"""A difference in one sentence."""

from __future__ import annotations

from typing import Literal

from spindle.base.numbers import TIMES, as_change, multiple
from spindle.stats.difference import Difference
from spindle.stats.names import Direction, Metric

Sentence = Literal["better", "worse", "different", "alike", "unknown"]
"""The outcome for b: better or worse than a, different if no direction is better, not significantly different, or
unknown.
"""


def sentence(found: Difference, metric: Metric) -> tuple[str, Sentence]:
    """`IOPS: B is 12 % faster than A (95 % interval 9 to 15 %)`, or the reason why there is no such statement."""
    head = f"{metric.words[:1].upper()}{metric.words[1:]}: "
    if found.low is None or found.high is None:
        return head + _seen(found), "unknown"
    sure = f"{_digits(100 * found.confidence)} % interval"
    if found.identical:
        if found.change == 0:
            return f"{head}{found.a} and {found.b} are equal to the last digit", "alike"
        return f"{head}{found.b} is {_by(found, metric)} {found.a}, exactly", _judged(found, metric)
    between = f"{sure} {_between(found)}"
    runs = "in these two runs " if found.basis == "within-run" else ""
    if found.significant:
        text = f"{runs}{found.b} is {_by(found, metric)} {found.a} ({between})"
        return head + text, _judged(found, metric)
    if not found.relative:
        return f"{head}{runs}{found.a} and {found.b} do not differ significantly ({between})", "alike"
    most = max(abs(found.low), abs(found.high))
    if most > 1:
        return (
            f"{head}{runs}no difference is detectable: the trials scatter too much or are too few ({between})",
            "alike",
        )
    return (
        f"{head}{runs}any difference between {found.a} and {found.b} is at most {as_change(most)} ({between})"
    ), "alike"


def _between(found: Difference) -> str:
    assert found.low is not None
    assert found.high is not None
    if not found.relative:
        return f"{found.low:+.3g} to {found.high:+.3g}"
    return f"{as_change(found.low, sign=True)} to {as_change(found.high, sign=True)}"


def _seen(found: Difference) -> str:
    if not found.trials_a or not found.trials_b:
        without = [label for label, count in ((found.a, found.trials_a), (found.b, found.trials_b)) if not count]
        return f"{' and '.join(without)} {'has' if len(without) == 1 else 'have'} no such figure"
    seen = f"{found.b} was {_above(found)} {found.a}" if found.change else f"{found.b} was equal to {found.a}"
    return f"{seen}; {found.obstacle or 'the runs do not show how much of that is chance'}"


def _above(found: Difference) -> str:
    """`12 % above`, `580 times`."""
    if found.relative and found.change >= TIMES - 1:
        return f"{multiple(1 + found.change)} times"
    size = as_change(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    return f"{size} {'above' if found.change > 0 else 'below'}"


def _by(found: Difference, metric: Metric) -> str:
    """`12 % faster than`, `12 % lower than`, `580 times as fast as`."""
    up, speed = found.change > 0, metric.better is Direction.HIGHER and metric.unit.endswith("/s")
    if found.relative and found.change >= TIMES - 1:
        return f"{multiple(1 + found.change)} times as {'fast' if speed else 'high'} as"
    size = as_change(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    way = ("faster" if up else "slower") if speed else ("higher" if up else "lower")
    return f"{size} {way} than"


def _judged(found: Difference, metric: Metric) -> Sentence:
    if metric.better is Direction.NEITHER:
        return "different"
    return "better" if (found.change > 0) == (metric.better is Direction.HIGHER) else "worse"


def _digits(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
