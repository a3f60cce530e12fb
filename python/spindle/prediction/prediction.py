"""Predicts a workload on a target."""

from __future__ import annotations

import tomllib

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
    described = describe(machine)
    predicted = with_bands(found.text, found.name, resolved, watch)
    watch.end()
    return Prediction(
        workload=resolved.spec.name,
        target=target,
        machine=found.text,
        source=found.source,
        operations=predicted.operations,
        causes=predicted.causes,
        limits=[*found.limits, *limits(machine, described, resolved.spec)],
        device_reads=predicted.drives.reads,
        device_read_bytes=predicted.drives.read_bytes,
        requests_of_devices=predicted.drives.requests,
        queue_depth=described.queue_depth,
        has_write_cache=_has_write_cache(found.text),
        measured_s=predicted.measured_s,
    )


def _has_write_cache(machine: str) -> bool:
    """True if a drive of the machine file answers writes from a cache."""
    drives = tomllib.loads(machine)["drive"]
    return any("flush" in drive if "service" in drive else drive.get("write_cache", True) for drive in drives)
