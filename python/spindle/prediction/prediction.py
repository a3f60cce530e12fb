"""Predicts a workload on a target."""

from __future__ import annotations

from spindle import _core
from spindle.prediction.band import predict as with_bands
from spindle.prediction.limits import limits
from spindle.prediction.model import Prediction
from spindle.prediction.source import MachineFile, machine_of
from spindle.run.resolve import ResolvedWorkload
from spindle.run.simulate import describe
from spindle.run.targets import Target
from spindle.run.watch import Watch


def predict(target: Target, resolved: ResolvedWorkload, watch: Watch, *, is_calibrated: bool = False) -> Prediction:
    """Predict a workload on a target. Raises errors of one line each."""
    return predict_on(machine_of(target, watch, is_calibrated=is_calibrated), target.asked, resolved, watch)


def predict_on(found: MachineFile, target: str, resolved: ResolvedWorkload, watch: Watch) -> Prediction:
    """Predict a workload on a machine file. Raises errors of one line each."""
    machine = _core.Machine.parse(found.text, found.name)
    predicted = with_bands(found.text, found.name, resolved, watch)
    watch.end()
    return Prediction(
        workload=resolved.spec.name,
        target=target,
        machine=found.text,
        source=found.source,
        operations=predicted.operations,
        causes=predicted.causes,
        limits=[*found.limits, *limits(machine, describe(machine), resolved.spec)],
        measured_s=predicted.measured_s,
    )
