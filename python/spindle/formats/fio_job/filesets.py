"""Files of jobs: one that all of them share, or sets of files in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from spindle.base.units import exact_size
from spindle.result.target import NULL_PREFIX

from .concurrency import ENGINES, MAPPING, NULL
from .finding import Level
from .job import Job, TypedJob
from .places import visits_all
from .quantity import Keys

MOST_SETS = 64


@dataclass(frozen=True)
class JobTarget:
    """Target of the whole job file."""

    target: str | None
    """Target of the job file or the command line; None: neither."""
    folder: bool
    """A directory, in which files are made for it."""
    several: bool = False
    """Existing devices and files, a list of them for each job."""

    @property
    def null(self) -> bool:
        """True if nothing is stored: every job has all of it."""
        return self.target is not None and self.target.startswith(NULL_PREFIX)

    @property
    def on_device(self) -> bool:
        return self.null or self.several or (self.target is not None and _is_device(self.target))


@dataclass
class FileSets:
    """Sets of files in the order of their first use."""

    sets: list[Keys] = field(default_factory=list)
    _named: dict[tuple[str, ...], Keys] = field(default_factory=dict)
    listed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a set -> its devices and files."""
    _written: set[str] = field(default_factory=set)
    """Names of sets with data up to their end."""
    _begun: set[str] = field(default_factory=set)
    """Names of sets with some data."""
    held: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Names -> bytes that earlier phases wrote to each file."""

    def of_names(self, typed: TypedJob, bytes_each: int) -> Keys:
        """Return files that jobs may share by name."""
        names = typed.job.filenames
        if typed.job.numjobs > 1 and not typed.job.create_serialize:
            text = "clones share files that are made before them; in fio one may remove a file that another works on"
            typed.say(Level.DIFFERS, "create_serialize", text)
        for other in self._named:
            if other != names and set(other) & set(names):
                shared = next(iter(set(other) & set(names)))
                typed.say(Level.ERROR, "filename", f"`{shared[:40]}` is in several lists; jobs share all files or none")
        found = self._named.get(names)
        if found is None:
            found = self._add(_plain(names[0]), len(names), bytes_each, "stream")
            self._named[names] = found
        elif isinstance(found["filesize"], int) and bytes_each > found["filesize"]:
            found["filesize"] = bytes_each
        return found

    def of_what_is_there(self, paths: tuple[str, ...]) -> str:
        """Return the name of the set of these devices and files."""
        for name, other in self.listed.items():
            if other == paths:
                return name
        made = self._add(_plain(paths[0]), len(paths), "auto", "stream")
        self.listed[str(made["name"])] = paths
        return str(made["name"])

    def of_its_own(self, typed: TypedJob, name: str, filesize: int | str, each: str) -> Keys:
        """Return the files of one job or clone."""
        found = self._add(_plain(name), typed.job.nrfiles, filesize, each)
        if len(self.sets) > MOST_SETS:
            typed.say(Level.ERROR, "numjobs", f"more than {MOST_SETS} sets of files; add group_reporting")
        return found

    def tree(self, typed: TypedJob, count: int, filesize: int | str) -> Keys:
        """Return the files of a job with metadata operations."""
        found = self._add(_plain(typed.job.name), count, filesize, "stream")
        del found["fill"]
        if len(self.sets) > MOST_SETS:
            typed.say(Level.ERROR, "ioengine", f"more than {MOST_SETS} sets of files in the job file; use several")
        return found

    def _add(self, name: str, count: int, filesize: int | str, each: str) -> Keys:
        taken = {made["name"] for made in self.sets}
        free = name
        for number in range(2, len(self.sets) + 3):
            if free not in taken:
                break
            free = f"{name[:26]}-{number}"
        made: Keys = {"name": free, "nrfiles": count, "filesize": filesize, "each": each, "fill": False}
        self.sets.append(made)
        return made

    def use(self, made: Keys, job: TypedJob) -> None:
        """Record whether the files need data before the first request: if a job reads what no job wrote before."""
        name = str(made["name"])
        # A mapping cannot make a file longer: fio lays its file out before.
        mapped = job.job.engine == MAPPING
        reads = job.job.mixed or job.job.kind.endswith("read") or job.job.overwrite or mapped
        if reads and name not in self._written:
            made["fill"] = True
            if name in self._begun:
                text = (
                    "the files have data before the first job, which may leave out some; in fio they grow as it writes"
                )
                job.say(Level.DIFFERS, "overwrite", text)

    def end_phase(self, used: Sequence[tuple[Keys, TypedJob]]) -> None:
        """Record the data written in a phase for the next."""
        self._written |= {str(made["name"]) for made, job in used if job.job.writes and not _may_leave_out(job)}
        self._begun |= {str(made["name"]) for made, job in used if job.job.writes}

    def note_written(self, names: tuple[str, ...], made: Keys) -> None:
        """Record that files of these names have the length of the set's."""
        if names and isinstance(made["filesize"], int):
            self.held[names] = made["filesize"]

    def written(self) -> list[Keys]:
        """Return the sets as in the TOML."""
        found: list[Keys] = []
        for made in self.sets:
            size = made["filesize"]
            found.append({**made, "filesize": size if isinstance(size, str) else exact_size(int(size))})
        return found


def _may_leave_out(typed: TypedJob) -> bool:
    """True if a job that writes may end before the last byte of its files."""
    job = typed.job
    early = bool(job.number_ios or job.runtime_us or 0 < job.io_size.bytes < job.size.bytes)
    return early or (job.random and not visits_all(typed))


def sizes_of_files(job: Job) -> str:
    """Return a range, in steps of a request if it begins with a multiple of it."""
    low, high = job.filesizes
    smallest = job.sizes[job.direction].smallest
    step = smallest if low % smallest == 0 else 1
    return f"{exact_size(low)}-{exact_size(high - high % step)}:step={exact_size(step)}"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(name)).strip("-")[:28] or "files"


def place_of(jobs: list[TypedJob], target: str | None) -> JobTarget:
    """Return one target for the whole job file, or several; obstacles are reported."""
    for each in jobs:
        _say_first_directory(each)
    if target is not None:
        folder = os.path.isdir(target)
        if not folder:
            _one_file(jobs, f"give a directory as TARGET, not {target}")
        return JobTarget(target, folder)
    if all(ENGINES.get(each.job.engine) == NULL for each in jobs):
        most = max((each.job.offset.bytes + (each.job.filesizes[1] or each.job.size.bytes) for each in jobs), default=0)
        return JobTarget(f"{NULL_PREFIX}{exact_size(most or 1 << 30)}", False)
    lists = {each.job.filenames for each in jobs}
    grows = any(each.job.fill_device or each.job.append for each in jobs)
    if grows and not any(name.startswith("/dev/") for names in lists for name in names):
        return JobTarget(_folder(jobs), True)
    if len(lists) == 1 and len(names := next(iter(lists))) == 1:
        return JobTarget(_joined(jobs[0], names[0]), False) if _one_folder(jobs) else JobTarget(None, False)
    named = list(dict.fromkeys(path for each in jobs for path in paths_of(each.job)))
    if any(_is_device(path) for path in named) or (named and all(os.path.isfile(path) for path in named)):
        without = next((each for each in jobs if not each.job.filenames), None)
        if without is not None:
            text = "files of its own beside devices or files that are there; give each job filename"
            without.say(Level.ERROR, "filename", text)
        return JobTarget(_colons(named), False, several=True)
    return JobTarget(_folder(jobs), True)


def paths_of(job: Job) -> tuple[str, ...]:
    """Return the files that a job names. Of several directories the first is used, as in fio."""
    return tuple(os.path.join(job.directory, name) for name in job.filenames)


def _is_device(path: str) -> bool:
    return re.match(r"/dev/(?!shm/)", os.path.normpath(path)) is not None


def _colons(paths: list[str]) -> str:
    return ":".join(path.replace(":", "\\:") for path in paths)


def _say_first_directory(typed: TypedJob) -> None:
    """Report that only the first of several directories is used."""
    job = typed.job
    if job.directories < 2:
        return
    if job.numjobs > 1 and not job.filenames:
        text = "the files of the clones would be in several directories; use a job file for each directory"
        typed.say(Level.ERROR, "directory", text)
    else:
        typed.say(Level.NOTE, "directory", "the first one is used, as in fio; the others are for further clones")


def _one_file(jobs: list[TypedJob], instead: str) -> None:
    first = next((each.job.filenames for each in jobs if each.job.filenames), ())
    for each in jobs:
        names = each.job.filenames
        if len(names) > 1 or (names and names != first):
            each.say(Level.ERROR, "filename", f"one file or device is the target of all jobs; {instead}")
        elif not names and each.job.nrfiles > 1:
            each.say(Level.ERROR, "nrfiles", f"one file or device is the target; {instead}")


def _one_folder(jobs: list[TypedJob]) -> bool:
    folders = {each.job.directory for each in jobs}
    if len(folders) > 1:
        other = next(each for each in jobs if each.job.directory != jobs[0].job.directory)
        other.say(Level.ERROR, "directory", "the jobs of a file run in one directory; use a job file for each")
    return len(folders) == 1


def _joined(typed: TypedJob, name: str) -> str:
    folder = typed.job.directory
    return f"{folder.rstrip('/')}/{name}" if folder else name


def _folder(jobs: list[TypedJob]) -> str | None:
    if not _one_folder(jobs):
        return None
    if jobs[0].job.directory:
        return jobs[0].job.directory
    folders = {os.path.dirname(name) for each in jobs for name in each.job.filenames} or {""}
    if len(folders) > 1:
        text = "files in several directories; use a job file for each"
        next(each for each in jobs if each.job.filenames).say(Level.ERROR, "filename", text)
    return folders.pop() or "."
