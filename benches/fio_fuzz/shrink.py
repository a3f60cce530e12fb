"""The smallest job file that still differs."""

from __future__ import annotations

from collections.abc import Callable

from .jobs import JobFile

MOST_TRIES = 80


def smallest(job: JobFile, differs: Callable[[JobFile], bool]) -> JobFile:
    """Leaves out sections and options as long as it differs in the same way."""
    tries = 0
    found = True
    while found and tries < MOST_TRIES:
        found = False
        for smaller in job.smaller():
            tries += 1
            if tries > MOST_TRIES:
                break
            if differs(smaller):
                job, found = smaller, True
                break
    return job
