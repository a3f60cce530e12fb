"""Jobs of fio's engines filecreate, filestat and filedelete: operations on the names of a tree of files.

fio 3.33 counts requests of `bs` that it does not make, and times what its engine does when it opens a file: once for
each file of a round, in the order of `file_service_type`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arrival import arrival_of
from .concurrency import priority_of, say_shared
from .filesets import sizes_of_files
from .finding import Level
from .job import Job, TypedJob
from .numbers import NOTHING
from .quantity import Keys
from .sizes import one_size
from .streams import JobStreams, StreamPlacement, delay_of, end_of
from .verification import NONE, PRETENCE

_TIMED = {
    "create": "a name made in its open directory, and the close; fio times the open alone, by the whole path",
    "stat": "the look at a name in its open directory; fio goes down the whole path",
    "unlink": "the removal of a name from its open directory; fio goes down the whole path",
}
_ROUNDS = {
    "create": "from the second round on fio opens files that are there; give more nrfiles for more to make",
    "unlink": "after the first round the files are gone, and fio ends with an error; give more nrfiles",
}
ONE_BY_ONE = 1


@dataclass(frozen=True)
class _Round:
    """A round of a clone."""

    files: int
    filesize: int | str
    takes: int
    """Names it takes before it ends; 0: all of its files, once per loop."""


def names_of(typed: TypedJob, ground: StreamPlacement) -> JobStreams:
    """Return the stream of such a job. Obstacles are reported."""
    job = typed.job
    operation = job.operation or ""
    _check(typed, ground)
    typed.say(Level.DIFFERS, "ioengine", f"timed is {_TIMED[operation]}")
    clones = job.numjobs
    one = _round(typed)
    takes = one.takes * clones
    # Clones of fio make their files in one directory: so do the workers of one tree.
    files = takes if takes and operation == "create" else one.files * clones
    made = ground.sets.tree(typed, files, one.filesize)
    keys: Keys = {"name": job.name, "operation": operation, "files": made["name"]}
    if clones > 1:
        keys["workers"] = clones
        if not job.grouped:
            typed.say(Level.NOTE, "numjobs", "the clones are reported together, as with group_reporting")
    if job.service[0] == "random":
        keys["order"] = "random"
    keys |= _ends(typed, takes) | arrival_of(typed, job.direction, clones, ONE_BY_ONE) | priority_of(job)
    return JobStreams([keys | delay_of(typed, job.name)], end_of(job), 0, 0, [], [0])


def check_together(jobs: list[TypedJob]) -> None:
    """Check several such jobs that run at the same time."""
    together = [each for each in jobs if each.job.operation]
    if len(together) > 1:
        text = "the files of each job are in their own directory; in fio those of all are in one"
        together[1].say(Level.DIFFERS, "directory", text)


def _check(typed: TypedJob, ground: StreamPlacement) -> None:
    job = typed.job
    if not ground.place.folder:
        text = "names are made in a directory: give one as TARGET, or directory and nrfiles instead of one file"
        typed.say(Level.ERROR, "filename" if job.filenames else "ioengine", text)
    if job.filenames and job.numjobs > 1:
        typed.say(Level.ERROR, "numjobs", "beside filename the clones do the same to the same files; give nrfiles")
    for option, asked, text in (
        ("verify", job.verify not in (NONE, PRETENCE), "there are no data to check"),
        ("offset", job.offset != NOTHING, "names have no places"),
        ("offset_increment", job.offset_increment != NOTHING, "names have no places"),
        ("fill_device", job.fill_device, "names do not fill a device; give nrfiles"),
        ("ramp_time", job.ramp_us, "would use up names that then do not count; leave it out"),
        ("latency_target", job.latency_target_us, "names are taken one at a time: there is no depth to search for"),
        ("stat_type", job.stat_type and job.operation != "stat", "belongs to ioengine=filestat; remove it"),
        ("rate", any(job.rates), "names have no bytes; give rate_iops"),
        ("rate_iops", job.mixed and any(job.rates_iops), "names are neither read nor written; give rw=read"),
    ):
        if asked:
            typed.say(Level.ERROR, option, text)
    for option, asked in (
        ("direct", job.direct),
        ("sync", job.sync != "none"),
        ("fsync", job.fsync),
        ("fdatasync", job.fdatasync),
        ("end_fsync", job.end_fsync),
        ("fsync_on_close", job.close_fsync),
        ("iodepth", job.depth > 1),
        ("overwrite", job.overwrite),
        ("zero_buffers", job.zeroes),
        ("buffer_compress_percentage", job.compress_percent),
    ):
        if asked:
            typed.say(Level.NOTE, option, "of no effect on names, as in fio")
    if job.random and job.service[0] != "random":
        typed.say(
            Level.NOTE, "rw", "names are taken in order, as in fio; file_service_type=random takes them at random"
        )
    if job.stat_type == "statx" and job.operation == "stat":
        typed.say(Level.DIFFERS, "stat_type", "stat is called; fio times a realpath before its statx as well")


def _round(typed: TypedJob) -> _Round:
    """Return the round by fio's count of requests: a file has as many as fit into it."""
    job = typed.job
    files = len(job.filenames) or job.nrfiles
    size = job.sizes[job.direction].low
    low, high = job.filesizes
    each = high or job.size.bytes // files
    if job.size.percent is not None or job.io_size.percent is not None:
        option = "size" if job.size.percent is not None else "io_size"
        typed.say(Level.ERROR, option, "a share of files that are made for the run; give bytes")
        return _Round(files, each, 0)
    if not each:
        if job.operation != "create":
            typed.say(Level.ERROR, "size", "the files have to be made; give size or filesize")
        each = low = high = size
    filesize = 0 if job.operation == "create" else sizes_of_files(job) if low != high else each
    fit = max(each // size, 1 if job.operation == "create" else 0)
    if not fit:
        _smaller_than_request(typed)
        return _Round(files, filesize, 0)
    for option, counts in (("rate_iops", any(job.rates_iops)), ("thinktime", job.think_us)):
        if counts and (fit != 1 or low != high):
            typed.say(Level.ERROR, option, "counts requests of bs; give bs as large as the files, all of one size")
    limit = _limit(job, files, each)
    if limit is None or (low == high and limit[1] == files * fit):
        return _Round(files, filesize, 0)
    option, requests = limit
    if low != high or not one_size(job.sizes[job.direction]):
        typed.say(Level.ERROR, option, "counts requests, and files or requests differ in size; give one size")
        return _Round(files, filesize, 0)
    return _Round(files, filesize, _taken(typed, option, requests, files, fit))


def _limit(job: Job, files: int, each: int) -> tuple[str, int] | None:
    """Return the option that bounds a round, and its requests; None: each file is taken."""
    size = job.sizes[job.direction].low
    amount, option = job.io_size.bytes, "io_size"
    if not amount:
        amount, option = min(job.size.bytes or files * each, files * each), "size"
    requests = -(-amount // size)
    if job.number_ios and job.number_ios < requests:
        return "number_ios", job.number_ios
    if option == "io_size" or requests < files * max(each // size, 1):
        return option if option == "io_size" or job.size.bytes else "filesize", requests
    return None


def _taken(typed: TypedJob, option: str, requests: int, files: int, fit: int) -> int:
    """Return the names after N requests of fio, `fit` to each file."""
    job = typed.job
    service, in_turn = job.service
    if requests > files * fit and job.operation in _ROUNDS:
        typed.say(Level.ERROR, option, _ROUNDS[job.operation])
    if job.loops > 1:
        typed.say(Level.ERROR, "loops", f"beside {option}; give one of them")
    if fit == 1:
        return requests
    if requests < files * fit and service == "roundrobin" and in_turn == 1:
        return min(requests, files)
    if requests < files * fit and service == "sequential":
        return -(-requests // fit)
    typed.say(Level.ERROR, option, f"counts requests of bs, {fit} to a file; give bs as large as the files")
    return 0


def _smaller_than_request(typed: TypedJob) -> None:
    job = typed.job
    for option, asked in (
        ("loops", job.loops > 1),
        ("time_based", job.time_based and job.runtime_us),
        ("number_ios", job.number_ios),
        ("io_size", job.io_size.bytes),
        ("rate_iops", any(job.rates_iops)),
        ("thinktime", job.think_us),
    ):
        if asked:
            text = "files smaller than bs are taken once, whatever it says, as in fio; give bs as large as the files"
            typed.say(Level.ERROR, option, text)


def _ends(typed: TypedJob, takes: int) -> Keys:
    job = typed.job
    if job.time_based and not job.runtime_us:
        typed.say(Level.NOTE, "time_based", "of no effect without runtime, as in fio")
    timed = job.time_based and job.runtime_us
    if job.operation in _ROUNDS:
        for option, asked in (("loops", job.loops > 1), ("time_based", timed)):
            if asked:
                typed.say(Level.ERROR, option, _ROUNDS[job.operation])
    if timed:
        return {"stop_passes": "none"}
    if not takes or job.operation == "create":
        return {"stop_passes": job.loops} if job.loops > 1 else {}
    if job.numjobs > 1:
        say_shared(typed, job.numjobs)
    keys: Keys = {"stop_requests": takes}
    return keys | ({"stop_passes": "none"} if job.operation == "stat" else {})
