"""Assigns the clones of fio, and the workers of Spindle, to the jobs of a phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spindle.formats.fio_job.convert import Phase
from spindle.formats.fio_job.job import Job

from .observe import Clone


@dataclass(frozen=True)
class OfJob:
    """A job's clones; where jobs cannot be distinguished, those of all of them."""

    index: int | None
    """Place in the phase; None: of several jobs."""
    jobs: list[Job]
    fio: list[Clone]
    spindle: list[Clone]

    def named(self, text: str, jobs: int) -> str:
        """A line about it, with the job's name where there are others."""
        return text if jobs == 1 or self.index is None else f"job {self.jobs[0].name}: {text}"


def by_job(phase: Phase, fio: list[Clone], spindle: list[Clone], figures: Any) -> list[OfJob]:
    """Each job by itself, if the jobs can be distinguished."""
    jobs = [each.job for each in phase.jobs]
    ours = [at for at, stream in zip(phase.sources, phase.streams, strict=True) for _ in range(_workers(stream))]
    theirs = _owners(jobs, fio, figures)
    if len(jobs) == 1:
        return [OfJob(0, jobs, fio, spindle)]
    if len(ours) != len(spindle) or len(theirs) != len(fio):
        return [OfJob(None, jobs, fio, spindle)]
    return [
        OfJob(
            at,
            [job],
            [c for c, of in zip(fio, theirs, strict=True) if of == at],
            [c for c, of in zip(spindle, ours, strict=True) if of == at],
        )
        for at, job in enumerate(jobs)
    ]


def _workers(stream: Mapping[str, object]) -> int:
    return int(str(stream.get("workers", 1)))


def _owners(jobs: Sequence[Job], clones: Sequence[Clone], figures: Any) -> list[int]:
    """The job of each of fio's clones, which it starts in the order of the file, delayed ones when due."""
    order = [at for at, job in enumerate(jobs) for _ in range(job.numjobs)]
    if not any(job.delayed for job in jobs):
        return order
    return _by_figures(jobs, order, clones, figures)


def _by_figures(jobs: Sequence[Job], order: list[int], clones: Sequence[Clone], figures: Any) -> list[int]:
    """The jobs by the requests that fio reports for each clone; empty: the requests do not distinguish them."""
    said: dict[tuple[int, ...], list[int]] = {}
    names = {job.name: at for at, job in enumerate(jobs)}
    of_jobs = [each for each in figures["jobs"] if each.get("jobname") in names]
    if len(of_jobs) != len(order):
        return []
    for each in of_jobs:
        counts = tuple(each[kind]["total_ios"] for kind in ("read", "write", "trim") if kind in each)
        said.setdefault(counts, []).append(names[each["jobname"]])
    found = []
    for clone in clones:
        kinds = Counter(event.kind for event in clone.events)
        at = said.get((kinds["read"], kinds["write"], kinds["trim"]))
        if not at:
            return []
        found.append(at.pop(0))
    return found
