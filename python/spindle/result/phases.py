"""The record of phases, from the records of their runs."""

from __future__ import annotations

from spindle.result.record import Level, PhaseFigures, RunRecord, Verdict
from spindle.result.workload import Workload


def figures_of(run: RunRecord) -> PhaseFigures:
    """A phase in a few numbers."""
    figures = run.figures
    seconds = figures.elapsed_ns / 1e9
    cpu_s = (figures.cpu.user_ns + figures.cpu.system_ns) / 1e9
    slowest = [
        op.latency.max_ns
        for stream in figures.streams
        for op in (*(op for _, op in stream.ops()), stream.fsync)
        if op is not None and op.requests
    ]
    return PhaseFigures(
        name=run.workload.name,
        run=run.id,
        seconds=seconds,
        cpu_percent=100 * cpu_s / seconds if seconds else 0.0,
        max_latency_ns=max(slowest, default=None),
        requests=figures.requests,
        iops=figures.iops,
        bytes_per_s=figures.bytes_per_s,
    )


def all_carried_out(runs: list[RunRecord]) -> Verdict:
    """The verdict on phases that are complete."""
    seconds = sum(run.figures.elapsed_ns for run in runs) / 1e9
    return Verdict(
        check="phases",
        level=Level.OK,
        evidence=f"all {len(runs)} phases were carried out",
        numbers={"phases": float(len(runs)), "seconds": seconds},
    )


def partial(spec: Workload, done: int, evidence: str) -> Verdict:
    """The verdict on phases of which `done` are complete."""
    return Verdict(
        check="interrupted",
        level=Level.INVALID,
        evidence=evidence,
        advice="run it again to its end",
        numbers={"complete": float(done), "phases": float(len(spec.phases))},
    )
