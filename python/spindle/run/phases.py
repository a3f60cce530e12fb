"""Loads that run one after another on one target: each begins when the one before has ended and its writes are out.

The target is opened once and claimed for all of them, so each phase sees the writes of the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spindle import _core
from spindle.host.errors import TargetError
from spindle.host.signals import Stopped
from spindle.result.phases import all_carried_out, figures_of, partial
from spindle.result.record import PhasesRecord, RunRecord, Tool, Verdict
from spindle.result.workload import Workload
from spindle.run.engine import LoadPart
from spindle.run.errors import RunFailed
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadResult, LoadRunner


@dataclass(frozen=True)
class PhasesResult:
    """The result of all phases."""

    record: PhasesRecord
    stopped: bool
    """True if a person stopped it."""


def whole(opened: LoadRunner, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult | PhasesResult:
    """Run a load, or the phases that it consists of."""
    return carry_out(opened, resolved, label) if resolved.spec.phases else opened.measure(resolved, label)


def carry_out(opened: LoadRunner, resolved: ResolvedWorkload, label: str | None = None) -> PhasesResult:
    """Run all phases, or those up to one that was stopped or failed. Raises as the first one."""
    run_id, started = opened.identity(resolved)
    stopped = False
    runs: list[RunRecord] = []
    ended: Verdict | None = None
    for step, part in zip(resolved.phases, parts_of(resolved.spec), strict=True):
        line = f"{label or resolved.spec.name} {len(runs) + 1}/{len(resolved.spec.phases)}, {step.spec.name}"
        try:
            measured = opened.measure(step, line, part)
        except Stopped:
            if not runs:
                raise
            ended, stopped = _stopped(resolved.spec, len(runs), step.spec.name), True
            break
        except (_core.RunError, _core.ConfigError, TargetError, RunFailed) as error:
            if not runs:
                raise
            ended = _failed(resolved.spec, len(runs), step.spec.name, str(error))
            break
        runs.append(measured.record)
        if measured.stopped:
            ended, stopped = _stopped(resolved.spec, len(runs) - 1, step.spec.name), True
            break
        if measured.record.figures.is_partial:
            ended = _failed(resolved.spec, len(runs) - 1, step.spec.name, "its run ended with an error")
            break
    record = PhasesRecord(
        id=run_id,
        started=started,
        tool=Tool(version=_core.__version__),
        workload=resolved.spec,
        request=resolved.request,
        target=opened.target(resolved.spec),
        phases=[figures_of(run) for run in runs],
        runs=runs,
        verdicts=[ended] if ended is not None else [all_carried_out(runs)],
    )
    return PhasesResult(record, stopped)


def parts_of(spec: Workload) -> Iterator[LoadPart]:
    """The files of each phase: the target was opened for the streams of all, in order."""
    first = 0
    verifying = [step for step, phase in enumerate(spec.phases) if any(stream.verify for stream in phase.load.streams)]
    for step, phase in enumerate(spec.phases):
        # All writes are read back once, after the last verified one.
        yield LoadPart(first, phase.drop_caches, phase.load.name, read_back=step in verifying[-1:])
        first += len(phase.load.streams)


def _stopped(spec: Workload, done: int, at: str) -> Verdict:
    return partial(spec, done, f"stopped in phase {at}, {done} of {len(spec.phases)} phases are complete")


def _failed(spec: Workload, done: int, at: str, why: str) -> Verdict:
    return partial(spec, done, f"phase {at} failed, {done} of {len(spec.phases)} phases are complete: {why}")
