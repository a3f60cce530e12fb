"""A difference in one sentence."""

from __future__ import annotations

from typing import Literal

from spindle.result import units
from spindle.stats.difference import Difference
from spindle.stats.names import Better, Metric

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
        return f"{head}{found.b} is {_by(found, metric)} {found.a}, exactly", _judged(found, metric)
    between = f"{sure} {_between(found)}"
    runs = "in these two runs " if found.basis == "within-run" else ""
    if found.told:
        text = f"{runs}{found.b} is {_by(found, metric)} {found.a} ({between})"
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


TIMES = 10.0
"""From so many times on a change is told as a multiple: `x 580`, as nobody sees it in `+57900 %`."""


def percent(share: float, sign: bool = False) -> str:
    """`0.35 %`, `4.2 %`, `12 %`, `99.8 %`, `x 580`; never more digits than mean something."""
    value = 100 * share
    size = abs(value)
    if share >= TIMES - 1:
        return f"x {multiple(1 + share)}"
    if 99.5 <= size < 100:  # nearly all is not all
        return f"{value:{'+' if sign else ''}.{1 if size < 99.95 else 2}f} %" if size < 99.995 else _nearly(value)
    decimals = 0 if size >= 9.95 else 1 if size >= 0.95 else 2
    text = f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}"
    if float(text) == 0:
        return "0 %" if value == 0 else f"under {'-' if value < 0 else ''}0.01 %" if not sign else f"{text} %"
    return f"{text} %"


def share_of(ratio: float) -> str:
    """`58 % of`, `580 times`."""
    return f"{multiple(ratio)} times" if ratio >= TIMES else f"{units.percent(ratio)} of"


def _nearly(value: float) -> str:
    return f"over {'-' if value < 0 else ''}99.99 %"


def multiple(ratio: float) -> str:
    """`12`, `580`, `58 000`: two or three digits that mean something."""
    if ratio >= 1e6:
        return "over 1 000 000"
    digits = 2 if ratio < 100 else 3
    return f"{float(f'{ratio:.{digits}g}'):,.0f}".replace(",", " ")


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
    seen = f"{found.b} was {_above(found)} {found.a}" if found.change else f"{found.b} was equal to {found.a}"
    return f"{seen}; {found.obstacle or 'the runs do not tell how much of that is chance'}"


def _above(found: Difference) -> str:
    """`12 % above`, `580 times`."""
    if found.relative and found.change >= TIMES - 1:
        return f"{multiple(1 + found.change)} times"
    size = percent(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    return f"{size} {'above' if found.change > 0 else 'below'}"


def _by(found: Difference, metric: Metric) -> str:
    """`12 % faster than`, `12 % lower than`, `580 times as fast as`."""
    up, speed = found.change > 0, metric.better is Better.HIGHER and metric.unit.endswith("/s")
    if found.relative and found.change >= TIMES - 1:
        return f"{multiple(1 + found.change)} times as {'fast' if speed else 'high'} as"
    size = percent(abs(found.change)) if found.relative else f"{abs(found.change):.3g}"
    way = ("faster" if up else "slower") if speed else ("higher" if up else "lower")
    return f"{size} {way} than"


def _judged(found: Difference, metric: Metric) -> Sentence:
    if metric.better is Better.NEITHER:
        return "different"
    return "better" if (found.change > 0) == (metric.better is Better.HIGHER) else "worse"


def _digits(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
