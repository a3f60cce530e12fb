"""Jobs that run at the same time: `stonewall` and `wait_for`."""

from __future__ import annotations

from collections.abc import Sequence

from .finding import Level
from .job import TypedJob
from .quantity import Keys


def phases_of(jobs: list[TypedJob]) -> list[list[TypedJob]]:
    """Return groups that run one after another. Orders that are impossible are reported in the jobs' findings."""
    phases: list[list[TypedJob]] = []
    follows = False
    """The last phase began because a job waits for another: all its jobs must wait for an earlier one."""
    for each in jobs:
        waits = each.job.wait_for
        if not phases or (each.job.stonewall and not _all_delayed(phases)):
            phases.append([])
            follows = False
        elif waits is None and follows:
            begun = phases[-1][0]
            text = (
                f"{begun.job.name} waits while {each.job.name} would run: jobs run at the same time or one after "
                "another; give each that follows wait_for or stonewall"
            )
            begun.say(Level.ERROR, "wait_for", text)
        if waits is not None:
            follows = _wait(each, waits, phases) or follows
        phases[-1].append(each)
    return phases


def _all_delayed(phases: list[list[TypedJob]]) -> bool:
    """True if all earlier jobs are still delayed: a stonewall waits only for jobs that have begun (`run_threads` in
    fio's backend.c)."""
    return len(phases) == 1 and all(each.job.delayed for each in phases[0])


def run_before_an_end(phases: list[list[TypedJob]]) -> list[list[TypedJob]]:
    """Return the phases that run: with `exitall` and `exit_what=all` the first job that is done ends all, also later
    ones."""
    jobs = [job for phase in phases for job in phase]
    for job in jobs:
        if "exit_what" in job.places and not any(each.job.exitall for each in jobs):
            job.say(Level.NOTE, "exit_what", "of no effect without exitall, as in fio")
            return phases
    if not any(each.job.exitall for each in jobs):
        return phases
    _check_waiting(phases)
    for number, phase in enumerate(phases[:-1], 1):
        if any(each.job.exit_what == "all" for each in phase):
            never = phases[number][0]
            text = f"{never.job.name} and what follows are never run: the first job that is done ends them, as in fio"
            never.say(Level.DIFFERS, "exit_what", text)
            return phases[:number]
    return phases


def _check_waiting(phases: list[list[TypedJob]]) -> None:
    """Report jobs that are ended before they begin, by a job of their group that they wait for."""
    for phase in phases[1:]:
        first = phase[0].job
        if first.wait_for is not None and not (first.stonewall or first.new_group):
            text = "beside exitall: of the same group, it is ended before it begins; use stonewall"
            phase[0].say(Level.ERROR, "wait_for", text)


def ends_of(jobs: list[TypedJob], streams: list[Keys], sources: Sequence[int]) -> None:
    """Set the ends by `exitall`: the first clone that is done ends those of its group that run beside it, by the
    `exit_what` of its own job."""
    if len(streams) < 2:
        return
    group, groups = 0, []
    for at, each in enumerate(jobs):
        group += bool(at and (each.job.new_group or each.job.stonewall))
        groups.append(group)
    for keys, source in zip(streams, sources, strict=True):
        if group == 0 or jobs[source].job.exit_what != "group":
            keys["ends"] = "all"
            continue
        others = [
            str(other["name"])
            for other, of in zip(streams, sources, strict=True)
            if groups[of] == groups[source] and other is not keys
        ]
        if others:
            keys["ends"] = ",".join(others)


def _wait(job: TypedJob, waits: str, phases: list[list[TypedJob]]) -> bool:
    """Return True if it needs a new phase."""
    now, before = phases[-1], [other.job.name for phase in phases[:-1] for other in phase]
    if all(other.job.name == waits for other in now) and now:
        phases.append([])
        return True
    if any(other.job.name == waits for other in now):
        text = f"for `{waits[:40]}` alone, while others go on: jobs run at the same time or one after another"
        job.say(Level.ERROR, "wait_for", text)
    elif waits not in before:
        job.say(Level.ERROR, "wait_for", f"there is no job `{waits[:40]}` before it")
    return False
