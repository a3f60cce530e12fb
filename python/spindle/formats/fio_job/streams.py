"""One job as streams of a native workload."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace

from spindle.base.units import exact_size

from . import strides
from .amounts import Rounds
from .arrival import arrival_of, rated_directions
from .concurrency import ENGINES, MAPPING, data_of, depth_of, queues, say_shared
from .filesets import FileSets, JobTarget, paths_of, sizes_of_files
from .finding import Level
from .job import Job, TypedJob
from .numbers import NOTHING
from .places import maps, places_of, popular
from .quantity import Keys, duration
from .sizes import differ, largest, one_size, sizes_of
from .verification import verify_of

MOST_STREAMS = 64
LEFT_FREE = 6
"""% of a file system that a job leaves free; the last 5 % are never given to a test file (host.testfile)."""


@dataclass(frozen=True)
class JobStreams:
    """Streams of one job."""

    streams: list[Keys]
    end_us: int
    """Measured time after which its streams end; 0: by their amounts."""
    needs_bytes: int
    """The target must be as large as this; 0: not known, or files are made."""
    moves_bytes: int
    """Bytes moved by its streams, if only that ends them; 0: not known exactly."""
    used: list[Keys]
    """The sets of files."""
    clones: list[int]
    """For each stream, the number of its clone, from 0."""


@dataclass(frozen=True)
class StreamPlacement:
    """Position of a job's streams."""

    place: JobTarget
    sets: FileSets
    base: int | None
    """Offset of the job's own files on the target; None: the target is the job's file itself."""
    apart: bool
    """True: each clone is a separate stream."""
    laid_out: int = 0
    """Length of each of its files, made by earlier jobs, when fio examines it for this one; bytes."""


def streams_of(typed: TypedJob, ground: StreamPlacement) -> JobStreams:
    """Convert a job. Obstacles are reported in `typed.findings`."""
    job = typed.job
    keys = places_of(typed) | sizes_of(typed)
    depth = depth_of(typed)
    if depth > 1:
        keys["depth"] = depth
    keys |= data_of(typed, ground.place.on_device, ground.place.folder or ground.place.null) | verify_of(typed)
    _check_growth(typed, ground)
    _check_offset(typed)
    if job.writes and job.engine != MAPPING and not (ground.place.on_device or job.overwrite or job.mixed):
        if not ground.place.folder:
            text = "a file that fio has to make first grows as it is written; here its blocks are there"
            typed.say(Level.DIFFERS, "overwrite", text)
        elif job.fallocates:
            typed.say(Level.DIFFERS, "fallocate", "no space is reserved beforehand: files grow as they are written")
    if 0 < job.opens < max(len(job.filenames), job.nrfiles):
        text = "all files stay open, and their turns come as if all were; fio goes on with those that it has opened"
        typed.say(Level.DIFFERS, "openfiles", text)
    if job.stat_type:
        typed.say(Level.ERROR, "stat_type", "belongs to ioengine=filestat; remove it")
    apart = _apart(typed, ground)
    sharing = 1 if apart else job.numjobs
    rates = [(keys | arrival_of(typed, job.direction, sharing, depth), "", 1.0)]
    if rated := rated_directions(typed):
        rates = _by_direction(typed, keys, sharing, depth, rated)
    return _clones(typed, ground, rates, apart)


def _check_offset(typed: TypedJob) -> None:
    """Report that fio 3.33 takes the trim's offset in the file as one in the region."""
    if typed.job.kind == "randtrimwrite" and (typed.job.offset != NOTHING or typed.job.offset_increment != NOTHING):
        text = "fio 3.33 adds the offset a second time to each write, and ends where that is behind the region"
        typed.say(Level.DIFFERS, "offset", text)


def _check_growth(typed: TypedJob, ground: StreamPlacement) -> None:
    """Report findings about jobs that fill a device, append, or trim their own writes."""
    job = typed.job
    if job.fill_device and not ground.place.on_device and not ground.place.folder:
        typed.say(Level.ERROR, "fill_device", "one file is the target; give a directory as TARGET, or none")
    elif job.fill_device and ground.place.folder and (job.random or not job.writes or job.mixed):
        typed.say(Level.ERROR, "fill_device", "a file is filled by writes in order; give rw=write, or a size")
    if job.append and ground.place.on_device:
        typed.say(Level.NOTE, "file_append", "of no effect on a device, as in fio")
    elif job.append and not ground.place.folder:
        text = "a file that is there is not written, and nothing behind its end can be read; give a directory as TARGET"
        typed.say(Level.ERROR, "file_append", text)
    elif job.append and not ground.sets.held.get(job.filenames):
        typed.say(Level.NOTE, "file_append", "the file is new: it begins at its start, as in fio")
    checked = job.verify not in ("0", "null")
    if job.trim_percent and not (checked and job.trim_backlog):
        typed.say(Level.NOTE, "trim_percentage", "of no effect without verify and trim_backlog, as in fio")
        if checked and job.writes and (job.number_ios or 0 < job.io_size.bytes < job.size.bytes):
            text = "fio 3.33 ends at neither number_ios nor io_size if it marked a write for a trim: it goes on to size"
            typed.say(Level.DIFFERS, "trim_percentage", text)
    elif job.trim_percent:
        text = "with verify and trim_backlog fio 3.33 ends in an assertion; for trims use rw=trimwrite"
        typed.say(Level.ERROR, "trim_percentage", text)


def own_files(job: Job) -> bool:
    """True if fio would lay out files for it."""
    return not job.filenames and bool(job.size.bytes or job.filesizes[1])


def own_bytes(job: Job) -> int:
    """Return the bytes of the files that fio would lay out for the job and its clones."""
    return _own_bytes(job) * job.numjobs


def _own_bytes(job: Job) -> int:
    return (job.filesizes[1] or job.offset.bytes + job.size.bytes) if job.offset.percent is None else job.size.bytes


def _by_direction(
    typed: TypedJob, keys: Keys, sharing: int, depth: int, rated: list[int]
) -> list[tuple[Keys, str, float]]:
    """Split reads and writes with their own bounds into a stream each, with its share of the amount."""
    job = typed.job
    text = "reads and writes are a stream each, at their own rates; the shares of rwmixread do not apply"
    typed.say(Level.DIFFERS, "rate" if any(job.rates) else "rate_iops", text)
    if job.exitall:
        typed.say(Level.DIFFERS, "exitall", "ends when its reads or its writes are done, as they are a stream each")
    weights = [(job.rates[at] or job.rates_iops[at] * job.sizes[at].smallest) if at in rated else 0 for at in (0, 1)]
    if len(rated) < 2:
        shares = [(100 - job.write_percent) / 100, job.write_percent / 100]
    else:
        shares = [weight / sum(weights) for weight in weights]
    found = []
    for at, name in ((0, "-read"), (1, "-write")):
        one: Keys = dict(keys)
        if at == 1:
            one |= {key: keys[f"write_{key}"] for key in ("size", "align", "zones") if f"write_{key}" in keys}
        one = {key: value for key, value in one.items() if key not in _OF_WRITES}
        one["write_fraction"] = "100%" if at else "0%"
        if at == 0:
            one = {key: value for key, value in one.items() if key not in _SYNCS}
        found.append((one | arrival_of(typed, at, sharing, depth), name, shares[at]))
    return found


_OF_WRITES = ("own_writes", "write_size", "write_align", "write_zones")
_SYNCS = ("dsync", "osync", "fsync_every", "fdatasync_every", "fsync_between", "end_fsync", "content")


def _apart(typed: TypedJob, ground: StreamPlacement) -> bool:
    """True if each clone is a separate stream: workers of one stream share its region and its popular places."""
    job = typed.job
    if job.numjobs == 1:
        return False
    own = own_files(job)
    return bool(
        ground.apart
        or job.offset_increment != NOTHING
        or popular(typed)
        or job.trims_first
        or job.delays_us[0] != job.delays_us[1]
        or (not ground.place.folder and own and _uneven(job))
        or (not own and not job.random)
        or ((job.fsync or job.fdatasync) and job.writes and job.numjobs <= MOST_STREAMS)
        or (not ground.place.folder and job.skip_bytes != 0)
        or (own and _may_share_unevenly(job) and job.numjobs <= MOST_STREAMS)
        or (not job.random and job.sizes[job.direction].split)
    )


def _may_share_unevenly(job: Job) -> bool:
    """True if workers of one stream are not each ended by their own file."""
    return bool(job.number_ios or job.io_size.bytes or job.skip_bytes)


def _uneven(job: Job) -> bool:
    return job.offset != NOTHING or (not job.random and bool(job.size.bytes % job.sizes[job.direction].smallest))


def _clones(typed: TypedJob, ground: StreamPlacement, kinds: list[tuple[Keys, str, float]], apart: bool) -> JobStreams:
    job = typed.job
    count = job.numjobs
    sharing = 1 if apart else count
    streams: list[Keys] = []
    used: list[Keys] = []
    clones: list[int] = []
    needs = moves = 0
    ends: Limits = {}
    for number in range(count if apart else 1):
        if number * len(kinds) >= MOST_STREAMS:
            text = f"{count} clones that are a stream each; {MOST_STREAMS} streams are the most"
            typed.say(Level.ERROR, "numjobs", text)
            break
        name = f"{job.name}-{number}" if apart else job.name
        ends, exact = _ends(_clone(typed, number), ground, sharing)
        moves += exact * sharing
        where, end, files = _where(typed, ground, name, number, sharing)
        needs = max(needs, end)
        used += files
        start = delay_of(typed, name)
        if len(kinds) > 1 and _is_one(ends, job.sizes[job.direction].smallest):
            text = "reads and writes make one request each at least; fio one of both"
            typed.say(Level.DIFFERS, "rate" if any(job.rates) else "rate_iops", text)
        for keys, suffix, share in kinds:
            shared = {"workers": count} if sharing > 1 else {}
            clones.append(number)
            limits = _limits(ends, share, job.sizes[job.direction].smallest, is_rest=suffix == "-write")
            streams.append({"name": name + suffix, **keys, **shared, **limits, **where, **start})
    if sharing > 1 and ends:
        say_shared(typed, count)
    runtime = end_of(job)
    return JobStreams(streams, runtime, needs, moves if not runtime else 0, used, clones)


def _clone(typed: TypedJob, number: int) -> TypedJob:
    """Return the job with the offset of this clone."""
    job = typed.job
    begin = replace(job.offset, bytes=job.offset.bytes + number * job.offset_increment.bytes)
    return TypedJob(replace(job, offset=begin), typed.section, typed.places, typed.findings)


def end_of(job: Job) -> int:
    """Return the measured time after which a job ends, us; 0: it ends by its amount."""
    return job.runtime_us + job.delays_us[1] if job.runtime_us else 0


Limits = dict[str, float]
"""Limits of a stream: `stop_bytes`, `stop_requests`, `stop_passes`."""


def _is_one(ends: Limits, request: int) -> bool:
    """True if a clone makes a single request."""
    return 0 < ends.get("stop_bytes", 0) <= request or ends.get("stop_requests") == 1


def _limits(ends: Limits, share: float, request: int, is_rest: bool) -> Keys:
    """Return the limits of a stream with this share of its job, in whole requests; the other stream has the rest."""
    found: Keys = {}
    for key, value in ends.items():
        unit = request if key == "stop_bytes" else 1
        whole = -(-value // unit)
        of_this = whole - round(whole * (1 - share)) if is_rest else round(whole * share)
        part = value * share if key == "stop_passes" else value if share == 1 else max(of_this, 1) * unit
        found[key] = exact_size(int(part)) if key == "stop_bytes" else part
    return found


def delay_of(typed: TypedJob, name: str) -> Keys:
    """Return the delay of the stream with this name."""
    low, high = typed.job.delays_us
    if low == high:
        return {"start_delay": duration(low)} if low else {}
    typed.say(Level.DIFFERS, "startdelay", "drawn from the range by the seed: the same in each run")
    drawn = random.Random(f"{typed.job.seed or 0} {name}").randint(low, high)
    return {"start_delay": duration(drawn)}


def _ends(typed: TypedJob, ground: StreamPlacement, sharing: int) -> tuple[Limits, int]:
    """Return the keys that end a stream by its amount, and the bytes of a clone if only they do, exactly."""
    job = typed.job
    own = ground.place.folder and not job.filenames
    timed = bool(job.runtime_us and job.time_based)
    if job.time_based and not job.runtime_us:
        typed.say(Level.NOTE, "time_based", "of no effect without runtime, as in fio")
    if timed and job.mixed and not job.random:
        typed.say(Level.DIFFERS, "time_based", _BOTH_BEGIN)
    if timed or job.latency_target_us:
        return {}, 0
    ends: Limits = {}
    if job.number_ios:
        if job.offloads:
            text = "ends after number_ios; fio exceeds it by the requests that its threads have not finished"
            typed.say(Level.DIFFERS, "io_submit_mode", text)
        ends["stop_requests"] = job.number_ios * job.loops * sharing * (2 if job.trims_first else 1)
        if job.trims_first and _may_begin_again(job):
            other = "loops" if job.loops > 1 else "io_size"
            text = f"fio doubles it with each round of trims and writes; leave out {other}"
            typed.say(Level.ERROR, "number_ios", text)
    if job.io_size.percent is not None and (job.size != NOTHING or job.filesizes[1]):
        typed.say(Level.ERROR, "io_size", "a share of the target beside a size; give bytes")
        return ends, 0
    amount = _amount(typed, ground)
    if (amount or job.number_ios) and job.ramp_us:
        typed.say(Level.DIFFERS, "ramp_time", "what is moved in it does not count towards the amount; in fio it does")
    if not amount:
        share = 1 if job.io_size.percent is None else job.io_size.percent / 100
        if job.loops > 1:
            _say_each_round(typed)
        _say_of_share(typed)
        if job.trims_first:
            typed.say(Level.ERROR, "size", "of trims before writes is needed in bytes")
        # Workers of one stream go through its region together, but each through files of its own.
        passes = strides.passes_of_whole(typed)
        ends["stop_passes"] = _plain(share * passes * job.loops * (1 if own else sharing))
        return ends, 0
    requests = amount * sharing // job.sizes[job.direction].low
    if sharing > 1 and one_size(job.sizes[job.direction]) and not (job.mixed and differ(typed)):
        # Workers that share an amount in bytes may go beyond it by a request, and with two amounts fall short of both.
        ends["stop_requests"] = min(requests, ends.get("stop_requests", requests))
    else:
        ends["stop_bytes"] = amount * sharing
    exact = not job.number_ios and one_size(job.sizes[job.direction]) and not job.mixed
    return ends, amount if exact or (job.mixed and job.sizes[0] == job.sizes[1]) else 0


def _may_begin_again(job: Job) -> bool:
    """True if fio may reach the end of a round before `number_ios` requests, and begin another."""
    if job.loops > 1 or not job.io_size.bytes:
        return job.loops > 1
    runs = job.run_length > 1 or job.percent_random[job.direction] < 100
    return runs or (bool(job.size.bytes) and job.number_ios > job.size.bytes // largest(job.sizes[job.direction]))


def _say_of_share(typed: TypedJob) -> None:
    """Report findings about a job whose region is a share of the target, or the target itself."""
    job = typed.job
    share = 100 if job.size.percent is None else job.size.percent
    if job.mixed and not strides.begins_whole_again(typed):
        typed.say(Level.DIFFERS, "rw", _FIRST_END)
    if share == 100:
        return
    if job.offset.percent and job.offset.percent + share < 100:
        text = (
            "up to this share of the target; fio counts it from the offset, rounded up, and may make one more request"
        )
        typed.say(Level.DIFFERS, "size", text)
    if job.mixed and (not job.random or differ(typed)):
        text = "the last request of reads and writes in a share may go beyond it; fio rounds it down to whole requests"
        typed.say(Level.DIFFERS, "size", text)


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _amount(typed: TypedJob, ground: StreamPlacement) -> int:
    """Return the bytes that each clone moves; 0: unknown."""
    job = typed.job
    if job.fill_device or job.filesizes[0] != job.filesizes[1] or job.io_size.percent is not None:
        return 0
    files = max(len(job.filenames), job.nrfiles if not job.filenames else 1)
    length = _length(job, files)
    size = min(job.size.bytes or length * files, length * files)
    if not size and not job.io_size.bytes:
        return 0
    sizes = job.sizes[job.direction]
    fixed = one_size(sizes) and not (job.mixed and differ(typed))
    if one_size(sizes) and size and size // files < sizes.low:
        typed.say(Level.ERROR, "size", "smaller than one request")
    if not job.in_order and 0 < length < job.align and not popular(typed):
        typed.say(Level.ERROR, "ba", "larger than a file, so fio finds no place in it")
    # Where the size of the target is not known, a round is taken to hold all there is to move.
    size = size or job.io_size.bytes * job.loops
    if job.random and job.writes and not maps(typed):
        size = max(size, job.io_size.bytes)
    rounds = Rounds(
        sizes.low if fixed else 1,
        max(largest(each) for each in (job.sizes[:2] if job.mixed else (sizes,))),
        (_capacity(typed, ground, files, length) if fixed else _room(typed, files, length)) if length else None,
        size,
        job.io_size.bytes,
        job.loops,
        queues(job),
        job.offloads,
        job.trims_first,
    )
    _say_rounds(typed, rounds)
    return rounds.requests() * rounds.request * (2 if job.trims_first else 1)


def _length(job: Job, files: int) -> int:
    """Return the used bytes of each file; 0: unknown."""
    return max(job.filesizes[1] - job.offset.bytes, 0) or job.size.bytes // files


def _capacity(typed: TypedJob, ground: StreamPlacement, files: int, length: int) -> int | None:
    """Return the requests of one round of fio up to the end of its files; None: it ends by its amount."""
    job = typed.job
    size = job.sizes[job.direction].low
    if job.random and job.percent_random[job.direction]:
        once = maps(typed) and job.percent_random[job.direction] == 100 and job.run_length == 1
        return length // size * files if once else None
    if not job.skip_bytes:
        if job.mixed and length % size and _is_whole_file(job, ground, length):
            typed.say(Level.DIFFERS, "rw", _FIRST_END)
        if job.mixed and 0 < job.write_percent < 100:
            return None  # reads and writes each come half as far
        return (length // size if _is_whole_file(job, ground, length) else -(-length // size)) * files
    whole = _is_whole_file(job, ground, length)
    passes = strides.ends_with_pass(typed, length, whole)
    if passes and job.mixed:
        typed.say(Level.DIFFERS, "rw", _FIRST_END)
    return strides.requests_of_pass(typed, length, whole) * files if passes and not job.mixed else None


def _room(typed: TypedJob, files: int, length: int) -> int | None:
    """Return the bytes of a round with requests of several sizes: each fits into its file if the smallest does."""
    job = typed.job
    every = maps(typed) and job.percent_random[job.direction] == 100 and job.run_length == 1
    if job.skip_bytes or job.mixed or (job.random and not every):
        return None
    return (length - length % job.sizes[job.direction].smallest) * files


def _say_rounds(typed: TypedJob, rounds: Rounds) -> None:
    """Report findings about a job whose reads or writes may reach the end of their region."""
    job = typed.job
    every = job.fsync or job.fdatasync
    if every and rounds.ends_at_capacity and not (rounds.capacity or 0) % every:
        text = "fio 3.33 makes one more at the end of each round that comes to the end of its region"
        typed.say(Level.DIFFERS, "fsync" if job.fsync else "fdatasync", text)
    if not rounds.several:
        return
    _say_each_round(typed)
    files = max(len(job.filenames), job.nrfiles)
    in_the_middle = strides.begins_again(typed, _length(job, files)) or (files > 1 and rounds.ends_by_size)
    if queues(job) and not job.mixed and not job.random and in_the_middle:
        text = "fio begins the next round in the middle of a pass; here each pass goes on to its end"
        typed.say(Level.DIFFERS, "loops" if job.loops > 1 else "io_size", text)


def _say_each_round(typed: TypedJob) -> None:
    """Report findings about a job with several rounds."""
    job = typed.job
    if job.end_fsync or job.close_fsync:
        typed.say(Level.DIFFERS, "end_fsync" if job.end_fsync else "fsync_on_close", _ONE_END)
    option = "loops" if job.loops > 1 else "io_size"
    if typed.job.random:
        typed.say(Level.DIFFERS, option, "fio draws the same places again in each round; here each has its own")
    elif typed.job.mixed:
        typed.say(Level.DIFFERS, option, _BOTH_BEGIN)
    elif not one_size(typed.job.sizes[typed.job.direction]):
        typed.say(Level.DIFFERS, option, "fio draws the same sizes again in each round; here each has its own")


_FIRST_END = "goes on until its amount is moved; fio ends when its reads or its writes are through once"
_ONE_END = "once, at the end of the job; fio at the end of each round"
_BOTH_BEGIN = "reads and writes each begin again when they are through; in fio both do when one of them is"


def _is_whole_file(job: Job, ground: StreamPlacement, length: int) -> bool:
    """True if a region of this length extends to the end of its file, as fio finds or makes it."""
    place = ground.place
    if place.null or own_files(job) or (place.folder and not job.filenames):
        return True
    if place.folder:
        return ground.laid_out <= job.offset.bytes + length
    if place.target is None or place.on_device:
        return False
    try:
        there = os.path.getsize(place.target)
    except OSError:
        there = 0  # it will be made
    return max(there, ground.laid_out) <= job.offset.bytes + length


def _where(
    typed: TypedJob, ground: StreamPlacement, name: str, number: int, sharing: int
) -> tuple[Keys, int, list[Keys]]:
    """Return the region of a clone or its files, the end of the region in bytes if known, and the set of files."""
    if ground.place.folder:
        return _in_folder(typed, ground, name, number, sharing)
    if ground.place.several:
        return _on_several(typed, ground, number, sharing), 0, []
    base = ground.base if ground.base is None else ground.base + number * _own_bytes(typed.job)
    region, end = _region(typed, ground, number, base, sharing)
    return region, end, []


def _on_several(typed: TypedJob, ground: StreamPlacement, number: int, sharing: int) -> Keys:
    """Return the region on several devices or files: each has its part of the size."""
    job = typed.job
    if not job.filenames:
        return {}  # said by itself
    keys: Keys = {"files": ground.sets.of_what_is_there(paths_of(job))}
    files = len(job.filenames)
    if files > 1:
        keys |= _service(typed)
    share = replace(job, size=replace(job.size, bytes=job.size.bytes // files))
    part = TypedJob(share, typed.section, typed.places, typed.findings)
    return keys | _region(part, ground, number, None, sharing)[0]


def _fills(typed: TypedJob, ground: StreamPlacement, files: int) -> int:
    """Return the bytes of each file that fill a file system, without the reserve."""
    job = typed.job
    place = ground.place.target or "."
    try:
        held = os.statvfs(place)
    except OSError as error:
        typed.say(Level.ERROR, "fill_device", f"{place}: {error.strerror}")
        return 0
    free = (held.f_bavail - held.f_blocks * LEFT_FREE // 100) * held.f_frsize
    size = job.sizes[1].smallest
    each = max(free, 0) // (files * job.numjobs) // size * size
    if not each:
        typed.say(Level.ERROR, "fill_device", f"less than {LEFT_FREE} % of the file system of {place} are free")
        return 0
    text = (
        f"{exact_size(each)} a file, so that the last {LEFT_FREE} % of the file system stay free; fio fills all of it"
    )
    typed.say(Level.DIFFERS, "fill_device", text)
    return each


def _in_folder(
    typed: TypedJob, ground: StreamPlacement, name: str, number: int, sharing: int
) -> tuple[Keys, int, list[Keys]]:
    job, sets = typed.job, ground.sets
    files = len(job.filenames) or job.nrfiles
    if job.offset.percent is not None or job.size.percent is not None or job.offset_increment.percent is not None:
        option = "size" if job.size.percent is not None else "offset"
        typed.say(Level.ERROR, option, "a share of files that are made for the run; give bytes")
    begin = job.offset.bytes + number * job.offset_increment.bytes
    appended = job.append and sets.held.get(job.filenames, 0)
    begin += appended or 0
    low, high = job.filesizes
    if appended:
        low = high = max(high, begin + job.size.bytes // files)
    each = high or begin + job.size.bytes // files
    if job.fill_device:
        low = high = each = _fills(typed, ground, files)
        if not each:
            return {}, 0, []
    if not each:
        if job.engine in ENGINES:  # one that is not there may need none
            typed.say(Level.ERROR, "size", "the files have to be made; give size or filesize")
        return {}, 0, []
    if job.filenames:
        made = sets.of_names(typed, each)
    else:
        size = each if low == high else sizes_of_files(job)
        made = sets.of_its_own(typed, name, size, "worker" if sharing > 1 else "stream")
    sets.use(made, typed)
    keys: Keys = {"files": made["name"]}
    if files > 1:
        keys |= _service(typed)
    end = min(begin + job.size.bytes // files, each) if job.size.bytes and not (job.fill_device or high) else each
    if files == 1 and low == high and not job.fill_device:
        end = _end_of_round(job, begin, end)
    if begin < end and not _is_whole_file(job, ground, end - begin):
        end = max(min(_last_request(typed, begin, end), ground.laid_out), end)
    if job.zone_mode == "strided":
        end = each
        _check_last_zone(typed, end - begin)
    if end <= begin:
        if begin:  # a size that is empty is reported by itself
            typed.say(Level.ERROR, "offset", "nothing of the file is behind it")
    elif low == high:
        begin, end = strides.within(typed, (begin, end), begin)
        keys |= strides.alignment(typed, begin, end)
        if begin or job.filenames or end < each:
            keys["region"] = f"{exact_size(begin)}-{exact_size(end)}"
    else:
        strides.within_unknown(typed)
        if begin:
            keys["region"] = f"{exact_size(begin)}-100%"
    if files > 1 and strides.begins_again(typed, end - begin):
        text = "a file that begins again first waits until all are through; fio goes on with it"
        typed.say(Level.DIFFERS, "nrfiles", text)
    if files > 1 and job.service[0] == "sequential" and not _leaves_file(typed, end - begin):
        typed.say(Level.ERROR, "file_service_type", "such a job never leaves its first file in fio; use roundrobin")
    return keys, 0, [made]


def _leaves_file(typed: TypedJob, length: int) -> bool:
    """True if fio reaches the end of a file of this length: with a runtime it restarts a random one."""
    if typed.job.random:
        return maps(typed) and not (typed.job.time_based and typed.job.runtime_us)
    return strides.leaves_file(typed, length)


def _check_last_zone(typed: TypedJob, length: int) -> None:
    """Report if the end of the file cuts off the last zone."""
    job = typed.job
    zone = job.zone_range or job.zone_bytes
    rest = length % (zone + job.zone_skip) if zone else 0
    if 0 < rest < (zone if job.random else min(zone, job.zone_bytes)):
        text = "the last zone is cut off by the end of the file: used as far as it goes; fio may end or turn there"
        typed.say(Level.DIFFERS, "zonerange", text)


def _service(typed: TypedJob) -> Keys:
    kind, requests = typed.job.service
    keys: Keys = {} if kind == "roundrobin" else {"file_service_type": kind}
    return keys | ({"file_requests": requests} if requests > 1 and kind != "sequential" else {})


def _region(typed: TypedJob, ground: StreamPlacement, number: int, base: int | None, sharing: int) -> tuple[Keys, int]:
    """Return the region of a clone, and its end in bytes if known."""
    job = typed.job
    filesize = job.filesizes[1]
    if job.filesizes[0] != filesize:
        typed.say(Level.ERROR, "filesize", "a range is for files that are made; give a directory as TARGET")
    if base is None and job.zone_mode == "strided" and NOTHING.percent == job.offset.percent:
        begin = job.offset.bytes + number * job.offset_increment.bytes
        end = filesize or (begin + job.size.bytes if job.size.bytes else 0)
        # Zones continue to the end of the file, whatever `size` is.
        return ({"region": f"{exact_size(begin)}-100%"} if begin else {}), end
    if base is not None:
        if job.offset.percent is not None or job.offset_increment.percent is not None:
            typed.say(Level.ERROR, "offset", "a share of a file that is part of the target; give bytes")
        begin = base + job.offset.bytes + number * job.offset_increment.bytes
        end = base + filesize if filesize else begin + job.size.bytes
        if sharing > 1:
            end = base + sharing * _own_bytes(job)
        return _bytes_region(typed, begin, end, begin - base)
    if job.offset.percent is not None or job.size.percent is not None:
        strides.within_unknown(typed)
        return _share_region(typed), 0
    if job.offset_increment.percent is not None:
        typed.say(Level.ERROR, "offset_increment", "a share of the target; give bytes")
    begin = job.offset.bytes + number * job.offset_increment.bytes
    if filesize or job.size.bytes:
        end = _end_of_round(job, begin, filesize or begin + job.size.bytes)
        if not _is_whole_file(job, ground, end - begin):
            end = _last_request(typed, begin, end)
        return _bytes_region(typed, begin, end, begin)
    strides.within_unknown(typed)
    return ({"region": f"{exact_size(begin)}-100%"} if begin else {}), 0


def _end_of_round(job: Job, begin: int, end: int) -> int:
    """Return the end of a round in order: the next one begins after `size` bytes, if fio counts them."""
    size = job.sizes[job.direction]
    if job.random or job.skip_bytes < 0 or not job.size.bytes or not queues(job) or job.mixed or not one_size(size):
        return end
    requests = -(-job.size.bytes // size.low)
    return min(end, begin + requests * (size.low + job.skip_bytes) - job.skip_bytes)


def _last_request(typed: TypedJob, begin: int, end: int) -> int:
    """Return the end of the last request of a region in order: if the file continues, fio makes it whole."""
    job = typed.job
    size = job.sizes[job.direction]
    if job.random or job.skip_bytes < 0 or not one_size(size) or (job.mixed and differ(typed)):
        return end
    stride = size.low + job.skip_bytes
    return max(begin + -(-(end - begin) // stride) * stride - job.skip_bytes, end)


def _bytes_region(typed: TypedJob, begin: int, end: int, offset: int) -> tuple[Keys, int]:
    """Return the region in bytes. `offset`: its start in its file."""
    if end <= begin:
        typed.say(Level.ERROR, "offset", "nothing of the file is behind it")
        return {}, 0
    first, last = strides.within(typed, (begin, end), offset)
    return {"region": f"{exact_size(first)}-{exact_size(last)}"} | strides.alignment(typed, first, last), end


def _share_region(typed: TypedJob) -> Keys:
    job = typed.job
    if job.offset.bytes or job.size.bytes or job.offset_increment != NOTHING or job.filesizes[1]:
        option = "size" if job.size.percent is not None else "offset"
        typed.say(Level.ERROR, option, "a share of the target beside one in bytes; give both as % or both in bytes")
        return {}
    begin = job.offset.percent or 0
    end = min(begin + (100 if job.size.percent is None else job.size.percent), 100)
    if end <= begin:
        typed.say(Level.ERROR, "size", "nothing of the target is in this region")
        return {}
    return {"region": f"{begin}%-{end}%"}
