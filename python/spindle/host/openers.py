"""Processes that use a device, a file or a file system: by a descriptor, a mapping, an io_uring or a lock.

All comparisons use numbers, never names: a device can have many nodes (chroots, jailers of virtual machines), a file
many links, and both stay in use after all names are gone. Nothing is opened; a link of /proc leads to its object.
docs/explanation/safety.md lists uses that cannot be seen.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from . import kernel
from .devices import DevNumber, Machine, text_of
from .kernel import Node
from .mounts import Mount, all_mounts, unescape
from .overlays import FileId, Overlays, file_id

_MAPPED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ [1-9]\d*", re.M)
_LOCK = re.compile(r"^\d+: (?:FLOCK|POSIX|OFDLCK)\s+\S+\s+\S+ (-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.M)
_REGISTERED = re.compile(r"^\s+\d+: (/.*)$", re.M)


class UseKind(Enum):
    """How a process uses the thing; the text goes between the process's name and the thing's."""

    WRITES = "has {} open for writing"
    MAPS = "has {} mapped and can write to it"
    RING = "has {} in an io_uring and may write to it"
    LOCKS = "has locked {}"
    READS = "has {} open"

    @property
    def writing(self) -> bool:
        """True if it can change the thing."""
        return self in (UseKind.WRITES, UseKind.MAPS, UseKind.RING)


@dataclass(frozen=True)
class Opener:
    """A process that uses one of the things searched for."""

    pid: int
    """0: not known."""
    command: str
    how: UseKind
    thing: str
    """The thing's name, as the caller gave it."""

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.pid else "a program that cannot be seen from here"

    @property
    def use(self) -> str:
        """`process 12 (qemu) has it open for writing`."""
        return f"{self} {self.how.value.format(self.thing)}"


@dataclass
class SearchSet:
    """Devices and files to search for, each with its name for messages."""

    devices: dict[DevNumber, str] = field(default_factory=dict)
    passthrough: dict[DevNumber, str] = field(default_factory=dict)
    """Character devices that lead to one of them."""
    files: dict[FileId, str] = field(default_factory=dict)
    paths: dict[FileId, str] = field(default_factory=dict)
    """Last known path of a file, for file systems that show one file under two identities."""

    def add_file(self, file: FileId, path: str, called: str) -> None:
        """Add a regular file."""
        self.files[file] = called
        self.paths[file] = path


def openers(wanted: SearchSet, machine: Machine, mounts: Sequence[Mount] | None = None) -> list[Opener]:
    """Other processes that use one of these, as far as this user may see; writers first. `mounts`: all mounts, if
    already known."""
    look = _Search(wanted, machine, all_mounts(machine) if mounts is None else mounts)
    found = dict.fromkeys(one for process in others(machine) for one in look.in_process(process))
    ordered = sorted(found, key=lambda one: (not one.how.writing, one.how is UseKind.READS, one.pid))
    return [*ordered, *look.locks({one.thing for one in ordered if one.how is not UseKind.READS})]


def others(machine: Machine) -> Iterator[Path]:
    """The folder in /proc of every process but this one."""
    for process in machine.proc.iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            yield process


# --- the uses of one process -----------------------------------------------------------------------------------------


class _Search:
    """One search through all processes."""

    def __init__(self, wanted: SearchSet, machine: Machine, mounts: Sequence[Mount]) -> None:
        self._sought = wanted
        self._machine = machine
        self._overlays = Overlays(mounts)
        self._births: dict[int, str] = {}
        self._through_overlay = False
        """True if one of the files is itself named through an overlay."""
        for file, path in wanted.paths.items():
            if (birth := self._overlays.birth_of(file, path)) is not None:
                self._births[birth[0]] = wanted.files[file]
                self._through_overlay |= birth[1]
        self._listed = {**wanted.files, **_as_locks_list_them(wanted, mounts)}

    def in_process(self, process: Path) -> Iterator[Opener]:
        """All uses by one process, in all its tables of descriptors."""
        pid, command = int(process.name), text_of(process / "comm") or "?"
        for how, thing in self._uses(process):
            yield Opener(pid, command, how, thing)

    def _uses(self, process: Path) -> Iterator[tuple[UseKind, str]]:
        for table in tables(process, self._machine):
            for name in _names(f"{table}/fd"):
                yield from self._descriptor(table, name)
        for mapping in mapped_files(process, shared_only=True):
            if mapping.can_write and (thing := self._thing(mapping.node, mapping.place)):
                yield UseKind.MAPS, thing

    def _descriptor(self, table: str, name: str) -> Iterator[tuple[UseKind, str]]:
        place = f"{table}/fd/{name}"
        node = kernel.node_at(place)
        if node is None:
            return
        if not stat.S_IFMT(node.mode):
            yield from self._ring(place, f"{table}/fdinfo/{name}")
        elif thing := self._thing(node, place):
            info = text_of(Path(f"{table}/fdinfo/{name}")) or ""
            yield _how(info), thing

    def _thing(self, node: Node, place: str) -> str | None:
        """The name of the thing that a node leads to, if it is searched for."""
        if stat.S_ISBLK(node.mode):
            return self._sought.devices.get(DevNumber(*node.number))
        if stat.S_ISCHR(node.mode):
            return self._sought.passthrough.get(DevNumber(*node.number))
        if not stat.S_ISREG(node.mode) or not self._sought.files:
            return None
        known = self._sought.files.get(file_id(node))
        if known is None and self._births and (self._through_overlay or self._overlays.shows(node)):
            born = kernel.node_at(place, born=True)
            known = self._births.get(born.birth_ns) if born is not None and born.birth_ns is not None else None
        return known

    def _ring(self, place: str, info: str) -> Iterator[tuple[UseKind, str]]:
        """Files registered with an io_uring, which need no descriptor; the kernel reports only their paths."""
        try:
            if "io_uring" not in os.readlink(place):
                return
        except OSError:
            return
        registered = (text_of(Path(info)) or "").partition("UserFiles:")[2].partition("UserBufs:")[0]
        for path in _REGISTERED.findall(registered):
            node = kernel.node_at(unescape(path))
            if node is not None and (thing := self._thing(node, path)):
                yield UseKind.RING, thing

    def locks(self, known: set[str]) -> Iterator[Opener]:
        """Locks whose holder was not found above: a descriptor in transit, or a server in the kernel."""
        for pid, major, minor, inode in _LOCK.findall(text_of(self._machine.proc / "locks") or ""):
            thing = self._listed.get((DevNumber(int(major, 16), int(minor, 16)), int(inode)))
            if thing is not None and thing not in known and int(pid) != os.getpid():
                command = text_of(self._machine.proc / pid / "comm") if int(pid) > 0 else None
                yield Opener(int(pid) if command else 0, command or "?", UseKind.LOCKS, thing)


def _how(info: str) -> UseKind:
    flags = re.search(r"^flags:\s*([0-7]+)$", info, re.M)
    if flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
        return UseKind.WRITES
    return UseKind.LOCKS if re.search(r"^lock:\s+\d+: (FLOCK|POSIX|OFDLCK)", info, re.M) else UseKind.READS


def _as_locks_list_them(wanted: SearchSet, mounts: Sequence[Mount]) -> dict[FileId, str]:
    """Files under the file system's number, as in the list of locks: btrfs numbers each subvolume differently."""
    numbers = {mount.mount_id: mount.dev for mount in mounts if mount.fs_type == "btrfs"}
    found: dict[FileId, str] = {}
    for file, path in wanted.paths.items() if numbers else ():
        node = kernel.node_at(path)
        if node is not None and node.mount_id in numbers and file_id(node) == file:
            found[numbers[node.mount_id], file[1]] = wanted.files[file]
    return found


def tables(process: Path, machine: Machine) -> Iterator[str]:
    """The /proc folder of one task for each table of descriptors: threads may have their own (unshare(2)), which can
    outlive the first thread."""
    tasks = sorted(_names(f"{process}/task"), key=int) or [process.name]
    distinct: list[str] = []
    for task in tasks:
        if machine.live and any(kernel.share_descriptors(int(task), int(one)) for one in distinct):
            continue
        distinct.append(task)
        yield f"{process}/task/{task}" if task != process.name else str(process)


@dataclass(frozen=True)
class MappedFile:
    """A file mapped into a process."""

    node: Node
    place: str
    """Link under /proc."""
    can_write: bool
    """The mapping is shared and the file was opened for writing: mprotect(2) can make it writable."""


def mapped_files(process: Path, *, shared_only: bool = False) -> Iterator[MappedFile]:
    """Files mapped into a process; mappings need no descriptor."""
    for folder, text in _memory_maps(process):
        for start, end, permissions in _MAPPED.findall(text):
            shared = permissions.endswith("s")
            if shared_only and not shared:
                continue
            place = f"{folder}/map_files/{int(start, 16):x}-{int(end, 16):x}"
            node = kernel.node_at(place)
            if node is not None:
                yield MappedFile(node, place, shared and _opened_for_writing(place, permissions))


def _opened_for_writing(place: str, permissions: str) -> bool:
    """True if the file was opened for writing: the link's mode is that of the open file (proc(5))."""
    try:
        return bool(os.lstat(place).st_mode & stat.S_IWUSR)
    except OSError:
        return "w" in permissions


def _memory_maps(process: Path) -> Iterator[tuple[str, str]]:
    """Memory maps of the process; of one of its threads if the first has ended, which then has no memory of its own."""
    for task in dict.fromkeys((process.name, *_names(f"{process}/task"))):
        text = text_of(process.parent / task / "maps")
        if text:
            yield f"{process.parent}/{task}", text
            return


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
