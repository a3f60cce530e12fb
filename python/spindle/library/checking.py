"""`spindle.check`: is it worse than the baseline?"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from spindle.library.arguments import public
from spindle.library.comparing import Alternative, believable, selected, sides_of, trouble
from spindle.library.options import between, several, within
from spindle.library.shown import Printable
from spindle.library.stores import Selection, Store
from spindle.report.terminal.check import encode, page
from spindle.report.terminal.style import Style
from spindle.stats.gate import Check, Gate, gate
from spindle.stats.study import check_names
from spindle.store.selection import parse


class Regression(Printable):
    """The test of new results against a baseline. It is true if one of them is significantly worse."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        """The test of each metric, with its bounds."""

    @property
    def outcome(self) -> str:
        """`lost`, `fine`, `unclear` (the runs cannot decide) or `untested`."""
        return self.gate.outcome

    @property
    def worst(self) -> Check:
        """The first metric with this outcome."""
        return next(check for check in self.gate.checks if check.outcome == self.outcome)

    def __bool__(self) -> bool:
        return self.outcome == "lost"

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        return page(self.gate, style)

    def to_json(self) -> bytes:
        """As `Printable`."""
        return encode(self.gate).encode()

    def __repr__(self) -> str:
        return f"<Regression of {self.gate.now} against {self.gate.baseline}: {self.outcome}>"


@public
def check(
    alternative: Alternative,
    *,
    baseline: Alternative,
    store: Store | str | os.PathLike[str] | None = None,
    metrics: str | Sequence[str] = (),
    threshold: float = 0.05,
    confidence: float = 0.95,
    across_time: bool = False,
    with_invalid: bool = False,
) -> Regression:
    """Test whether an alternative lost more than `threshold` (relative: 0.05 is 5 %) against the baseline.

    The baseline is a tag, or like the alternative as of `compare`, as are the other arguments. `confidence`: for all
    metrics together. Raises `spindle.Error`.
    """
    within(threshold, "`threshold=`", 0, 1)
    between(confidence, "`confidence=`", 0.5, 1)
    first = tagged(baseline) if isinstance(baseline, str) else baseline
    with selected([first, alternative], store) as both:
        return tested(both, several(metrics), threshold, confidence, across_time, with_invalid)


def tested(
    both: Sequence[Selection],
    metrics: Sequence[str],
    threshold: float,
    confidence: float,
    across_time: bool,
    with_invalid: bool,
) -> Regression:
    """The second selection against the first."""
    sides = sides_of(both, metrics)
    check_names(sides, metrics)
    (before, now), notes = believable(sides, with_invalid)
    notes = [*trouble(both, sides), *notes]
    return Regression(
        gate(before, now, metrics, threshold=threshold, confidence=confidence, across_time=across_time, notes=notes)
    )


def tagged(baseline: str) -> str:
    """A bare name is a tag."""
    bare = re.fullmatch(r"[0-9A-Za-z._+-]+", baseline) and not re.match(r"[0-9]{8}T|model-[0-9a-f]+$", baseline)
    return f"tag:{baseline}" if bare and baseline != "last" and parse(baseline).kind == "id" else baseline
