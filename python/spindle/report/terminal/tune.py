"""A search for the best settings, for people: the space, the decision, the trials, the influence of each setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from spindle.base import units
from spindle.base.numbers import as_change
from spindle.base.words import listed
from spindle.report.terminal.campaign import scale_of
from spindle.report.terminal.front import of_front
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.search.curves import Influence
from spindle.stats.names import metric
from spindle.tune.decision import BoundCheck, Tuning
from spindle.tune.space import Dimension

Table = tuple[list[Column], list[list[str]]]
"""Columns and rows."""

SHOWN_TRIALS = 12
"""Trials shown: the first ones of the story are in the store."""


def of_space(found: Sequence[Dimension], style: Style) -> list[str]:
    """The settings that a search moves, and those that it leaves alone."""
    moved, left = [one for one in found if one.moves], [one for one in found if not one.moves]
    columns = [Column("setting", words=True), Column("start", words=True), Column("scale", words=True),
               Column("trades", words=True), Column("kernels", words=True), Column("levels", words=True)]  # fmt: skip
    rows = [[one.name, one.start, str(one.scale), str(one.trade), one.kernels or "-", _levels(one)] for one in moved]
    lines = table(columns, rows, style) if rows else ["no setting is moved"]
    points = math.prod(len(one.levels) for one in moved) if moved else 0
    rules = [f"{one.name}: only with {name} {' or '.join(levels)}" for one in moved
             for name, levels in one.only_with.items()]  # fmt: skip
    lines += (
        ["", f"{len(moved)} settings, {points} combinations before these rules:"]
        if rules
        else (["", f"{len(moved)} settings, {points} combinations"])
    )
    lines += [line for rule in rules for line in style.wrap(rule, "  ")]
    if left:
        lines += ["", "left alone:"]
        lines += [line for one in left for line in style.wrap(f"{one.name}: {one.left_out}", "  ")]
    return lines


def _levels(one: Dimension) -> str:
    unit = f" {one.unit}" if one.unit else ""
    return f"{', '.join(one.levels)}{unit}"


def of_tuning(found: Tuning, style: Style, undo: str = "") -> list[str]:
    """The decision and its reasons."""
    lines = style.headline(f"{found.campaign.name}: {found.sentence}")
    if found.reason:
        lines += style.wrap(f"{found.reason[:1].upper()}{found.reason[1:]}.")
    lines += style.wrap(compared(found)) if not found.objectives else style.wrap(counted(found))
    lines += ["", *of_front(found, style)] if found.front else []
    if found.changes:
        lines += ["", *table(*change_table(found), style)]
    elif found.winner is not None and found.state == "keep":
        lines += ["", *style.wrap(f"not recommended: {words_of(found.moved(found.winner)) or 'no change'}")]
    lines += [line for one in found.bounds for line in style.wrap(bound_words(one))]
    lines += [line for one in found.dropped for line in style.wrap(f"dropped, two modes: {words_of(found.moved(one))}")]
    if found.influences:
        lines += ["", *_influences(found, style), *_curves(found, style)]
    lines += ["", *_trials(found, style)]
    if undo:
        lines += ["", *style.wrap(undo)]
    return lines


def compared(found: Tuning) -> str:
    """The goal at the start and with the best settings, and the number of trials."""
    shown = metric(found.metric)
    head, scale = scale_of(shown)
    difference = found.difference
    done = counted(found)
    if difference is None:
        return f"{head}; {done}"
    sure = f"{100 * difference.confidence:g} % interval"
    return (
        f"{head}: {units.significant(difference.mean_a / scale)} at the start, "
        f"{units.significant(difference.mean_b / scale)} with the best settings, in {difference.trials_b} fresh trials "
        f"of each in turns ({sure}); {done} in all"
    )


def counted(found: Tuning) -> str:
    """`56 trials, 1 given up`."""
    done = sum(one.state == "done" for one in found.trials)
    given_up = sum(one.state in ("failed", "invalid") for one in found.trials)
    return f"{done} trials" + (f", {given_up} given up" if given_up else "")


def change_table(found: Tuning) -> Table:
    """The recommended settings beside those of the start."""
    columns = [Column("setting", words=True), Column("start", words=True), Column("best", words=True)]
    return columns, [[name, before, after] for name, (before, after) in found.changes.items()]


def words_of(levels: Mapping[str, str]) -> str:
    """`scheduler none, nr_requests 32`."""
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def bound_words(one: BoundCheck) -> str:
    """A bound, and whether it holds."""
    head, scale = scale_of(metric(one.metric))
    ends = f"{units.significant(one.low / scale)} to {units.significant(one.high / scale)}"
    return f"bound {one.text}: {'holds' if one.holds else 'is not sure to hold'} ({head} {ends})"


def _influences(found: Tuning, style: Style) -> list[str]:
    """The gain of the best level over the worst."""
    columns, rows = influence_table(found)
    lines = style.wrap(f"{influence_words(found)}:")
    lines += table(columns, rows, style) if rows else ["  none was shown to matter"]
    return lines + [line for words in left_over(found) for line in style.wrap(words)]


def influence_words(found: Tuning) -> str:
    """How to read the table of influences."""
    has_model = found.plan.search is not None and found.plan.search.prior is not None
    basis = "; where no trial was made, as the model expects" if has_model else ""
    return f"the best level against the worst, in the mean over the other settings{basis}"


def influence_table(found: Tuning, *, flat: bool = False) -> Table:
    """The settings that matter; `flat`: the others too."""
    columns = [Column("setting", words=True), Column("best", words=True), Column("worst", words=True), Column("gain"),
               Column("95 % interval")]  # fmt: skip
    known = [one for one in found.influences if flat or not one.is_flat]
    return columns, [[one.name, one.best, one.worst, _gain(one.gain, found), _interval(one, found)] for one in known]


def left_over(found: Tuning) -> list[str]:
    """The settings that were not shown to matter, and the levels that no trial had."""
    flat = [one.name for one in found.influences if one.is_flat]
    untried = [f"{one.name} {', '.join(one.untried)}" for one in found.influences if one.untried]
    lines = [f"not shown to matter: {listed(flat)}"] if flat else []
    return lines + ([f"never tried: {'; '.join(untried)}"] if untried else [])


def _gain(value: float, found: Tuning) -> str:
    return as_change(math.expm1(value)) if found.relative else f"{value:.3g}"


def _interval(one: Influence, found: Tuning) -> str:
    return f"{_gain(one.low, found)} to {_gain(one.high, found)}"


def _curves(found: Tuning, style: Style) -> list[str]:
    """The curve of each setting that matters, the others at the best: change and standard error."""
    lines: list[str] = []
    for one in found.influences:
        if one.is_flat or not one.curve:
            continue
        shares = [math.expm1(point.change) if found.relative else point.change for point in one.curve]
        most = max(map(abs, shares)) or 1.0
        lines += [
            "",
            f"{one.name}, the others as in the best:" if found.winner else f"{one.name}, the others as found:",
        ]
        width = max(len(point.label) for point in one.curve)
        for point, share in zip(one.curve, shares, strict=True):
            bar = ("+" if share > 0 else "-") * round(20 * abs(share) / most)
            words = as_change(share, sign=True) if found.relative else f"{share:+.3g}"
            doubt = as_change(math.expm1(point.error)) if found.relative else f"{point.error:.2g}"
            lines.append(f"  {point.label.rjust(width)}  {words.rjust(8)} ± {doubt.ljust(7)} {bar}".rstrip())
    return lines


def _trials(found: Tuning, style: Style) -> list[str]:
    columns, rows = trial_table(found)
    lines = table(columns, rows[:SHOWN_TRIALS], style)
    if len(rows) > SHOWN_TRIALS:
        more = len(rows) - SHOWN_TRIALS
        lines += style.wrap(f"... and {more} more; `spindle campaign show {found.campaign.name}` has every combination")
    return lines


def trial_table(found: Tuning) -> Table:
    """Every trial, in order."""
    head, scale = scale_of(metric(found.metric))
    columns = [Column("trial"), Column("block"), Column("stage", words=True), Column(head),
               Column("changed from the start", words=True)]  # fmt: skip
    rows = [
        [
            str(one.number),
            str(one.block),
            str(one.stage),
            units.significant(one.value / scale) if one.value is not None and one.state == "done" else one.state,
            words_of(found.moved(one.levels)) or "nothing",
        ]
        for one in found.trials
    ]
    return columns, rows
