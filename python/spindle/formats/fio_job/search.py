"""`latency_target`: the depth at which latency stays within a bound."""

from __future__ import annotations

from dataclasses import dataclass

from .finding import Level
from .job import TypedJob


@dataclass(frozen=True)
class LatencyTarget:
    """fio's options of the search."""

    target_us: int
    window_us: int
    """Time for each depth; 0: not given."""
    percent: float
    """Share of the requests that must take at most `target_us`."""
    depth: int
    """Highest depth."""


def search_of(jobs: list[TypedJob]) -> LatencyTarget | None:
    """Return the search of a job file. Obstacles are reported."""
    asked = [each for each in jobs if each.job.latency_target_us]
    if not asked:
        return None
    first = asked[0]
    if len(jobs) > 1 or first.job.numjobs > 1:
        first.say(Level.ERROR, "latency_target", "beside other jobs or clones; use a job file with this job alone")
    text = "a search of many runs, each latency_window long, instead of one run whose depth moves; see searches.md"
    first.say(Level.DIFFERS, "latency_target", text)
    job = first.job
    return LatencyTarget(job.latency_target_us, job.latency_window_us, job.latency_percent, job.depth)
