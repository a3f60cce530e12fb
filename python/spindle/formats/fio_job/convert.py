"""A job file as native workloads, one for each phase, and all there is to say about it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spindle import _core

from .document import body_of
from .finding import Finding, JobFileRefused, Level
from .job import TypedJob, typed
from .source import Section, read_sections, sections_of
from .stream import ENGINES, Converted, Keys, own_bytes, own_files, streams_of, written

MOST_STREAMS = 64
MOST_JOBS = 1000
NEVER = "3650d"


@dataclass(frozen=True)
class Phase:
    """Jobs that run at the same time: one native workload."""

    jobs: list[TypedJob]
    target: str | None
    """What the job file names, or the command line; None: neither."""
    engine: str
    """For --engine: io_uring, pread, or auto if the jobs differ."""
    head: Keys
    """Keys of the workload."""
    streams: list[Keys]
    needs_bytes: int
    """The target must be as large as this; 0: not known."""

    @property
    def changes(self) -> bool:
        """Whether it writes or discards."""
        return any(not each.job.kind.endswith("read") for each in self.jobs)


@dataclass(frozen=True)
class Conversion:
    """A whole job file."""

    file: str
    jobs: list[TypedJob]
    phases: list[Phase]
    findings: list[Finding]

    @property
    def refused(self) -> bool:
        return any(finding.level is Level.ERROR for finding in self.findings)

    def one_phase(self) -> Phase:
        """The phase, for who can run only one. Raises JobFileRefused."""
        errors = [finding for finding in self.findings if finding.level is Level.ERROR]
        if errors:
            raise JobFileRefused(errors)
        if len(self.phases) > 1:
            place = self.phases[1].jobs[0].places.get("stonewall", self.phases[1].jobs[0].job.place)
            text = (
                f"{len(self.phases)} phases one after another; `spindle convert {self.file} -o NAME.toml` writes a "
                "workload for each, to be run in turn"
            )
            raise JobFileRefused([Finding(Level.ERROR, place, "stonewall", text)])
        return self.phases[0]


def convert(path: str, target: str | None = None, environment: Mapping[str, str] | None = None) -> Conversion:
    """Reads a job file. `target` stands for what its jobs name. Raises JobFileRefused if it is no job file."""
    return _convert(read_sections(path, environment), path, target)


def convert_text(
    text: str, path: str, target: str | None = None, environment: Mapping[str, str] | None = None
) -> Conversion:
    """The same of a text that was read already; includes are looked for beside `path`."""
    return _convert(sections_of(text, path, environment), path, target)


def _convert(sections: list[Section], path: str, target: str | None) -> Conversion:
    if len(sections) > MOST_JOBS:
        text = f"more than {MOST_JOBS} jobs"
        raise JobFileRefused([Finding(Level.ERROR, sections[MOST_JOBS].place, "", text)])
    jobs = [typed(section) for section in sections]
    groups: list[list[TypedJob]] = []
    for job in jobs:
        if job.job.stonewall or not groups:
            groups.append([])
        groups[-1].append(job)
    phases = [_phase(group, target, path) for group in groups]
    if not any(finding.level is Level.ERROR for job in jobs for finding in job.findings):
        for phase in phases:
            _check(phase)
    return Conversion(path, jobs, phases, _once(jobs))


def _check(phase: Phase) -> None:
    """Limits of workloads that no single option breaks."""
    try:
        _core.Workload.parse(body_of(phase), "workload", "workload")
    except _core.ConfigError as error:
        phase.jobs[0].say(Level.ERROR, "", f"beyond what a workload can hold: {error}")


def _phase(jobs: list[TypedJob], target: str | None, path: str) -> Phase:
    named = _common_target(jobs)
    place = target if target is not None else named
    on_device = place is not None and re.match(r"/dev/(?!shm/)", os.path.normpath(place)) is not None
    base = 0
    done: list[Converted] = []
    for each in jobs:
        shared = not own_files(each.job) or (len(jobs) == 1 and each.job.numjobs == 1)
        if each.job.exitall and len(jobs) > 1:
            each.say(Level.ERROR, "exitall", "a job that ends does not end the others")
        done.append(streams_of(each, on_device, None if shared else base))
        if not shared:
            base += own_bytes(each.job)
    if base:
        jobs[0].say(
            Level.DIFFERS,
            "filename",
            "in fio each job and clone has a file of its own; here they lie side by side",
        )
    streams = _named([stream for one in done for stream in one.streams])
    if len(streams) > MOST_STREAMS and all(each.job.numjobs <= MOST_STREAMS for each in jobs):
        jobs[0].say(Level.ERROR, "numjobs", f"{len(streams)} streams at the same time; {MOST_STREAMS} are the most")
    head = _head(jobs, done, path)
    engines = {ENGINES.get(each.job.engine, "auto") for each in jobs}
    engine = engines.pop() if len(engines) == 1 else "auto"
    return Phase(jobs, place, engine, head, streams, max(one.needs_bytes for one in done))


def _common_target(jobs: list[TypedJob]) -> str | None:
    names = {each.job.filename for each in jobs}
    if len(names) == 1:
        return names.pop()
    other = next(each for each in jobs if each.job.filename != jobs[0].job.filename)
    other.say(
        Level.ERROR,
        "filename",
        "jobs that run at the same time have one target; use a job file for each target",
    )
    return None


def _head(jobs: list[TypedJob], done: list[Converted], path: str) -> Keys:
    """Keys of the workload; streams that end before it get an end of their own."""
    about = next((each.job.about for each in jobs if each.job.about), "")
    head: Keys = {"about": _printable(about) or f"from {_printable(os.path.basename(path))}"}
    ends = {one.end_us for one in done}
    head |= _end(done, ends)
    for one in done:
        if one.end_us and (0 in ends or one.end_us < max(ends)):
            for stream in one.streams:
                stream["stop_after"] = _duration(one.end_us)
    ramps = {each.job.ramp_us for each in jobs}
    if len(ramps) > 1:
        jobs[0].say(Level.ERROR, "ramp_time", "differs between jobs that run at the same time; give all the same")
    if max(ramps):
        head["ramp"] = _duration(max(ramps))
        for each in jobs:
            if each.job.delay_us:
                each.say(Level.ERROR, "startdelay", "beside ramp_time; the ramp is that of the whole run")
    seeds = [each for each in jobs if each.job.seed is not None]
    if seeds:
        head["seed"] = seeds[0].job.seed or 0
        for each in seeds[1:]:
            if each.job.seed != seeds[0].job.seed:
                each.say(Level.DIFFERS, "randseed", f"the whole workload has one seed: {seeds[0].job.seed}")
    return head


def _end(done: list[Converted], ends: set[int]) -> Keys:
    """A workload has an end of its own; where all its streams have theirs, one that is never reached before."""
    if 0 not in ends:
        return {"seconds": _duration(max(ends))}
    if len(done) == len(done[0].streams) == 1 and done[0].moves_bytes and "workers" not in done[0].streams[0]:
        return {"bytes": written(done[0].moves_bytes)}
    return {"seconds": NEVER}


def _duration(us: int) -> str:
    return f"{us // 10**6}s" if us % 10**6 == 0 else f"{us}us"


def _printable(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:120]


def _named(streams: list[Keys]) -> list[Keys]:
    """Names of letters, digits, - and _, each once."""
    taken: set[str] = set()
    for stream in streams:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", str(stream["name"])).strip("-")[:40] or "job"
        free = name
        for number in range(2, len(streams) + 2):
            if free not in taken:
                break
            free = f"{name}-{number}"
        taken.add(free)
        stream["name"] = free
    return streams


def _once(jobs: list[TypedJob]) -> list[Finding]:
    """What is said of a global, or of no particular place, is said once."""
    seen: set[tuple[object, ...]] = set()
    found: list[Finding] = []
    for each in jobs:
        for finding in each.findings:
            nowhere = finding.place == each.job.place
            key = (finding.option, finding.text, None if nowhere else finding.place)
            if key not in seen:
                seen.add(key)
                found.append(finding if not nowhere else replace(finding))
    return sorted(found, key=lambda finding: (finding.place.file, finding.place.line))
