"""Observes the requests of fio and Spindle to the kernel: direct I/O, syncs, priorities, by job and clone.

`block_bio_queue` has each request to a block device before it is split or merged, `iomap_dio_rw_begin` each to a file
of ext4. Both are the kernel's account, not the tools' own.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spindle._core import ConfigError, RunError
from spindle.conditions import IdleCheck
from spindle.formats.fio_job import Conversion
from spindle.host import busy
from spindle.library.jobfile import prepared
from spindle.result.document import encode
from spindle.run import order, preparation
from spindle.run.consent import Consent
from spindle.run.engine import EngineOptions
from spindle.run.watch import SilentWatch

from .leftovers import die_with_parent, instance_of, kill_those_in

DEVICE_BYTES = 8 << 20
FOLDER_BYTES = 128 << 20
LONGEST_S = 60.0
SECTOR = 512


@dataclass(frozen=True)
class Event:
    """One request."""

    at: float
    kind: str
    """read, write, trim, sync, datasync."""
    file: int
    """Inode; 0: the device."""
    offset: int
    length: int
    durable: bool
    """It has to reach the medium by itself (O_SYNC, O_DSYNC)."""
    cpu: int


@dataclass
class Clone:
    """One process of fio, or one worker of Spindle."""

    events: list[Event] = field(default_factory=list)
    priorities: set[str] = field(default_factory=set)
    """With which its requests reached the device."""


@dataclass
class ToolTrace:
    """The trace and figures of a tool for a job file."""

    phases: list[list[Clone]]
    """For each phase its clones; of Spindle in the order of its streams."""
    figures: Any
    """The tool's own JSON."""
    failed: str = ""
    """Why there is nothing to compare."""


class FuzzRunner:
    """A loop device, a file system on another, and a trace of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._undo = contextlib.ExitStack()
        self._count = itertools.count()

    def __enter__(self) -> FuzzRunner:
        with contextlib.ExitStack() as undo:
            self.device = undo.enter_context(_loop(self.folder / "device", DEVICE_BYTES))
            under = undo.enter_context(_loop(self.folder / "under", FOLDER_BYTES))
            _run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", under)
            self.mount = self.folder / "mount"
            self.mount.mkdir()
            _run("mount", under, str(self.mount))
            undo.callback(unmount, self.mount)
            self.trace = undo.enter_context(Trace.of(self.folder, self.device, under))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def place(self, in_folder: bool) -> Path:
        """A directory of its own to run in."""
        place = (self.mount if in_folder else self.folder) / f"run-{next(self._count)}"
        place.mkdir()
        return place

    def fio(self, text: str, in_folder: bool, clones: list[int]) -> ToolTrace:
        """`clones`: how many each phase has."""
        place = self.place(in_folder)
        (place / "job.fio").write_text(text)
        self.trace.begin()
        command = ["fio", "--output-format=json", "--output=out.json", "job.fio"]
        with subprocess.Popen(
            command,
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent,
        ) as process:
            try:
                said = process.communicate(timeout=LONGEST_S)[0]
            except subprocess.TimeoutExpired:
                _kill(process.pid)
                said = f"not over after {LONGEST_S:g} s"
            except BaseException:  # the fuzzer has to end
                _kill(process.pid)
                raise
        raw = self.trace.end()
        figures = _json(place / "out.json")
        shutil.rmtree(place, ignore_errors=True)
        failed = ""
        if process.returncode != 0 or figures is None or any(job["error"] for job in figures["jobs"]):
            failed = " / ".join(said.split("\n"))[:300] or f"status {process.returncode}"
        seen = _of_fio(raw, process.pid, clones)
        seen.figures, seen.failed = figures, failed
        return seen

    def spindle(self, text: str, in_folder: bool) -> ToolTrace:
        """The same job file, carried out by the program's own code in a process of its own."""
        place = self.place(in_folder)
        (place / "job.fio").write_text(text)
        self.trace.begin()
        child, ended = _in_child(place, None if in_folder else self.device)
        raw = self.trace.end()
        figures = _json(place / "record.json")
        shutil.rmtree(place, ignore_errors=True)
        seen = _of_spindle(raw, child)
        seen.figures = figures
        seen.failed = ended or ("no record" if figures is None else "")
        return seen


def _kill(process: int) -> None:
    """With its children: fio's jobs have sessions of their own."""
    for pid in (*_children(process), process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Children of a process of ours."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def _json(path: Path) -> Any:
    try:
        text = path.read_text()
        return json.loads(text[text.index("{") :])
    except (OSError, ValueError):
        return None


def _in_child(place: Path, device: str | None) -> tuple[int, str]:
    """Its process, and why it failed; empty: it did not."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.chdir(place)
            _carry_out(device)
            os._exit(0)
        except (RunError, ConfigError) as refused:
            Path("failed").write_text(f"refused: {refused}")
            os._exit(1)
        except BaseException:
            Path("failed").write_text(traceback.format_exc())
            os._exit(1)
    try:
        return child, _waited(child, place / "failed")
    except BaseException:  # the fuzzer has to end
        _kill(child)
        os.waitpid(child, 0)
        raise


def _waited(child: int, failed: Path) -> str:
    """Why it failed."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            reason = failed.read_text().strip() if failed.exists() else f"status {status}"
            return reason if status else ""
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"not over after {LONGEST_S:g} s"


def _carry_out(device: str | None) -> None:
    """As `spindle run job.fio --yes` does, but for the second in which the machine is looked at first."""
    preparation.look = lambda *_: preparation.Preflight(IdleCheck(1.0, [], {}), 0.0)
    sys.stderr = io.StringIO()  # the findings, which the caller has
    asked = prepared("job.fio", None, EngineOptions())
    one = order.Order(
        workload="job.fio",
        target=asked.target,
        create=asked.create,
        search=asked.search,
        consent=Consent(erase=device),
        engine_options=asked.engine_options,
    )
    record = order.carry_out(one, SilentWatch())
    Path("record.json").write_bytes(encode(record))


def clones_of(conversion: Conversion) -> list[int]:
    """Number of fio's processes in each phase."""
    return [sum(each.job.numjobs for each in phase.jobs) for phase in conversion.phases]


# The trace ------------------------------------------------------------------------------------------------------------

_HEAD = re.compile(
    r"^\s*(?P<comm>.+)-(?P<tid>\d+)\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<at>[\d.]+): (?P<name>\w+)[:(]\s*(?P<rest>.*)$"
)
_BIO = re.compile(r"^\d+,\d+ (?P<op>\S+) (?P<sector>\d+) \+ (?P<sectors>\d+) ")
_ISSUE = re.compile(r"^\d+,\d+ (?P<op>\S+) .* (?P<sector>\d+) \+ (?P<sectors>\d+) (?P<class>\w+),\d+,(?P<level>\d+) \[")
_DIO = re.compile(
    r"ino (?P<file>0x[0-9a-f]+) size \S+ offset (?P<offset>0x[0-9a-f]+) length (?P<length>0x[0-9a-f]+) .*?"
    r"flags (?P<flags>\S*) dio_flags"
)
_NEW = re.compile(r"pid=(?P<child>\d+) ")
_RENAME = re.compile(r"pid=(?P<pid>\d+) .*newcomm=spindle-io-(?P<index>\d+)")


@dataclass(frozen=True)
class Line:
    """One line of the trace."""

    comm: str
    tid: int
    cpu: int
    at: float
    name: str
    rest: str


class Trace:
    """An instance of the kernel's tracer that nobody else uses."""

    def __init__(self, instance: Path) -> None:
        self.instance = instance

    @classmethod
    @contextlib.contextmanager
    def of(cls, folder: Path, *devices: str) -> Iterator[Trace]:
        """Follows requests to these devices, and syncs."""
        root = folder / "tracefs"
        root.mkdir()
        _run("mount", "-t", "tracefs", "tracefs", str(root))
        instance = root / "instances" / instance_of(folder)
        try:
            instance.mkdir()
            try:
                trace = cls(instance)
                trace._arm(devices)
                yield trace
                trace._write("tracing_on", "0")
            finally:
                instance.rmdir()
        finally:
            _run("umount", str(root))

    def _arm(self, devices: tuple[str, ...]) -> None:
        numbers = [os.stat(device).st_rdev for device in devices]
        ours = " || ".join(f"dev == {os.major(number) << 20 | os.minor(number)}" for number in numbers)
        self._write("tracing_on", "0")
        self._write("buffer_size_kb", "8192")
        for event, condition in (
            ("block/block_bio_queue", ours),
            ("block/block_rq_issue", ours),
            ("iomap/iomap_dio_rw_begin", ours),
            ("syscalls/sys_enter_fsync", ""),
            ("syscalls/sys_enter_fdatasync", ""),
            ("io_uring/io_uring_submit_req", "opcode == 3"),  # IORING_OP_FSYNC
            ("task/task_newtask", ""),
            ("task/task_rename", 'newcomm ~ "spindle-io-*"'),
        ):
            if condition:
                self._write(f"events/{event}/filter", condition)
            self._write(f"events/{event}/enable", "1")

    def _write(self, name: str, text: str) -> None:
        (self.instance / name).write_text(text)

    def begin(self) -> None:
        """Anew."""
        self._write("trace", "")
        self._write("tracing_on", "1")

    def end(self) -> list[Line]:
        """The events since `begin`."""
        self._write("tracing_on", "0")
        found = []
        for text in (self.instance / "trace").read_text(errors="replace").splitlines():
            head = _HEAD.match(text)
            if head:
                comm, tid, cpu, at, name, rest = head.groups()
                found.append(Line(comm, int(tid), int(cpu), float(at), name, rest))
        return found


def _event(line: Line) -> Event | None:
    """None: no request."""
    if line.name == "block_bio_queue" and (bio := _BIO.match(line.rest)):
        kind = _kind(bio["op"])
        length = int(bio["sectors"]) * SECTOR
        if kind is None or not length:
            return None
        return Event(line.at, kind, 0, int(bio["sector"]) * SECTOR, length, "F" in bio["op"][1:], line.cpu)
    if line.name == "iomap_dio_rw_begin" and (dio := _DIO.search(line.rest)):
        flags = dio["flags"].split("|")
        kind = "read"  # until a write follows: see `_collect`
        durable = "DSYNC" in flags or "SYNC" in flags
        return Event(
            line.at, kind, int(dio["file"], 16), int(dio["offset"], 16), int(dio["length"], 16), durable, line.cpu
        )
    if line.name in ("sys_fsync", "sys_fdatasync", "io_uring_submit_req"):
        return Event(line.at, "sync", 0, 0, 0, False, line.cpu)
    return None


def _kind(operation: str) -> str | None:
    for letter, kind in (("D", "trim"), ("W", "write"), ("R", "read")):
        if letter in operation:
            return kind
    return None


def _collect(lines: list[Line], owner: dict[int, Clone]) -> None:
    in_folder = any(line.name == "iomap_dio_rw_begin" for line in lines)
    last: dict[int, tuple[Clone, int]] = {}
    """Place of each thread's last request to a file."""
    asked: dict[tuple[str | None, str], Clone] = {}
    """By kind and sector, whose request it is: a thread of the kernel may hand it to the device."""
    for line in lines:
        tid = line.tid
        if line.name == "block_bio_queue" and tid in owner and (bio := _BIO.match(line.rest)):
            asked[_kind(bio["op"]), bio["sector"]] = owner[tid]
        if line.name == "block_rq_issue":
            _note_priority(line, asked)
            continue
        if tid not in owner or (event := _event(line)) is None:
            continue
        if in_folder and line.name == "block_bio_queue":
            # The request to a file does not say whether it writes; what it sends to the device does.
            if line.tid in last and not _is_meta(line):
                clone, at = last.pop(line.tid)
                clone.events[at] = replace(clone.events[at], kind=event.kind)
            continue
        if event.kind == "sync":
            last.pop(line.tid, None)  # what it sends is no request's
        if line.name == "iomap_dio_rw_begin":
            last[line.tid] = (owner[tid], len(owner[tid].events))
        owner[tid].events.append(event)


def _is_meta(line: Line) -> bool:
    """The file system's own blocks."""
    bio = _BIO.match(line.rest)
    return bio is not None and "M" in bio["op"]


def _note_priority(line: Line, asked: dict[tuple[str | None, str], Clone]) -> None:
    issue = _ISSUE.search(line.rest)
    if issue and int(issue["sectors"]) and (clone := asked.pop((_kind(issue["op"]), issue["sector"]), None)):
        # The class idle has no levels: what is given as one means nothing.
        clone.priorities.add("idle" if issue["class"] == "idle" else f"{issue['class']}:{issue['level']}")


def _of_fio(lines: list[Line], pid: int, clones: list[int]) -> ToolTrace:
    """fio's jobs are its last children, in their order."""
    children = _children_of(lines)
    total = sum(clones)
    jobs = children.get(pid, [])[-total:]
    owner: dict[int, Clone] = {}
    phases: list[list[Clone]] = []
    following = iter(jobs)
    for count in clones:
        phase = []
        for tid in itertools.islice(following, count):
            clone = Clone()
            for own in _with_threads(tid, children):
                owner[own] = clone
            phase.append(clone)
        phases.append(phase)
    _collect(lines, owner)
    return ToolTrace(phases, None)


def _children_of(lines: list[Line]) -> dict[int, list[int]]:
    """The threads that each thread made, in order."""
    found: dict[int, list[int]] = {}
    for line in lines:
        if line.name == "task_newtask" and (new := _NEW.match(line.rest)):
            found.setdefault(line.tid, []).append(int(new["child"]))
    return found


def _with_threads(tid: int, children: dict[int, list[int]]) -> Iterator[int]:
    """Those that glibc made for posixaio, which make others, and those in which the kernel goes on with a request."""
    yield tid
    for child in children.get(tid, []):
        yield from _with_threads(child, children)


def _of_spindle(lines: list[Line], pid: int) -> ToolTrace:
    """Its workers are its threads that name themselves. They are made in order, the first of a phase with index 0; they
    take their names in any order.
    """
    children = _children_of(lines)
    index: dict[int, int] = {}
    for line in lines:
        if line.name == "task_rename" and (rename := _RENAME.search(line.rest)):
            index[int(rename["pid"])] = int(rename["index"])
    phases: list[list[Clone]] = []
    owner: dict[int, Clone] = {}
    for tid in sorted(_with_threads(pid, children), key=_in_order_of_making(lines)):
        if tid not in index:
            continue
        if index[tid] == 0 or not phases:
            phases.append([])
        clone = Clone()
        for own in _with_threads(tid, children):
            owner[own] = clone
        phases[-1].append(clone)
    _collect(lines, owner)
    return ToolTrace(phases, None)


def _in_order_of_making(lines: list[Line]) -> Callable[[int], int]:
    made = [int(new["child"]) for line in lines if line.name == "task_newtask" and (new := _NEW.match(line.rest))]
    order = {tid: at for at, tid in enumerate(made)}
    return lambda tid: order.get(tid, -1)


# Devices --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _loop(image: Path, size: int) -> Iterator[str]:
    image.touch()
    os.truncate(image, size)
    device = _run("losetup", "--find", "--show", str(image)).strip()
    try:
        yield device
    finally:
        _run("losetup", "--detach", device)


def unmount(mount: Path) -> None:
    """Jobs of a fio that was killed may still hold it."""
    for _ in range(300):
        with contextlib.suppress(RuntimeError):
            _run("umount", str(mount))
            return
        kill_those_in(mount)
        time.sleep(0.1)
    try:
        _run("umount", str(mount))
    except RuntimeError as error:
        raise RuntimeError(f"{error}; {busy.holders_of(str(mount))}") from error


def _run(*command: str) -> str:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
