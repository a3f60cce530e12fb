"""The register of test files: records which file Spindle makes, before the file has a name.

One small JSON file per test file, in the state folder. Its maker holds a lock on it (flock) as long as it lives, so an
entry without a lock belongs to a killed process.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from . import kernel
from .durably import sync_folder
from .errors import TargetError, reason
from .trusted import UntrustedFile, make_folder, new_own, open_own

MARKER = "user.spindle.testfile"
"""Extended attribute with the token of a test file."""
PRIVATE = 0o600
"""Mode of a test file."""
PRIVATE_FOLDER = 0o700
"""Mode of Spindle's own folders."""
FILE, FOLDER = "file", "folder"
FORGET_AFTER_S = 90 * 86400
"""Age after which an entry is deleted, if its file system has not been seen."""
_NAMED, _DRAFT = ".json", ".new"
_CLOCK_NS = 1_000_000_000  # file times come from a coarser clock, which lags by up to a tick (10 ms)
_DRAFT_S = 60  # far longer than locking and naming one takes
_ENTRY_BYTES = 16384  # entries are padded to this, so that one write replaces an entry whole; a path is at most 4 KiB


@dataclass(frozen=True)
class FileIdentity:
    """FileIdentity of a file, independent of its name: file system, inode, birth time, and the token in its marker."""

    device: int
    inode: int
    birth_ns: int | None
    marked: bool

    @classmethod
    def of(cls, fd: int, token: str) -> FileIdentity:
        """The identity of an open file."""
        status = os.fstat(fd)
        return cls(status.st_dev, status.st_ino, kernel.birth_time_ns(fd), read_marker(fd) == token)


@dataclass(frozen=True)
class Entry:
    """One test file, or a folder of Spindle's own. `identity` is None between intent and creation, on file systems that
    cannot create files without a name."""

    token: str
    path: str
    size_bytes: int
    host: str
    boot: str
    created_ns: int
    identity: FileIdentity | None = None
    kind: str = FILE
    parts: dict[str, tuple[int, int]] | None = None
    """Sets and trees of a folder: number of files, and bytes of the largest. None: written by an older version."""

    @classmethod
    def intent(cls, token: str, path: str, size_bytes: int, kind: str = FILE) -> Entry:
        """The entry for a file that is about to be made on this machine."""
        return cls(token, path, size_bytes, os.uname().nodename, boot_id(), time.time_ns(), kind=kind)

    def matches(self, fd: int) -> bool:
        """True if the open file is the registered one."""
        status = os.fstat(fd)
        is_kind = stat.S_ISDIR if self.kind == FOLDER else stat.S_ISREG
        # Root may sweep with the state folder of a user who wrote an entry about somebody else's file.
        if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
            return False
        marked = read_marker(fd) == self.token
        if self.identity is None:
            return marked or self._is_just_made(status)
        if self.identity.marked != marked or self.identity.inode != status.st_ino:
            return False
        if self.identity.birth_ns != kernel.birth_time_ns(fd):
            return False
        # After a boot a file system may get another number; then the marker decides.
        if self.identity.device != status.st_dev and (self.boot == boot_id() or not marked):
            return False
        if self.kind == FOLDER:
            return marked or self.identity.birth_ns is not None
        # Without marker and birth time, only the size distinguishes it from a new file with the same inode.
        return marked or self.identity.birth_ns is not None or not self.grown_to(fd)

    def grown_to(self, fd: int) -> int | None:
        """Its size, if that is more than Spindle ever gave it: somebody else has written to it."""
        size_bytes = os.fstat(fd).st_size
        return size_bytes if self.kind == FILE and size_bytes > self.size_bytes else None

    def _is_just_made(self, status: os.stat_result) -> bool:
        """True if its maker may have died between making and marking it: empty, private, and younger than the
        intent."""
        if status.st_ctime_ns <= self.created_ns - _CLOCK_NS:
            return False
        if self.kind == FOLDER:  # the content of a folder without identity is not touched
            return stat.S_IMODE(status.st_mode) == PRIVATE_FOLDER
        return status.st_size == 0 and stat.S_IMODE(status.st_mode) == PRIVATE


def read_marker(fd: int) -> str | None:
    """The token in a file's marker."""
    try:
        return os.getxattr(fd, MARKER).decode("ascii", errors="replace")
    except OSError:
        return None


def boot_id() -> str:
    """Identifier of this boot of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def state_folder() -> Path:
    """Folder of state that outlives a process (XDG base directory specification)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".local/state"
    return base / "spindle"


def folder() -> Path:
    """Folder of the register. One for each user, also in a home that `sudo` keeps: only own entries are trusted."""
    return state_folder() / f"testfiles-{os.geteuid()}"


class Record:
    """An entry that this process has locked."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file

    @classmethod
    def create(cls, entry: Entry) -> Record:
        """Write the entry to the disk before anything else happens."""
        place = folder() / f"{entry.token}{_NAMED}"
        draft = place.with_suffix(_DRAFT)
        try:
            make_folder(place.parent)
            file = os.fdopen(new_own(draft), "r+b", buffering=0)
            # The lock comes before the name that a sweep searches for.
            fcntl.flock(file, fcntl.LOCK_EX)
            record = cls(place, file)
            record.write(entry)
            draft.rename(place)
            sync_folder(place.parent)
        except OSError as error:
            raise TargetError(
                f"{place.parent}: the register of test files cannot be written: {reason(error)}; "
                "set XDG_STATE_HOME to a folder of yours"
            ) from None
        return record

    def write(self, entry: Entry) -> None:
        """Replace the entry in one write."""
        data = json.dumps(asdict(entry)).encode().ljust(_ENTRY_BYTES)
        os.pwrite(self._file.fileno(), data, 0)
        os.fsync(self._file.fileno())

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()

    def discard(self) -> None:
        """Delete the entry: the file is gone, or belongs to somebody else."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self._file.close()

    def keep(self) -> None:
        """Release the lock and leave the entry to the next sweep."""
        self._file.close()


def settle() -> None:
    """Sync deletions: an entry that came back after a power cut would have its file swept."""
    with suppress(OSError):
        sync_folder(folder())


@contextmanager
def orphans() -> Iterator[list[tuple[Record, Entry]]]:
    """Entries of this machine with dead makers, each locked during the sweep."""
    found: list[tuple[Record, Entry]] = []
    with ExitStack() as adopted:
        for place in _own_entries():
            record = _adopt(place)
            if record is None:
                continue
            adopted.callback(record.keep)
            entry = _read(record)
            if entry is None and _is_older(place, FORGET_AFTER_S):
                record.discard()  # unreadable for every version
            elif place.suffix == _DRAFT:
                if _is_older(place, _DRAFT_S):
                    record.discard()  # its maker died before it made anything
            elif entry is not None and entry.host == os.uname().nodename:
                found.append((record, entry))
        yield found


def refused() -> list[str]:
    """Lines about entries that somebody else could have written."""
    lines = []
    for place in _own_entries():
        try:
            os.close(open_own(place))
        except UntrustedFile as error:
            lines.append(f"{error}; its test file, if any, is left alone")
        except OSError:
            continue
    return lines


def _own_entries() -> list[Path]:
    """Entries of this user, in a folder that only this user can write to."""
    place = folder()
    try:
        status = place.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return []
        return sorted(entry for entry in place.iterdir() if entry.suffix in (_NAMED, _DRAFT))
    except OSError:
        return []


def _is_older(place: Path, seconds: float) -> bool:
    try:
        return time.time() - place.stat().st_mtime > seconds
    except OSError:
        return False


def _adopt(place: Path) -> Record | None:
    try:
        file = os.fdopen(open_own(place, appending=True), "r+b", buffering=0)
    except (OSError, UntrustedFile):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between opening and locking, another sweep may have removed it, or its maker may have renamed it.
        if os.path.samestat(os.fstat(file.fileno()), os.stat(place, follow_symlinks=False)):
            return Record(place, file)
    except OSError:
        pass
    file.close()
    return None


def _read(record: Record) -> Entry | None:
    try:
        fields = json.loads(os.pread(record.fileno(), _ENTRY_BYTES, 0))
        identity = fields.pop("identity")
        entry = Entry(identity=FileIdentity(**identity) if identity else None, **fields)
        return entry if isinstance(entry.path, str) and isinstance(entry.created_ns, int) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
