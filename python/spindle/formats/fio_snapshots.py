"""Reports of one run of fio in its JSON: `--status-interval` writes one every so often, with totals since the start.

fio does not mark them. Two reports are of one run if both name the same jobs, no total falls, and both say that fio
began at the same time: `timestamp_ms` less `elapsed`, which is rounded up to whole seconds (stat.c, `elapsed_sec`), or
`job_start`, which fio has since 3.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from spindle.result.imported import Moment

from .found import utc
from .numbers import amount, scaled

Report = Mapping[str, Any]
"""A document of fio; its `jobs` are a list of jobs."""
DIRECTIONS = ("read", "write", "trim", "mixed")
TOTALS = ("total_ios", "io_bytes", "runtime")
ROUNDED_MS = 1000
"""`elapsed` is in whole seconds."""


def is_continued(earlier: Report, later: Report) -> bool:
    """True if `later` is of the same run."""
    if [_identity(job) for job in earlier["jobs"]] != [_identity(job) for job in later["jobs"]]:
        return False
    if earlier.get("global options") != later.get("global options"):
        return False
    pairs = list(zip(earlier["jobs"], later["jobs"], strict=True))
    if any(_is_fallen(before, after) for before, after in pairs):
        return False
    starts = [(before.get("job_start"), after.get("job_start")) for before, after in pairs]
    known = [(before, after) for before, after in starts if before and after]
    if known:
        return all(before == after for before, after in known)
    return _began_together(earlier, later)


def _identity(job: Report) -> tuple[object, ...]:
    return job.get("jobname"), job.get("groupid"), job.get("hostname"), job.get("job options")


def _is_fallen(before: Report, after: Report) -> bool:
    """True if a total of a job is lower in the later report."""
    return any(was > now for was, now in zip(_totals(before), _totals(after), strict=True))


def _totals(job: Report) -> list[float]:
    return [_total(job, name, total) for name in DIRECTIONS for total in TOTALS]


def _total(job: Report, name: str, total: str) -> float:
    figures = job.get(name)
    return (amount(figures.get(total)) if isinstance(figures, dict) else None) or 0.0


def _began_together(earlier: Report, later: Report) -> bool:
    first, second = _ended_ms(earlier), _ended_ms(later)
    elapsed = [_elapsed_ms(report) for report in (earlier, later)]
    if first is None or second is None or not all(elapsed) or second <= first:
        return False
    if abs((second - elapsed[1]) - (first - elapsed[0])) > ROUNDED_MS:
        return False
    # Runs of less than a second one after the other would pass: the jobs of a second report went on working.
    return elapsed[0] > ROUNDED_MS or _worked_ms(later) - _worked_ms(earlier) >= (second - first) / 2


def _ended_ms(report: Report) -> float | None:
    exact = amount(report.get("timestamp_ms"))
    return exact if exact is not None else scaled(report.get("timestamp"), 1e3)


def _elapsed_ms(report: Report) -> float:
    return max((scaled(job.get("elapsed"), 1e3) or 0.0 for job in report["jobs"]), default=0.0)


def _worked_ms(report: Report) -> float:
    """Return the longest time that a direction of a job was at work."""
    return max((_total(job, name, "runtime") for job in report["jobs"] for name in DIRECTIONS), default=0.0)


def series(reports: Sequence[Report], place: int) -> list[Moment]:
    """Return the rates of the job at `place` between reports, requests and bytes per second; empty for one report."""
    if len(reports) < 2:
        return []
    begin: Report = {"jobs": [{} for _ in reports[0]["jobs"]]}
    return [moment for earlier, later in pairwise([begin, *reports]) for moment in _interval(earlier, later, place)]


def _interval(earlier: Report, later: Report, place: int) -> Iterator[Moment]:
    before, after = earlier["jobs"][place], later["jobs"][place]
    values: dict[str, float] = {}
    longest = 0.0
    directions = DIRECTIONS[:-1] if any(_total(after, name, "total_ios") for name in DIRECTIONS[:-1]) else DIRECTIONS
    for name in directions:
        requests, moved, worked = (_total(after, name, each) - _total(before, name, each) for each in TOTALS)
        seconds = worked / 1e3
        if seconds > 0:
            scale = 1024 if "io_kbytes" not in after[name] else 1  # fio 2 counts KiB
            values |= {f"{name}.iops": requests / seconds, f"{name}.bytes_per_s": moved * scale / seconds}
            longest = max(longest, seconds)
    if values:
        yield Moment(at=utc((_ended_ms(later) or 0.0) / 1e3), seconds=longest, values=values)
