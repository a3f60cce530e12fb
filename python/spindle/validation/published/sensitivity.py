"""How much the errors depend on each assumed number: every one at both ends of its range, the others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spindle import _core
from spindle.cluster.place import HERE, Place
from spindle.cluster.simulation import Simulation
from spindle.run.simulate import SimulatedRun, read_figures
from spindle.run.watch import SilentWatch, Watch
from spindle.validation.published.assumed import Assumed
from spindle.validation.published.compare import FigureComparison, Goal, compared_of, goals, piece_of, predictions_of
from spindle.validation.published.prediction import Run

AT_ONCE = 64
"""Runs between two signs of progress, where this process computes."""


class Effect(Struct, frozen=True):
    """A goal's value with an assumed number at the ends of its range."""

    part: str
    key: str
    least: str
    value: str
    most: str
    table: str
    what: str
    at_least: float
    """The goal's value with the number at the least of its range."""
    as_assumed: float
    at_most: float

    @property
    def largest(self) -> float:
        """The largest change of the goal's value."""
        return max(abs(self.at_least - self.as_assumed), abs(self.at_most - self.as_assumed))


class Banded(Struct, frozen=True):
    """A figure with the band that the ranges give: the factors of all numbers multiplied."""

    compared: FigureComparison
    least: float
    most: float


class SensitivityReport(Struct, frozen=True):
    """The errors of a folder's tables, and their causes by size."""

    figures: list[Banded]
    effects: list[Effect]
    goals: list[Goal]


Number = tuple[str, str, str, str, str]
"""Part, key, least, value, most."""


def report(folder: Path, place: Place = HERE, watch: Watch | None = None) -> SensitivityReport:
    """Predict each row with every assumed number at both ends of its range. Raises TablesError."""
    predictions, _ = predictions_of(folder)
    runs = list(dict.fromkeys(run for prediction in predictions for run in prediction.runs))
    jobs: dict[tuple[Run, Number | None, str], Simulation] = {}
    for run in runs:
        jobs[run, None, ""] = piece_of(run)
        for number, pieces in variants(run).items():
            for end, piece in pieces.items():
                jobs[run, number, end] = piece
    figures = dict(zip(jobs, _simulated(list(jobs.values()), place, watch or SilentWatch()), strict=True))
    middle = {run: figures[run, None, ""] for run in runs}
    compared = compared_of(predictions, middle)
    numbers = sorted({number for _, number, _ in jobs if number is not None})
    ends: dict[Number, list[list[FigureComparison]]] = {}
    for number in numbers:
        _, _, least, _, most = number
        ends[number] = [
            compared_of(predictions, {run: figures.get((run, number, end), of) for run, of in middle.items()})
            for end in (least, most)
        ]
    effects = [effect for number, (low, high) in ends.items() for effect in _effects(number, compared, low, high)]
    effects.sort(key=lambda effect: -effect.largest)
    return SensitivityReport(_banded(compared, list(ends.values())), effects, goals(compared))


def variants(run: Run) -> dict[Number, dict[str, Simulation]]:
    """The simulations of a run with a number at an end of its range."""
    found: dict[Number, dict[str, Simulation]] = {}
    usual = piece_of(run)
    for part, key, least, value, most in _core.Machine.parse(run.machine, "machine").ranges():
        found[part, key, least, value, most] = {
            end: replace(usual, changes=((part, key, end),)) for end in (least, most) if end != value
        }
    for of in run.assumed:
        found[of.part, of.key, of.least, of.value, of.most] = {
            end: piece_of(replace(run, machine=of.at(run.machine, end), workload=of.at(run.workload, end)))
            for end in _ends(of)
        }
    return found


def _ends(of: Assumed) -> list[str]:
    return [end for end in (of.least, of.most) if end != of.value]


def _simulated(jobs: Sequence[Simulation], place: Place, watch: Watch) -> list[SimulatedRun]:
    found: list[SimulatedRun] = []
    at_once = AT_ONCE if place.is_here else len(jobs)
    for first in range(0, len(jobs), at_once):
        watch.step(f"run {first} of {len(jobs)}")
        some = place.figures(jobs[first : first + at_once], watch, "published arrays")
        found += [read_figures(text) for text in some]
    return found


def _effects(
    number: Number,
    middle: Sequence[FigureComparison],
    low: Sequence[FigureComparison],
    high: Sequence[FigureComparison],
) -> list[Effect]:
    found = []
    for goal, at_least, at_most in zip(goals(middle), goals(low), goals(high), strict=True):
        if (at_least.value, at_most.value) != (goal.value, goal.value):
            found.append(Effect(*number, goal.table, goal.what, at_least.value, goal.value, at_most.value))
    return found


def _banded(middle: Sequence[FigureComparison], ends: Sequence[Sequence[Sequence[FigureComparison]]]) -> list[Banded]:
    found = []
    for at, of in enumerate(middle):
        least = most = 1.0
        for low, high in ends:
            ratios = (
                [1.0, low[at].predicted / of.predicted, high[at].predicted / of.predicted] if of.predicted else [1.0]
            )
            least, most = least * min(ratios), most * max(ratios)
        found.append(Banded(of, of.predicted * least, of.predicted * most))
    return found
