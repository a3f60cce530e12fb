"""Published figures against predicted ones."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from spindle import _core
from spindle.base.errors import ConfigError
from spindle.cluster.place import HERE, Place
from spindle.cluster.simulation import Simulation, parsed
from spindle.run.errors import Usage
from spindle.run.simulate import SimulatedRun, read_figures
from spindle.run.watch import SilentWatch, Watch
from spindle.validation.published import large_file, md_stream, randomio, sequential
from spindle.validation.published.prediction import Prediction, Quantity, Run

TABLES = {
    "md_stream_2008.csv": md_stream.predictions,
    "randomio_2008.csv": randomio.of_threads,
    "randomio_setups_2008.csv": randomio.of_setups,
    "sequential_2008.csv": sequential.predictions,
    "hw_raid_2004.csv": large_file.of_hardware,
    "bonnie_14sas_2011.csv": large_file.of_bonnie,
}
"""File -> the predictions of a row. A row that the model cannot repeat raises KeyError, ValueError or ConfigError."""
RATE_GOAL = 0.15
"""Most mean absolute error of IOPS and throughput, of a table."""
RANK_GOAL = 0.9
"""Least rank correlation of IOPS and throughput, of a table."""
LATENCY_WITHIN = {Quantity.READ_LATENCY: 0.25, Quantity.WRITE_LATENCY: 0.5}
LATENCY_GOAL = 0.8
"""Share of the rows whose latency is within the bound."""
LEAST_WRITE_MS = 1.0
"""Shorter write latencies are those of a cache: they have no goal."""


class TablesError(Usage):
    """A folder or a table that cannot be read."""


class FigureComparison(Struct, frozen=True):
    """One figure, published and predicted."""

    table: str
    row: str
    figure: str
    unit: str
    quantity: Quantity
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Share of the published figure, with sign: above 0, the prediction is higher."""
        return self.predicted / self.published - 1


class SkippedRow(Struct, frozen=True):
    """A row that the model cannot repeat."""

    table: str
    row: str
    reason: str


class Goal(Struct, frozen=True):
    """A bound on the errors of a table."""

    table: str
    what: str
    value: float
    bound: float
    is_reached: bool


class PublishedReport(Struct, frozen=True):
    """All tables of a folder."""

    compared: list[FigureComparison]
    skipped: list[SkippedRow]
    goals: list[Goal]


def report(folder: Path, place: Place = HERE, watch: Watch | None = None) -> PublishedReport:
    """Predict each row of the tables of a folder. Raises TablesError."""
    predictions, skipped = predictions_of(folder)
    # The last tables have the longest runs: they begin first, so that both cores are busy to the end.
    runs = list(dict.fromkeys(run for prediction in reversed(predictions) for run in prediction.runs))
    texts = place.figures([piece_of(run) for run in runs], watch or SilentWatch(), "published arrays")
    figures = {run: read_figures(text) for run, text in zip(runs, texts, strict=True)}
    compared = compared_of(predictions, figures)
    return PublishedReport(compared, skipped, goals(compared))


def compared_of(predictions: Sequence[Prediction], figures: Mapping[Run, SimulatedRun]) -> list[FigureComparison]:
    """Return each figure beside the one that the simulated runs give."""
    return [
        FigureComparison(
            of.table,
            of.row,
            of.figure,
            of.unit,
            of.quantity,
            of.published,
            of.value(*(figures[run] for run in of.runs)),
        )
        for of in predictions
    ]


def piece_of(run: Run) -> Simulation:
    """The simulation of a run. Raises ConfigError."""
    return Simulation(run.machine, _core.Workload.parse(run.workload, "workload", "published").to_json())


def predictions_of(folder: Path) -> tuple[list[Prediction], list[SkippedRow]]:
    """Return the predictions of a folder's tables, and the rows without one. Raises TablesError."""
    found = [name for name in TABLES if (folder / name).is_file()]
    if not found:
        raise TablesError(f"{folder}: none of {', '.join(TABLES)} is there")
    predictions: list[Prediction] = []
    skipped: list[SkippedRow] = []
    for name in found:
        with (folder / name).open(newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        for number, row in enumerate(rows, start=1):
            try:
                of_row = list(TABLES[name](row))
                for run in {run for prediction in of_row for run in prediction.runs}:
                    parsed(piece_of(run))
            except (KeyError, ValueError, ConfigError) as error:
                skipped.append(SkippedRow(name, f"row {number}", _reason(error)))
            else:
                predictions += of_row
    return predictions, skipped


def _reason(error: Exception) -> str:
    return f"column {error} is missing" if isinstance(error, KeyError) else str(error)


def goals(compared: Sequence[FigureComparison]) -> list[Goal]:
    """Return the goals of each table."""
    found = []
    for name in dict.fromkeys(of.table for of in compared):
        of_table = [of for of in compared if of.table == name]
        rates = [of for of in of_table if of.quantity is Quantity.RATE]
        if rates:
            mean = sum(abs(of.error) for of in rates) / len(rates)
            found.append(Goal(name, "mean absolute error of rates", mean, RATE_GOAL, mean <= RATE_GOAL))
        if len(rates) > 2 and len({of.published for of in rates}) > 1:
            rank = _rank_correlation(rates)
            found.append(Goal(name, "rank correlation of rates", rank, RANK_GOAL, rank >= RANK_GOAL))
        for quantity, within in LATENCY_WITHIN.items():
            of_quantity = [of for of in of_table if of.quantity is quantity]
            if quantity is Quantity.WRITE_LATENCY:
                of_quantity = [of for of in of_quantity if of.published > LEAST_WRITE_MS]
            if of_quantity:
                share = sum(abs(of.error) <= within for of in of_quantity) / len(of_quantity)
                what = f"{quantity.value} within {within:.0%}"
                found.append(Goal(name, what, share, LATENCY_GOAL, share >= LATENCY_GOAL))
    return found


def _rank_correlation(rates: Sequence[FigureComparison]) -> float:
    """Spearman's, of all rates of a table; 0 if all are predicted to be the same."""
    from scipy.stats import spearmanr

    if len({of.predicted for of in rates}) == 1:
        return 0.0
    return float(spearmanr([of.published for of in rates], [of.predicted for of in rates]).statistic)
