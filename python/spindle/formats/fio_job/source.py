"""A job file as sections of settings: comments, includes, environment, `$keywords`. No option is known here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .finding import JobFileRefused, JobFinding, Level, SourceLine

MOST_BYTES = 1 << 20
MOST_LINES = 20_000
MOST_INCLUDES = 10
"""Most levels of includes, so that a file that includes itself ends."""
MOST_EXPANDED = 4096
"""Longest line after its variables are expanded."""

GLOBAL = "global"
STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True)
class Setting:
    """`name=value`, or a bare `name`."""

    name: str
    value: str | None
    place: SourceLine


@dataclass
class Section:
    """`[name]` and its settings; for a job, the globals above it come first."""

    name: str
    place: SourceLine
    settings: list[Setting] = field(default_factory=list)
    inherited: int = 0
    """Number of settings from [global]."""


def read_sections(path: str, environment: Mapping[str, str] | None = None, only: Sequence[str] = ()) -> list[Section]:
    """Return the jobs of a file, in order. `only`: those with these names. Raises JobFileRefused."""
    reader = Reader(environment, only)
    reader.file(path)
    return reader.jobs_of(STDIN_NAME if path == STDIN else path)


def sections_of(text: str, path: str, environment: Mapping[str, str] | None = None) -> list[Section]:
    """Return the jobs of a text; includes are searched beside `path`."""
    reader = Reader(environment)
    reader.text(text, path)
    return reader.jobs_of(path)


class Reader:
    """Reads sections from one or more sources in order; [global] applies to later sources too."""

    def __init__(self, environment: Mapping[str, str] | None = None, only: Sequence[str] = ()) -> None:
        self.environment = os.environ if environment is None else environment
        self.only = only
        self.common: list[Setting] = []
        self.jobs: list[Section] = []
        self.into: list[Setting] | None = None
        self.lines = 0
        self.left_out: list[str] = []
        self._files = 0
        self._waits = False
        """True: the next job runs when those of the file before are done."""

    def file(self, path: str) -> None:
        """Read a job file; `-` is the standard input. The jobs of each further file wait for those before."""
        if path == STDIN:
            self.text(_standard_input(), STDIN_NAME)
        else:
            self.text(_text(path, SourceLine(path, 0)), path)

    def text(self, text: str, path: str) -> None:
        """Read a text."""
        self._waits = self._files > 0
        self._files += 1
        self.into = None
        self._file(text, path, 0)

    def option(self, name: str, value: str | None, place: SourceLine) -> None:
        """Add an option of a command line: `name` begins a job, options before the first one apply to all."""
        if name == "name":
            self._section(value or "", place)
            return
        if self.into is None:
            self.into = self.common
        self.into.append(Setting(name, value, place))

    def jobs_of(self, source: str) -> list[Section]:
        """Return the jobs so far. Raises JobFileRefused if there is none, or one of `only` is missing."""
        if missing := [name for name in self.only if name not in {job.name for job in self.jobs}]:
            there = ", ".join(dict.fromkeys([*(job.name for job in self.jobs), *self.left_out])) or "none"
            raise _refused(
                SourceLine(source, 0), f"`section=`: there is no job `{missing[0][:40]}`; its jobs are: {there[:200]}"
            )
        if not self.jobs:
            raise _refused(SourceLine(source, 1), "no job in it: a job begins with its [name]")
        return self.jobs

    def _file(self, text: str, path: str, depth: int) -> None:
        for number, raw in enumerate(text.splitlines(), 1):
            self.lines += 1
            if self.lines > MOST_LINES:
                raise _refused(SourceLine(path, number), f"more than {MOST_LINES} lines")
            # As in fio, a comment may follow a value.
            line = re.split("[;#]", raw, maxsplit=1)[0].strip()
            if line:
                self._line(line, SourceLine(path, number), depth)

    def _line(self, line: str, place: SourceLine, depth: int) -> None:
        if line.startswith("["):
            if depth:
                raise _refused(place, "an included file may not contain [sections]")
            self._begin(line, place)
        elif self.into is None:
            raise _refused(place, f"`{line[:60]}` is outside of a [section]")
        elif re.match(r"include\s", line):
            self._include(line[len("include") :].strip(), place, depth)
        else:
            name, equals, value = line.partition("=")
            given = self._expanded(value.strip(), place) if equals else None
            self.into.append(Setting(name.strip().lower(), given, place))

    def _begin(self, line: str, place: SourceLine) -> None:
        name = line[1:].partition("]")[0].strip()
        if "]" not in line or not name:
            raise _refused(place, "a section is written [name]")
        self._section(name, place)

    def _section(self, name: str, place: SourceLine) -> None:
        if name.startswith(GLOBAL):  # fio compares no more than these letters
            self.into = self.common
            return
        job = Section(name, place, list(self.common), len(self.common))
        self.into = job.settings
        if self.only and name not in self.only:
            self.left_out.append(name)
            return
        if self._waits:
            job.settings.append(Setting("stonewall", None, place))
            self._waits = False
        self.jobs.append(job)

    def _include(self, name: str, place: SourceLine, depth: int) -> None:
        if depth >= MOST_INCLUDES:
            raise _refused(place, f"includes nest deeper than {MOST_INCLUDES}; does a file include itself?")
        path = os.path.join(os.path.dirname(place.file), name)
        self._file(_text(path, place), path, depth + 1)

    def _expanded(self, value: str, place: SourceLine) -> str:
        value = re.sub(r"\$\{([^}]*)\}", lambda found: self.environment.get(found[1], ""), value)
        for word, number in KEYWORDS.items():
            if word in value:
                value = _calculated(value.replace(word, str(number())), place)
        if len(value) > MOST_EXPANDED:
            raise _refused(place, f"longer than {MOST_EXPANDED} characters")
        return value


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


KEYWORDS: dict[str, Callable[[], int]] = {
    "$pagesize": lambda: os.sysconf("SC_PAGE_SIZE"),
    "$mb_memory": _memory_mb,
    "$ncpus": lambda: os.cpu_count() or 1,
}


def _calculated(value: str, place: SourceLine) -> str:
    """Evaluate simple arithmetic with a keyword, which needs no parentheses: `8*$mb_memory`."""
    if not re.search(r"[-+*/]", value) or not re.fullmatch(r"[0-9+*/ ().-]+", value):
        return value
    from .numbers import InvalidValue, Scale, arithmetic

    try:
        return str(arithmetic(value, Scale()))
    except InvalidValue as error:
        raise _refused(place, str(error)) from None


def _standard_input() -> str:
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _refused(SourceLine(STDIN_NAME, 0), f"cannot be read ({error})") from None
    return _decoded(data, SourceLine(STDIN_NAME, 0), "")


def _text(path: str, place: SourceLine) -> str:
    what = f"{path}: " if place.line else ""
    try:
        if not Path(path).is_file():
            raise _refused(place, f"{what}{'is not a file' if Path(path).exists() else 'no such file'}")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, JobFileRefused):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(place, f"{what}cannot be read ({reason})") from None
    return _decoded(data, place, what)


def _decoded(data: bytes, place: SourceLine, what: str) -> str:
    if len(data) > MOST_BYTES:
        raise _refused(place, f"{what}larger than 1 MiB; this is not a job file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _refused(place, f"{what}not UTF-8 text at byte {error.start}") from None


def _refused(place: SourceLine, text: str) -> JobFileRefused:
    return JobFileRefused([JobFinding(Level.ERROR, place, "", text)])
