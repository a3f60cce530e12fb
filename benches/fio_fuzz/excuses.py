"""The `differs` lines of a conversion that excuse a difference of the same job, and no other difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spindle.formats.fio_job import Conversion, Level
from spindle.formats.fio_job.finding import JobFinding
from spindle.formats.fio_job.job import Job

from .compare import Difference


def excusing_line(difference: Difference, conversion: Conversion) -> str:
    """The line that names the difference; empty: there is none."""
    jobs = conversion.phases[difference.phase].jobs
    for each in jobs if difference.job is None else [jobs[difference.job]]:
        for finding in each.findings:
            if finding.level is Level.DIFFERS and any(one.covers(finding, difference, each.job) for one in EXCUSES):
                return str(finding)
    return ""


def _always(_: Job) -> bool:
    return True


@dataclass(frozen=True)
class Excuse:
    """The differences that a line explains."""

    option: str
    text: str
    """Part of the line."""
    whats: tuple[str, ...]
    fewer: str = ""
    """The tool with fewer requests, if the difference is an amount; empty: either tool."""
    kinds: tuple[str, ...] = ()
    """Kinds of requests; none: all."""
    when: Callable[[Job], bool] = _always

    def covers(self, finding: JobFinding, difference: Difference, job: Job) -> bool:
        """True if this line of this job names this difference."""
        return (
            finding.option == self.option
            and self.text in finding.text
            and difference.what in self.whats
            and (not self.fewer or not difference.fewer or difference.fewer == self.fewer)
            and (not self.kinds or difference.kind in self.kinds)
            and self.when(job)
        )


AMOUNTS = ("requests", "bytes")

EXCUSES = (
    Excuse("ioengine", "vsync writes what it should discard", (*AMOUNTS, "mix", "sizes", "time")),
    Excuse("offset", "counts them from the offset", (*AMOUNTS, "places", "range")),
    Excuse("offset", "adds the offset a second time", (*AMOUNTS, "places", "range", "time"), fewer="fio"),
    Excuse("loops", "the same places again", ("places",)),
    Excuse("io_size", "the same places again", ("places",)),
    Excuse("loops", "the same sizes again", ("places",)),
    Excuse("io_size", "the same sizes again", ("places",)),
    Excuse("loops", "in the middle of a pass", ("places", "files")),
    Excuse("io_size", "in the middle of a pass", ("places", "files")),
    Excuse("fsync", "at the end of each round", ("syncs",), fewer="Spindle"),
    Excuse("fdatasync", "at the end of each round", ("syncs",), fewer="Spindle"),
    Excuse("ramp_time", "does not count", (*AMOUNTS, "figures", "mix", "syncs", "range", "places", "time")),
    Excuse("rate", "one request each at least", ("requests", "mix"), fewer="fio"),
    Excuse("rate_iops", "one request each at least", ("requests", "mix"), fewer="fio"),
    Excuse("rate", "are a stream each", ("mix", "time")),
    Excuse("rate_iops", "are a stream each", ("mix", "time")),
    Excuse("exitall", "its reads or its writes", AMOUNTS, fewer="Spindle"),
    Excuse("rate_process", "open loop", ("time",)),
    Excuse("io_submit_mode", "open loop", ("time",)),
    Excuse(
        "io_submit_mode", "that its threads have not finished", (*AMOUNTS, "places", "range", "files"), fewer="Spindle"
    ),
    Excuse("random_generator", "beside ba ends early", (*AMOUNTS, "places", "range", "mix"), fewer="fio"),
    Excuse("ba", "fio leaves out the last one", ("places", "range")),
    Excuse("openfiles", "as if all were", ("order", "files", "places", "range")),
    Excuse("nrfiles", "until all are through", ("order", "files", "places")),
    Excuse("bs", "may end before all are visited", (*AMOUNTS, "places", "files", "range", "syncs"), fewer="fio"),
    Excuse("numjobs", "a faster one does more", ("files", "places")),
    Excuse("startdelay", "drawn from the range", ("time",)),
    Excuse("thinktime_blocks_type", "were issued", ("time",)),
    Excuse("norandommap", "drawn independently", ("places",)),
    Excuse("norandommap", "cuts a request", ("sizes",)),
    Excuse("rw", "fio ends when requests behind each other", (*AMOUNTS, "range", "places"), fewer="fio"),
    Excuse("percentage_random", "fio ends when requests behind each other", (*AMOUNTS, "range", "places"), fewer="fio"),
    Excuse("rw", "fio ends when its reads or its writes are through", (*AMOUNTS, "range", "places"), fewer="fio"),
    Excuse("rw", "with this chance", ("places", "order")),
    Excuse("time_based", "both do when one of them is", ("range", "places")),
    Excuse("loops", "both do when one of them is", ("range", "places")),
    Excuse("io_size", "both do when one of them is", ("range", "places")),
    Excuse("rw", "takes the next free one", ("order",)),
    Excuse("rw", "begins at the region's last block", ("places", "order", "range")),
    Excuse("fsync", "loses it", ("syncs", "files", "order")),
    Excuse("fdatasync", "loses it", ("syncs", "files", "order")),
    Excuse("fsync", "after each read", ("syncs",)),
    Excuse("fdatasync", "after each read", ("syncs",)),
    Excuse("fsync", "more than once if it", ("syncs", "requests", "places")),
    Excuse("fdatasync", "more than once if it", ("syncs", "requests", "places")),
    Excuse("fsync", "after the next trim", ("syncs",)),
    Excuse("fdatasync", "after the next trim", ("syncs",)),
    Excuse("fsync_on_close", "once, at the end", ("syncs",)),
    Excuse("end_fsync", "at the end of each round", ("syncs",), fewer="Spindle"),
    Excuse("random_distribution", "that the end of the region cuts off", (*AMOUNTS, "range", "syncs", "files")),
    Excuse("create_serialize", "remove a file that another works on", ("files",)),
    Excuse("direct", "go through the page cache", ("time",)),
    Excuse("sync", "go through the page cache", ("time",)),
    Excuse("trim_percentage", "it goes on to size", (*AMOUNTS, "places", "range", "syncs", "files"), fewer="Spindle"),
    Excuse("verify_pattern", "fio checks what it has written", (*AMOUNTS, "mix", "places", "order", "range", "files")),
    Excuse("size", "and may make one more request", (*AMOUNTS, "places", "range"), fewer="Spindle"),
    Excuse("size", "rounds it down to whole requests", (*AMOUNTS, "range"), fewer="fio"),
    Excuse(
        "ioengine",
        "hands over neighbours together",
        (*AMOUNTS, "sizes", "places", "mix", "range", "syncs", "files"),
        when=lambda job: job.depth > 1,
    ),
)
