"""Which jobs run at the same time: `stonewall` and `wait_for`."""

from __future__ import annotations

from .finding import Level
from .job import TypedJob


def phases_of(jobs: list[TypedJob]) -> list[list[TypedJob]]:
    """Groups that run one after another. What cannot be ordered so is said in the jobs' findings."""
    phases: list[list[TypedJob]] = []
    follows = False
    """The last phase began because a job waits for another: all in it have to wait for somebody before it."""
    for each in jobs:
        waits = each.job.wait_for
        if each.job.stonewall or not phases:
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


def _wait(job: TypedJob, waits: str, phases: list[list[TypedJob]]) -> bool:
    """Whether a phase had to be begun for it."""
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
