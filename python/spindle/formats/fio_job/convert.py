"""A job file as one native workload, with all findings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spindle import _core
from spindle.base.units import exact_size
from spindle.result.workload_properties import stream_name

from .concurrency import ENGINES, MAPPING
from .document import body_of
from .filesets import FileSets, JobTarget, place_of
from .finding import JobFileRefused, JobFinding, Level
from .job import TypedJob, typed
from .names import check_together, names_of
from .phases import ends_of, phases_of, run_before_an_end
from .quantity import Keys, duration
from .search import LatencyTarget, search_of
from .source import STDIN, STDIN_NAME, Section, read_sections, sections_of
from .steady import steady_of
from .streams import MOST_STREAMS, JobStreams, StreamPlacement, own_bytes, own_files, streams_of
from .verification import check_readers

MOST_JOBS = 1000
NEVER = "3650d"


@dataclass(frozen=True)
class Phase:
    """Jobs that run at the same time."""

    jobs: list[TypedJob]
    head: Keys
    """Keys of the load."""
    streams: list[Keys]
    sources: list[int]
    """For each stream, the index of its job in `jobs`."""
    clones: list[int]
    """For each stream, the number of its clone, from 0."""


@dataclass(frozen=True)
class Conversion:
    """A whole job file."""

    file: str
    jobs: list[TypedJob]
    place: JobTarget
    engine: str
    """The engine: io_uring, pread, or auto if the jobs differ."""
    phases: list[Phase]
    files: list[Keys]
    """Sets of files that are made for it."""
    needs_bytes: int
    """The target must be as large as this; 0: not known, or files are made."""
    findings: list[JobFinding]
    cpus: tuple[int, ...] = ()
    iopoll: bool = False
    sqpoll: bool = False
    search: LatencyTarget | None = None
    """A search instead of a run."""
    listed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Existing devices and files, by the name of their set."""

    @property
    def target(self) -> str | None:
        return self.place.target

    @property
    def refused(self) -> bool:
        return any(finding.level is Level.ERROR for finding in self.findings)

    @property
    def cpus_shared(self) -> bool:
        """True if each worker may run on all of `cpus`."""
        return bool(self.cpus) and not any(each.job.cpus_split for each in self.jobs)

    @property
    def changes(self) -> bool:
        """True if it writes or discards."""
        return any(not each.job.kind.endswith("read") for each in self.jobs)

    def runnable(self) -> Conversion:
        """Return self. Raises JobFileRefused."""
        errors = [finding for finding in self.findings if finding.level is Level.ERROR]
        if errors:
            raise JobFileRefused(errors)
        return self


def convert(
    path: str, target: str | None = None, environment: Mapping[str, str] | None = None, only: Sequence[str] = ()
) -> Conversion:
    """Read a job file; `-` is the standard input. `target` replaces the files of its jobs; `only`: the jobs with these
    names. Raises JobFileRefused if it is not a job file."""
    source = STDIN_NAME if path == STDIN else path
    return convert_sections(read_sections(path, environment, only), source, target)


def convert_text(
    text: str, path: str, target: str | None = None, environment: Mapping[str, str] | None = None
) -> Conversion:
    """Convert a text; includes are searched beside `path`."""
    return convert_sections(sections_of(text, path, environment), path, target)


def convert_sections(sections: list[Section], path: str, target: str | None = None) -> Conversion:
    """Convert jobs; `path` is for messages."""
    if len(sections) > MOST_JOBS:
        text = f"more than {MOST_JOBS} jobs"
        raise JobFileRefused([JobFinding(Level.ERROR, sections[MOST_JOBS].place, "", text)])
    jobs = [typed(section) for section in sections]
    groups = run_before_an_end(phases_of(jobs))
    check_readers(groups)
    place = place_of(jobs, target)
    ends = any(each.job.exitall for each in jobs)
    sets = FileSets()
    needs = 0
    phases: list[Phase] = []
    laid_out = _laid_out(jobs)
    for group in groups:
        phase, bytes_needed = _phase(group, place, sets, path, laid_out)
        if ends:
            ends_of(group, phase.streams, phase.sources)
        phases.append(phase)
        needs = max(needs, bytes_needed)
    _name_phases(phases)
    moving = [each for each in jobs if not each.job.operation and each.job.engine != MAPPING]
    engines = {ENGINES.get(each.job.engine, "auto") for each in moving}
    if len(engines) > 1:
        other = next(each for each in moving if each.job.engine != moving[0].job.engine)
        other.say(Level.DIFFERS, "ioengine", 'the jobs of a file have one engine: `engine="auto"` chooses it')
    engine = engines.pop() if len(engines) == 1 else "auto"
    _same(jobs)
    search = search_of(jobs)
    first = jobs[0].job
    conversion = Conversion(
        path,
        jobs,
        place,
        engine,
        phases,
        sets.written(),
        needs,
        _once(jobs),
        first.cpus,
        first.iopoll,
        first.sqpoll,
        search,
        sets.listed,
    )
    if not conversion.refused:
        try:
            _core.Workload.parse(body_of(conversion), "workload", "workload")
        except _core.ConfigError as error:
            jobs[0].say(Level.ERROR, "", f"beyond the limits of a workload: {error}")
            conversion = replace(conversion, findings=_once(jobs))
    return conversion


def _same(jobs: list[TypedJob]) -> None:
    """Check options that apply to the whole run."""
    for option, value in (("cpus_allowed", "cpus"), ("hipri", "iopoll"), ("sqthread_poll", "sqpoll")):
        for each in jobs[1:]:
            if getattr(each.job, value) != getattr(jobs[0].job, value):
                named = "cpumask" if "cpumask" in each.places else option
                each.say(Level.ERROR, named, "differs between the jobs of the file; give all the same")
                break
    split = [each for each in jobs if each.job.cpus_split and each.job.cpus]
    if len({each.job.cpus_split for each in jobs if each.job.cpus}) > 1:
        split[0].say(Level.ERROR, "cpus_allowed_policy", "differs between the jobs of the file; give all the same")
    elif split and any(each.job.stonewall for each in jobs[1:]):
        text = "the first clone of each phase has the first CPU; fio goes on counting through the phases"
        split[0].say(Level.DIFFERS, "cpus_allowed_policy", text)


def _laid_out(jobs: list[TypedJob]) -> dict[int, int]:
    """Return, by the job's `id`, the length of its named files when fio examines them for it: before the first job
    runs, each in turn extends them to the length it needs.
    """
    found: dict[int, int] = {}
    lengths: dict[tuple[str, ...], int] = {}
    for each in jobs:
        job = each.job
        found[id(each)] = length = lengths.get(job.filenames, 0)
        size = job.size.bytes // max(len(job.filenames), 1)
        needed = job.filesizes[1] or job.offset.bytes + (job.numjobs - 1) * job.offset_increment.bytes + size
        grows_later = job.kind.endswith("write") and not (job.overwrite or job.fallocates or job.mixed)
        if needed > length:
            lengths[job.filenames] = 0 if grows_later else needed
    return found


def _phase(
    jobs: list[TypedJob], place: JobTarget, sets: FileSets, path: str, laid_out: dict[int, int]
) -> tuple[Phase, int]:
    base = 0
    done: list[JobStreams] = []
    fits = sum(each.job.numjobs for each in jobs) <= MOST_STREAMS
    for each in jobs:
        shared = place.folder or place.null or not own_files(each.job) or (len(jobs) == 1 and each.job.numjobs == 1)
        # Workers share an amount, and one may get nothing of it: the log of each clone must have all of its part.
        apart = fits and (not each.job.grouped or bool(each.job.logs) or each.job.exitall)
        ground = StreamPlacement(place, sets, None if shared else base, apart, laid_out[id(each)])
        done.append(names_of(each, ground) if each.job.operation else streams_of(each, ground))
        if not shared:
            base += own_bytes(each.job)
    for each, one in zip(jobs, done, strict=True):
        if each.job.writes and one.used:
            sets.note_written(each.job.filenames, one.used[0])
    sets.end_phase([(made, each) for each, one in zip(jobs, done, strict=True) for made in one.used])
    check_together(jobs)
    if base:
        text = "in fio each job and clone has its own file; here they are side by side"
        jobs[0].say(Level.DIFFERS, "filename", text)
    streams = _named([stream for one in done for stream in one.streams])
    if len(streams) > MOST_STREAMS and all(each.job.numjobs <= MOST_STREAMS for each in jobs):
        jobs[0].say(Level.ERROR, "numjobs", f"{len(streams)} streams at the same time; {MOST_STREAMS} are the most")
    sources = [at for at, one in enumerate(done) for _ in one.streams]
    clones = [clone for one in done for clone in one.clones]
    head = _head(jobs, done, path)
    return Phase(jobs, head, streams, sources, clones), max(one.needs_bytes for one in done)


def _head(jobs: list[TypedJob], done: list[JobStreams], path: str) -> Keys:
    """Return the keys of the load; streams that end before it get their own end."""
    about = next((each.job.about for each in jobs if each.job.about), "")
    head: Keys = {"about": _printable(about) or f"from {_printable(os.path.basename(path))}"}
    ends = {one.end_us for one in done}
    head |= _end(done, ends)
    for one in done:
        if one.end_us and (0 in ends or one.end_us < max(ends)):
            for stream in one.streams:
                stream["stop_after"] = duration(one.end_us)
    ramps = {each.job.ramp_us for each in jobs}
    if len(ramps) > 1:
        jobs[0].say(Level.ERROR, "ramp_time", "differs between jobs that run at the same time; give all the same")
    if max(ramps):
        head["ramp"] = duration(max(ramps))
        for each in jobs:
            if each.job.delayed:
                each.say(Level.ERROR, "startdelay", "beside ramp_time; the ramp is that of the whole run")
    seeds = [each for each in jobs if each.job.seed is not None]
    if seeds:
        head["seed"] = seeds[0].job.seed or 0
        for each in seeds[1:]:
            if each.job.seed != seeds[0].job.seed:
                text = f"all jobs that run at the same time have one seed: {seeds[0].job.seed}"
                each.say(Level.DIFFERS, "randseed", text)
    head |= steady_of(jobs)
    if not any(each.job.invalidate for each in jobs):
        head["drop_caches"] = False
    return head


def _end(done: list[JobStreams], ends: set[int]) -> Keys:
    """Return the end of the load; if all its streams have one, an end that is never reached before."""
    if 0 not in ends:
        return {"seconds": duration(max(ends))}
    if len(done) == len(done[0].streams) == 1 and done[0].moves_bytes and "workers" not in done[0].streams[0]:
        return {"bytes": exact_size(done[0].moves_bytes)}
    return {"seconds": NEVER}


def _printable(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:120]


def _name_phases(phases: list[Phase]) -> None:
    names = _named([{"name": phase.jobs[0].job.name} for phase in phases])
    for phase, named in zip(phases, names, strict=True):
        phase.head["name"] = named["name"]


def _named(things: list[Keys]) -> list[Keys]:
    """Make names of up to 32 letters, digits, - and _ unique."""
    taken: set[str] = set()
    for thing in things:
        name = stream_name(str(thing["name"]))
        free = name
        for number in range(2, len(things) + 2):
            if free not in taken:
                break
            free = f"{name[:27]}-{number}"
        taken.add(free)
        thing["name"] = free
    return things


def _once(jobs: list[TypedJob]) -> list[JobFinding]:
    """Report findings about globals, or without a place, only once."""
    seen: set[tuple[object, ...]] = set()
    found: list[JobFinding] = []
    for each in jobs:
        for finding in each.findings:
            nowhere = finding.place == each.job.place
            key = (finding.option, finding.text, None if nowhere else finding.place)
            if key not in seen:
                seen.add(key)
                found.append(finding)
    return sorted(found, key=lambda finding: (finding.place.file, finding.place.line))
