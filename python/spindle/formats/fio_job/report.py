"""Options of a job file about its report: groups and percentiles of fio's JSON, and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spindle.formats.fio_log import Job as LoggedJob
from spindle.formats.fio_writer import Origin, ReportOptions

from .job import DIRECTIONS
from .source import Setting

if TYPE_CHECKING:
    from .convert import Conversion, Phase
    from .job import TypedJob


def shape_of(conversion: Conversion) -> ReportOptions:
    """Return the shape for `fio_writer.write`."""
    common = _options(conversion.jobs[0].section.settings[: conversion.jobs[0].section.inherited])
    group = -1
    origins: list[list[Origin]] = []
    for phase, first in zip(conversion.phases, _first_threads(conversion), strict=True):
        group += 1
        groups: list[int] = []
        for at, each in enumerate(phase.jobs):
            group += bool(at and (each.job.new_group or each.job.stonewall))
            groups.append(group)
        origins.append([_origin(phase, stream, groups, first) for stream in range(len(phase.streams))])
    return ReportOptions(common, origins)


def logged_jobs(conversion: Conversion) -> list[dict[tuple[str, int], LoggedJob]]:
    """Return for each phase the clones whose completions are logged, by stream and worker."""
    found = []
    for phase, first in zip(conversion.phases, _first_threads(conversion), strict=True):
        jobs: dict[tuple[str, int], LoggedJob] = {}
        for at, keys in enumerate(phase.streams):
            each = phase.jobs[phase.sources[at]]
            for worker in range(each.job.numjobs if "workers" in keys else 1):
                number = first[phase.sources[at]] + phase.clones[at] + worker
                jobs[str(keys["name"]), worker] = LoggedJob(number, _directions(each), each.job.logs)
        found.append(jobs)
    return found


def _first_threads(conversion: Conversion) -> list[list[int]]:
    """Return for each phase and job the number of its first clone: fio numbers clones from 1 through all jobs."""
    number = 1
    found: list[list[int]] = []
    for phase in conversion.phases:
        found.append([])
        for each in phase.jobs:
            found[-1].append(number)
            number += each.job.numjobs
    return found


def _origin(phase: Phase, stream: int, groups: list[int], first: list[int]) -> Origin:
    source = phase.sources[stream]
    each = phase.jobs[source]
    group = groups[source]
    # Groups count from 0, threads from 1.
    entry = -1 - group if each.job.grouped else first[source] + phase.clones[stream]
    section = each.section
    options = _options(section.settings[section.inherited :])
    job = each.job
    return Origin(job.name, group, entry, options, DIRECTIONS[_directions(each)[0]], job.unified, job.percentiles)


def _options(settings: list[Setting]) -> dict[str, str]:
    """Return the options with a value, as fio reports them."""
    return {setting.name: setting.value for setting in settings if setting.value is not None}


def _directions(each: TypedJob) -> tuple[int, ...]:
    job = each.job
    if job.operation:
        return (1,) if job.writes and not job.mixed else (0,)
    if job.trims_first:
        return (1, 2)
    return (0, 1) if job.mixed else (job.direction,)
