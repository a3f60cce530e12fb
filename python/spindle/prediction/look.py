"""A quick look beside its prediction: each of its steps is a run of its own."""

from __future__ import annotations

from msgspec import Struct

from spindle.prediction.beside import PredictedRun, beside
from spindle.prediction.prediction import predict_on
from spindle.prediction.source import MachineFile
from spindle.result.record import QuickRecord, RunRecord, Step
from spindle.run.resolve import ResolvedWorkload, resolve_text
from spindle.run.watch import Watch


class PredictedStep(Struct, frozen=True, kw_only=True):
    """A step, measured and predicted."""

    about: str
    """The load, for people."""
    run: PredictedRun


class PredictedLook(Struct, frozen=True, kw_only=True):
    """A quick look beside its prediction."""

    source: str
    """Where the machine file comes from, for people."""
    steps: list[PredictedStep]
    limits: list[str]
    """Parts that the model or its bands leave out, for people."""


def beside_look(record: QuickRecord, machine: MachineFile, watch: Watch) -> PredictedLook:
    """Compare the steps of a look with the predictions for a machine. Of the rising concurrency the fastest counts.
    Raises errors of one line each.
    """
    steps, limits = [], dict.fromkeys(machine.limits)
    for step in record.steps:
        run = _fastest(record, step)
        found = predict_on(machine, machine.name, _workload_of(record, run), watch)
        limits |= dict.fromkeys(found.limits)
        steps.append(PredictedStep(about=step.about, run=beside(run, found)))
    return PredictedLook(source=machine.source, steps=steps, limits=list(limits))


def _fastest(record: QuickRecord, step: Step) -> RunRecord:
    runs = [run for run in record.runs if run.id in step.runs]
    return max(runs, key=lambda run: run.figures.iops)


def _workload_of(record: QuickRecord, run: RunRecord) -> ResolvedWorkload:
    """The workload of a run. A file is a part of the device, whose place there is not known: the first one is taken."""
    request = run.request
    assert request is not None, "a look records the request of each run"
    options = list(request.options)
    if not record.target.traits.is_device:
        options.append(("region", f"0-{record.target.size_bytes}"))
    return resolve_text(request.toml, request.source, run.workload.name, options)
