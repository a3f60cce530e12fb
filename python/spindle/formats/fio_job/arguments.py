"""fio's command line: its own options, options of jobs, and job files.

As in fio: options before the first `--name` apply to all jobs, each `--name` begins one, job files follow. An
option may be written `--bs=4k`, `--bs 4k`, `-bs=4k` or as the beginning of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spindle.formats import fio_output, fio_terse_writer

from .finding import JobFileRefused, JobFinding, Level, SourceLine
from .numbers import InvalidValue, microseconds
from .options import known_names, option_of, unknown
from .source import STDIN, STDIN_NAME, Reader, Section, Setting

SOURCE = "command line"
_PLACE = SourceLine(SOURCE, 0)

OUTPUT, FORMAT, SECTION, READ_ONLY = "output", "output-format", "section", "readonly"
PARSE_ONLY, SHOW = "parse-only", "showcmd"
QUIET = "eta"
MINIMAL, APPEND_TERSE, TERSE_VERSION = "minimal", "append-terse", "terse-version"
STATUS = "status-interval"
SHORTEST_STATUS_US = 1000
"""Shortest interval of status reports, as in fio."""

WITH_VALUE = (OUTPUT, FORMAT, SECTION, QUIET, TERSE_VERSION, STATUS)
BARE = (READ_ONLY, PARSE_ONLY, SHOW, MINIMAL, APPEND_TERSE)
"""Supported options of fio itself."""
_IGNORED = {
    "eta-newline": True,
    "eta-interval": True,
    "alloc-size": True,
    "max-jobs": True,
    "debug": True,
    "aux-path": True,
    "warnings-fatal": False,
}
"""Option without effect on the measurement -> True if a value follows."""
_REFUSED = {
    "bandwidth-log": (False, "give write_bw_log to each job"),
    "idle-prof": (True, "the record has the CPU's use"),
    "inflate-log": (True, "logs are written plain"),
    "merge-blktrace-only": (False, "traces are not replayed"),
    "cpuclock-test": (False, "it tests fio's clock"),
    "crctest": (True, "it tests fio's checksums"),
    "cmdhelp": (True, "`spindle help fio-jobs` lists every option"),
    "enghelp": (True, "`spindle help fio-jobs` lists every option"),
    "server": (True, "jobs run here; start spindle on that host"),
    "daemonize": (True, "jobs run here; start spindle on that host"),
    "client": (True, "jobs run here; start spindle on that host"),
    "remote-config": (True, "jobs run here; start spindle on that host"),
    "trigger-file": (True, "nothing is started by a run"),
    "trigger-timeout": (True, "nothing is started by a run"),
    "trigger": (True, "nothing is started by a run"),
    "trigger-remote": (True, "nothing is started by a run"),
}
"""Unsupported option -> True if a value follows, and the alternative."""


@dataclass
class CommandLine:
    """A parsed command line."""

    options: list[tuple[str, str | None]] = field(default_factory=list)
    """Options of jobs, in order."""
    files: list[str] = field(default_factory=list)
    """Job files; `-` is the standard input."""
    sections: list[str] = field(default_factory=list)
    """Run only these jobs of the files."""
    output: str | None = None
    format: str = "normal"
    terse_version: int = fio_terse_writer.VERSION
    status_interval_s: float | None = None
    quiet: bool = False
    read_only: bool = False
    parse_only: bool = False
    show: bool = False
    rest: list[str] = field(default_factory=list)
    """Options that are not fio's, with their values."""
    ignored: list[str] = field(default_factory=list)


def parsed(arguments: Sequence[str], own: Mapping[str, bool]) -> CommandLine:
    """Parse a command line. `own`: options of Spindle, as they are typed, with True if a value follows. Raises
    JobFileRefused."""
    line = CommandLine()
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            line.files += words
        elif name in own:
            line.rest += [word] if equals or not own[name] else [word, _next(words, name)]
        elif word.startswith("-") and word != "-":
            _take(line, name, value if equals else None, words)
        else:
            line.files.append(word)
    return line


def sections_of(line: CommandLine, environment: Mapping[str, str] | None = None) -> list[Section]:
    """Return the jobs. Raises JobFileRefused."""
    reader = Reader(environment, line.sections)
    for name, value in line.options:
        reader.option(name, value, _PLACE)
    for file in line.files:
        reader.file(file)
    return reader.jobs_of(source_of(line))


def source_of(line: CommandLine) -> str:
    """Return the source of the jobs, for messages."""
    if not line.files or any(name == "name" for name, _ in line.options):
        return SOURCE
    return STDIN_NAME if line.files[0] == STDIN else line.files[0]


def shown(sections: Sequence[Section]) -> str:
    """Return the jobs as one command line of fio: each with all its options."""
    import shlex

    words = ["fio"]
    for section in sections:
        words.append(f"--name={section.name}")
        words += [f"--{_written(setting)}" for setting in section.settings if setting.name != "name"]
    return shlex.join(words)


def _written(setting: Setting) -> str:
    return setting.name if setting.value is None else f"{setting.name}={setting.value}"


def _take(line: CommandLine, written: str, value: str | None, words: Iterator[str]) -> None:
    name = _name_of(written)
    option = option_of(name)
    if option is not None:
        if value is None and not option.bare:
            value = _next(words, written)
        line.options.append((name, value))
        return
    takes = name in WITH_VALUE or _IGNORED.get(name, False) or _REFUSED.get(name, (False, ""))[0]
    if takes and value is None:
        value = _next(words, written)
    if name in _REFUSED:
        raise _refused(name, f"is not supported; {_REFUSED[name][1]}")
    if name in _IGNORED:
        line.ignored.append(name)
    else:
        _of_fio(line, name, value or "")


def _of_fio(line: CommandLine, name: str, value: str) -> None:
    if name == SECTION:
        line.sections.append(value)
    elif name == OUTPUT:
        line.output = value
    elif name == FORMAT:
        line.format = _format(value)
    elif name == MINIMAL:
        line.format = "terse"
    elif name == APPEND_TERSE:
        line.format += ",terse"
    elif name == TERSE_VERSION:
        line.terse_version = _terse_version(value)
    elif name == STATUS:
        line.status_interval_s = _status_interval(value)
    elif name == QUIET:
        line.quiet = value == "never"
    line.read_only |= name == READ_ONLY
    line.parse_only |= name == PARSE_ONLY
    line.show |= name == SHOW


def _format(value: str) -> str:
    try:
        fio_output.parse(value)
    except ValueError as unknown:
        names = ", ".join(fio_output.NAMES)
        raise _refused(
            FORMAT, f"`{str(unknown)[:40]}` is not there; use {names}, or several as in json,terse"
        ) from None
    return value


def _terse_version(value: str) -> int:
    found = [version for version in fio_terse_writer.VERSIONS if value.strip() == str(version)]
    if not found:
        raise _refused(TERSE_VERSION, f"`{value[:40]}` is not there; use 2, 3, 4 or 5")
    return found[0]


def _status_interval(value: str) -> float:
    try:
        return status_interval(value)
    except ValueError as wrong:
        raise _refused(STATUS, str(wrong)) from None


def status_interval(text: str) -> float:
    """Return the seconds between two reports. Raises ValueError."""
    try:
        interval_us = microseconds(text)
    except InvalidValue:
        raise ValueError(f"`{text[:40]}` is not a time; write for example 10 or 500ms") from None
    if interval_us < SHORTEST_STATUS_US:
        raise ValueError(f"`{text[:40]}` is less than 1 ms; write for example 10 or 500ms")
    return interval_us / 10**6


def _name_of(written: str) -> str:
    """Return the option by its whole name or a unique beginning."""
    name = written.removeprefix("-").removeprefix("-")
    names = [*known_names(), *WITH_VALUE, *BARE, *_IGNORED, *_REFUSED]
    if name in names:
        return name
    begun = [each for each in names if name and each.startswith(name)]
    meant = {option.name if (option := option_of(each)) else each for each in begun}
    if len(meant) == 1:
        return begun[0]
    if begun:
        raise _refused(name, f"may be {', '.join(sorted(begun)[:6])}; write more of it")
    raise _refused(name[:40], unknown(name))


def _next(words: Iterator[str], name: str) -> str:
    value = next(words, None)
    if value is None:
        raise _refused(name.lstrip("-"), "needs a value")
    return value


def _refused(option: str, text: str) -> JobFileRefused:
    return JobFileRefused([JobFinding(Level.ERROR, _PLACE, option, text)])
