"""Test files: the only regular files that are ever written. They are made here, marked, and removed when done.

A file is made without a name (O_TMPFILE), marked, registered with its identity, and only then linked to its name with a
call that fails if the name is taken. So a name never leads to a file that the register does not know, and somebody
else's file can never be opened by mistake. Removal checks the identity again: another file that has taken the name in
the meantime is left alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from spindle.base.units import si_size

from . import register
from .errors import Refusal, TargetError, WrongTarget, not_found, reason
from .filling import Filler, Progress, fill_error
from .folder import FolderLimits, Parts, empty_folder, left_line, parts_within, remove_folder
from .mounts import mount_of
from .own import OwnedPath
from .paths import is_under_dev
from .register import Entry, FileIdentity, Record
from .signals import held_back

KEEP_FREE = 0.05
"""Share of a file system that is never used; space reserved for root does not count as free."""
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


class TestFile(OwnedPath):
    """A regular file made by Spindle, filled with incompressible data. Removed when closed."""

    WHAT = "test file"

    def __init__(self, path: Path, size_bytes: int, fd: int, folder: int, record: Record) -> None:
        super().__init__(path, fd, folder, record)
        self.size_bytes = size_bytes

    @classmethod
    def create(cls, path: str | os.PathLike[str], size_bytes: int, *, on_progress: Progress | None = None) -> TestFile:
        """Make and fill it. `path` is a free name, or a folder. Raises Refusal or TargetError."""
        if size_bytes <= 0:
            raise WrongTarget(f"{path}: a test file of {size_bytes} bytes is too small; `create=` takes a size")
        token = secrets.token_hex(8)
        place = _place(path, token)
        file = None
        try:
            # Signals wait until the file has an owner: between two steps of creation nothing could undo the first one.
            with held_back():
                file = cls._make(place, size_bytes, token)
            _fill(file, on_progress)
        except BaseException as error:
            if file is not None:
                file.remove()
            if isinstance(error, OSError):
                raise TargetError(f"{place}: {fill_error(error, size_bytes)}; the part written is removed") from None
            raise
        return file

    @classmethod
    def _make(cls, place: Path, size_bytes: int, token: str) -> TestFile:
        with ExitStack() as undo:
            folder = open_folder(place)
            undo.callback(os.close, folder)
            check_place(place, folder)
            _check_space(place, folder, size_bytes)
            entry = Entry.intent(token, str(place), size_bytes)
            try:
                fd, record = _make_unnamed(place, folder, entry)
            except OSError as error:
                if error.errno not in _NO_UNNAMED:
                    raise make_error(place, error) from None
                fd, record = _make_named(place, folder, entry)
            undo.pop_all()
            return cls(place, size_bytes, fd, folder, record)

    def remove(self) -> str | None:
        """Remove the file and its entry. Returns one line with the reason if the file was left. Idempotent."""
        if (record := self._taken()) is None:
            return None
        with held_back():
            self._record = None
            try:
                kept = self._unlink()
                record.discard()
            except OSError as error:
                record.keep()
                return f"{self.path}: the test file could not be removed: {reason(error)}"
            finally:
                self._close()
        return kept

    def _unlink(self) -> str | None:
        own = os.fstat(self._fd)
        try:
            there = os.stat(self.path.name, dir_fd=self._parent, follow_symlinks=False)
        except FileNotFoundError:
            return f"{self.path}: the test file has been moved or removed by someone else" if own.st_nlink else None
        if not os.path.samestat(own, there):
            return f"{self.path}: is another file by now and was left alone"
        if there.st_size > self.size_bytes:
            return f"{self.path}: {grown(self.size_bytes, there.st_size)}"
        os.unlink(self.path.name, dir_fd=self._parent)
        return None


def grown(made: int, now: int) -> str:
    """The reason why a test file is not removed."""
    return f"has {now} bytes, was made with {made}; somebody else has written to it, it belongs to you now"


# --- creation --------------------------------------------------------------------------------------------------------


def _place(path: str | os.PathLike[str], token: str) -> Path:
    text = os.fspath(path)
    if os.path.isdir(text):
        return Path(os.path.abspath(text)) / f"spindle-test-{token}.bin"
    if text.endswith("/") or not text:
        raise WrongTarget(f"{text or 'the empty path'}: no such folder")
    return Path(os.path.abspath(text))


def open_folder(place: Path) -> int:
    """Open the folder once; all further steps use its descriptor. Raises TargetError."""
    try:
        return os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise not_found(f"{place.parent}: no test file can be made there", error) from None


def check_place(place: Path, folder: int) -> None:
    """Check that the place is not under /dev and the name is free. Raises Refusal."""
    mount = mount_of(folder)
    if is_under_dev(place) or (mount is not None and mount.fs_type == "devtmpfs"):
        raise Refusal(f"{place}: no file is ever made under /dev; name a device as it is called there (lsblk)")
    if os.path.lexists(f"/proc/self/fd/{folder}/{place.name}"):
        raise _taken(place)


def _taken(place: Path) -> Refusal:
    return Refusal(f"{place}: already exists, and Spindle writes only to files that it made; choose another name")


def _check_space(place: Path, folder: int, size_bytes: int) -> None:
    space = os.statvfs(f"/proc/self/fd/{folder}")
    total, available = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
    if total == 0:
        raise Refusal(f"{place}: its file system does not report its free space; choose another place")
    takable = available - int(total * KEEP_FREE)
    if size_bytes > takable:
        raise Refusal(
            f"{place}: {si_size(size_bytes)} would take the last {KEEP_FREE:.0%} of the file system "
            f"({si_size(total)}, {si_size(available)} free); at most {si_size(max(takable, 0))} are available"
        )


def _make_unnamed(place: Path, folder: int, entry: Entry) -> tuple[int, Record]:
    """Mark and register the file while it has no name: if killed before the last step, it disappears by itself."""
    with ExitStack() as undo:
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, register.PRIVATE, dir_fd=folder)
        undo.callback(os.close, fd)
        entry = replace(entry, identity=mark(fd, entry.token))
        record = Record.create(entry)
        undo.callback(record.discard)
        try:
            os.link(f"/proc/self/fd/{fd}", place.name, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise _taken(place) from None
        undo.pop_all()
        return fd, record


def _make_named(place: Path, folder: int, entry: Entry) -> tuple[int, Record]:
    """For file systems without nameless files: register the intent, make it, mark it, register its identity."""
    with ExitStack() as undo:
        record = Record.create(entry)
        undo.callback(record.discard)
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC
            fd = os.open(place.name, flags, register.PRIVATE, dir_fd=folder)
        except FileExistsError:
            raise _taken(place) from None
        except OSError as error:
            raise make_error(place, error) from None
        undo.callback(os.close, fd)
        undo.callback(os.unlink, place.name, dir_fd=folder)
        entry = replace(entry, identity=mark(fd, entry.token))
        record.write(entry)
        undo.pop_all()
        return fd, record


def mark(fd: int, token: str) -> FileIdentity:
    """Mark it as Spindle's own, and lock it, as far as the file system supports that."""
    with suppress(OSError):  # no locks or attributes on this file system: the register's lock and the identity remain
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with suppress(OSError):
        os.setxattr(fd, register.MARKER, token.encode())
    return FileIdentity.of(fd, token)


def make_error(place: Path, error: OSError) -> TargetError:
    """The error for a place where nothing can be made."""
    hint = "; choose a folder you may write to" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else ""
    return TargetError(f"{place}: no test file can be made there: {reason(error)}{hint}")


# --- filling ---------------------------------------------------------------------------------------------------------


def _fill(file: TestFile, on_progress: Progress | None) -> None:
    """Fill the file and sync it to the medium."""
    fd = file.fileno()
    Filler(file.size_bytes, on_progress).fill(fd, file.size_bytes)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


# --- leftovers of a killed process -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """The handling of a test file of a killed process."""

    path: str
    size_bytes: int
    removed: bool
    line: str
    """One line to show."""


def sweep_leftovers() -> list[Sweep]:
    """Remove files of killed processes. Only files with a registered identity are touched."""
    swept = [Sweep(line.partition(":")[0], 0, False, line) for line in register.refused()]
    with register.orphans() as found:
        for record, entry in found:
            with held_back():
                result = _sweep_folder(entry) if entry.kind == register.FOLDER else _sweep(entry)
                if result is not None:
                    record.discard()
            if result is not None and result.line:
                swept.append(result)
    return swept


def _sweep(entry: Entry) -> Sweep | None:
    """The result for an entry; None to try again next time."""
    place = Path(entry.path)
    with ExitStack() as opened:
        try:
            folder = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, folder)
            # O_PATH: the name may lead to a pipe or a device now; an ordinary open would block on it or activate it.
            there = os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            opened.callback(os.close, there)
            if not stat.S_ISREG(os.fstat(there).st_mode):
                return _left_alone(entry)
            fd = os.open(f"/proc/self/fd/{there}", os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, fd)
        except FileNotFoundError:
            return None if _may_come_back(entry, place) else Sweep(entry.path, entry.size_bytes, False, "")
        except OSError:
            return None
        if not entry.matches(fd):
            return _left_alone(entry)
        if (size_bytes := entry.grown_to(fd)) is not None:
            line = f"left {entry.path} alone: {grown(entry.size_bytes, size_bytes)}"
            return Sweep(entry.path, entry.size_bytes, False, line)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None  # a child still has a descriptor of the dead process
        except OSError:
            pass
        try:
            now = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
            if not os.path.samestat(now, os.fstat(fd)):
                return _left_alone(entry)
            os.unlink(place.name, dir_fd=folder)
        except OSError:
            return None
    line = f"removed {entry.path} ({si_size(entry.size_bytes)}), a test file that an interrupted run left behind"
    return Sweep(entry.path, entry.size_bytes, True, line)


def _sweep_folder(entry: Entry) -> Sweep | None:
    """The same for a folder: removes Spindle's files in it, then the folder."""
    left: list[str] = []
    place = Path(entry.path)
    with ExitStack() as opened:
        try:
            parent = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, parent)
            fd = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            opened.callback(os.close, fd)
        except FileNotFoundError:
            return None if _may_come_back(entry, place) else Sweep(entry.path, entry.size_bytes, False, "")
        except NotADirectoryError:
            return _left_alone(entry)
        except OSError as error:
            return _left_alone(entry) if error.errno == errno.ELOOP else None
        if not entry.matches(fd):
            return _left_alone(entry)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError:
            pass
        try:
            if entry.identity is not None:
                left = empty_folder(fd, _parts_of(entry))
            if not left:
                remove_folder(parent, place.name, fd)
        except OSError as error:
            return _left_alone(entry) if error.errno in (errno.ENOTEMPTY, errno.ESTALE) else None
    if left:
        return Sweep(entry.path, entry.size_bytes, False, left_line(entry.path, left))
    line = f"removed {entry.path}, a folder of test files that an interrupted run left behind"
    return Sweep(entry.path, entry.size_bytes, True, line)


def _parts_of(entry: Entry) -> Parts:
    if entry.parts is None:
        return parts_within(entry.size_bytes)
    return {name: FolderLimits(files, most_bytes) for name, (files, most_bytes) in entry.parts.items()}


def _left_alone(entry: Entry) -> Sweep:
    line = f"left {entry.path} alone: it is not the test {entry.kind} that an interrupted run made there"
    return Sweep(entry.path, entry.size_bytes, False, line)


def _may_come_back(entry: Entry, place: Path) -> bool:
    """True if the file may only be invisible: its file system is not mounted now."""
    if time.time_ns() - entry.created_ns > register.FORGET_AFTER_S * 1_000_000_000:
        return False
    if entry.identity is None:
        return False
    try:
        return os.stat(place.parent).st_dev != entry.identity.device
    except OSError:
        return True
