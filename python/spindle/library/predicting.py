"""`spindle.predict`: what a target should deliver."""

from __future__ import annotations

import os

from spindle import _core
from spindle.library.arguments import public
from spindle.library.options import overrides_of
from spindle.library.result import Result
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.prediction import beside, look, model, prediction, source
from spindle.prediction.source import MachineFile
from spindle.report.terminal.style import Style
from spindle.result.record import QuickRecord, Record, RunRecord
from spindle.run.errors import Usage
from spindle.run.resolve import Overrides, resolve
from spindle.run.targets import parse

Name = str | os.PathLike[str]


class Prediction(model.Prediction, Printable, frozen=True):
    """The figures that a machine should deliver, with their bands. `print` shows it as a table."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.prediction import prediction_page

        return prediction_page(self, style)

    def beside(self, result: Result) -> PredictedRun:
        """A run of the same workload beside this prediction, with the likely causes of differences. Raises
        `spindle.Error` for a result of several runs."""
        return beside_of(result.record, self)

    def __repr__(self) -> str:
        return f"<Prediction of {self.workload} on {self.target}>"


class PredictedRun(beside.PredictedRun, Printable, frozen=True):
    """Measured figures beside predicted ones. `print` shows it as a table."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.prediction import beside_page

        return beside_page(self, style)


def beside_of(record: Record, found: model.Prediction) -> PredictedRun:
    """Compare a record with its prediction. Raises `Usage` for a record of several runs."""
    if not isinstance(record, RunRecord):
        raise Usage("`predict=`: a search or phases are many runs; predict one of them")
    compared = beside.beside(record, found)
    return PredictedRun(operations=compared.operations, hints=compared.hints)


class PredictedLook(look.PredictedLook, Printable, frozen=True):
    """The steps of a quick look, measured and predicted. `print` shows it as a table."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.prediction import look_page

        return look_page(self, style)


def machine_of(name: str, calibrate: bool, progress: Progress) -> MachineFile:
    """The machine that a prediction is for: a machine file, or that of the block stack of a place. Raises
    `spindle.Error`."""
    with watched(progress) as watch:
        found = source.machine_of(parse(name), watch, is_calibrated=calibrate)
    _core.Machine.parse(found.text, found.name)
    return found


def beside_look(record: Record, machine: MachineFile, progress: Progress) -> PredictedLook:
    """Compare a quick look with the predictions for a machine. Raises `spindle.Error`."""
    if not isinstance(record, QuickRecord):
        raise Usage("only a quick look has steps to be predicted one by one")
    with watched(progress) as watch:
        found = look.beside_look(record, machine, watch)
    return PredictedLook(source=found.source, steps=found.steps, limits=found.limits)


@public
def predict(
    target: Name, workload: Name, *, calibrate: bool = False, progress: Progress = False, **keys: object
) -> Prediction:
    """Predict what a workload does on a target: IOPS, throughput (B/s), mean and p99 latency (ns) of each operation,
    each with the band that uncertain numbers of the machine give it.

    `target`: a modelled machine (of the catalogue, or a machine file), or a device, file or folder of this machine,
    whose block stack is inspected; nothing is written. `workload`, `keys`: as of `spindle.run`. `calibrate`: describe
    a device without a data sheet by reading it for some seconds. `progress`: a live line on stderr. Raises
    `spindle.Error`.
    """
    return predicted(os.fspath(target), os.fspath(workload), overrides_of(keys), calibrate, progress)


def predicted(target: str, workload: str, overrides: Overrides, calibrate: bool, progress: Progress) -> Prediction:
    """The same with options as the command line has them. Raises `spindle.Error`."""
    with watched(progress) as watch:
        found = prediction.predict(
            parse(target), resolve(workload, tuple(overrides), target), watch, is_calibrated=calibrate
        )
    return Prediction(**{name: getattr(found, name) for name in found.__struct_fields__})
