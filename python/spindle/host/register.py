"""The register of test files: which file Spindle made, written down before the file has a name.

One small JSON file per test file in the state folder. Its maker holds a lock on it (flock) as long as it lives, so an
entry without a lock belongs to a process that was killed.
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
from .trusted import Untrusted, make_folder, new_own, open_own

MARKER = "user.spindle.testfile"
"""Extended attribute that holds the token of a test file."""
PRIVATE = 0o600
"""Mode of a test file."""
PRIVATE_FOLDER = 0o700
"""Mode of a folder of Spindle's own."""
FILE, FOLDER = "file", "folder"
FORGET_AFTER_S = 90 * 86400
"""An entry is given up when its file system has not been seen for so long."""
_NAMED, _DRAFT = ".json", ".new"
_CLOCK_NS = 1_000_000_000  # file times come from a coarser clock, which lags by up to a tick (10 ms)
_DRAFT_S = 60  # far longer than it takes to lock and name one
_ENTRY_BYTES = 16384  # entries are padded to this, so that one write replaces an entry whole; a path is at most 4 KiB


@dataclass(frozen=True)
class Identity:
    """Which file it is, whatever its name: file system, inode, birth time, and the token in its marker."""

    device: int
    inode: int
    birth_ns: int | None
    marked: bool

    @classmethod
    def of(cls, fd: int, token: str) -> Identity:
        """Of an open file."""
        status = os.fstat(fd)
        return cls(status.st_dev, status.st_ino, kernel.birth_time_ns(fd), read_marker(fd) == token)


@dataclass(frozen=True)
class Entry:
    """One test file, or a folder of Spindle's own. `identity` is None between the intent and the making, where the file
    system cannot make it without a name."""

    token: str
    path: str
    size_bytes: int
    host: str
    boot: str
    created_ns: int
    identity: Identity | None = None
    kind: str = FILE
    parts: dict[str, tuple[int, int]] | None = None
    """A folder's sets and trees: how many files, and bytes of the largest. None: an older version did not note them."""

    @classmethod
    def intent(cls, token: str, path: str, size_bytes: int, kind: str = FILE) -> Entry:
        """What is about to be made on this machine."""
        return cls(token, path, size_bytes, os.uname().nodename, boot_id(), time.time_ns(), kind=kind)

    def matches(self, fd: int) -> bool:
        """Whether what is open is what was registered."""
        status = os.fstat(fd)
        is_kind = stat.S_ISDIR if self.kind == FOLDER else stat.S_ISREG
        # Root may sweep with the state folder of a user who wrote an entry about somebody's file.
        if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
            return False
        marked = read_marker(fd) == self.token
        if self.identity is None:
            return marked or self._is_just_made(status)
        if self.identity.marked != marked or self.identity.inode != status.st_ino:
            return False
        if self.identity.birth_ns != kernel.birth_time_ns(fd):
            return False
        # After a boot a file system may come back under another number; then the marker has to vouch.
        if self.identity.device != status.st_dev and (self.boot == boot_id() or not marked):
            return False
        if self.kind == FOLDER:
            return marked or self.identity.birth_ns is not None
        # With neither marker nor birth time, the size is all that is left to tell a new file of the same inode.
        return marked or self.identity.birth_ns is not None or not self.grown_to(fd)

    def grown_to(self, fd: int) -> int | None:
        """Its size, where it is more than Spindle ever gave it: somebody else has written to it."""
        size_bytes = os.fstat(fd).st_size
        return size_bytes if self.kind == FILE and size_bytes > self.size_bytes else None

    def _is_just_made(self, status: os.stat_result) -> bool:
        """Its maker may have died between making and marking it: it is empty, private, and younger than the intent."""
        if status.st_ctime_ns <= self.created_ns - _CLOCK_NS:
            return False
        if self.kind == FOLDER:  # what is in it is not touched without an identity
            return stat.S_IMODE(status.st_mode) == PRIVATE_FOLDER
        return status.st_size == 0 and stat.S_IMODE(status.st_mode) == PRIVATE


def read_marker(fd: int) -> str | None:
    """The token a file is marked with."""
    try:
        return os.getxattr(fd, MARKER).decode("ascii", errors="replace")
    except OSError:
        return None


def boot_id() -> str:
    """Names this boot of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def state_folder() -> Path:
    """Where Spindle keeps what must outlive a process (XDG base directory specification)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".local/state"
    return base / "spindle"


def folder() -> Path:
    """The register. Each user has one, even in a home that `sudo` has kept: an entry is only believed from oneself."""
    return state_folder() / f"testfiles-{os.geteuid()}"


class Record:
    """An entry that this process keeps and holds the lock of."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file

    @classmethod
    def create(cls, entry: Entry) -> Record:
        """Write it down, on the disk, before anything else happens."""
        place = folder() / f"{entry.token}{_NAMED}"
        draft = place.with_suffix(_DRAFT)
        try:
            make_folder(place.parent)
            file = os.fdopen(new_own(draft), "r+b", buffering=0)
            # The lock comes before the name that a sweep looks for.
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
        """Its descriptor."""
        return self._file.fileno()

    def discard(self) -> None:
        """The file is gone, or is somebody else's by now."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self._file.close()

    def keep(self) -> None:
        """Give up the lock and leave the entry to the next sweep."""
        self._file.close()


def settle() -> None:
    """What was discarded stays so: an entry that came back after a power cut would have its file swept."""
    with suppress(OSError):
        sync_folder(folder())


@contextmanager
def orphans() -> Iterator[list[tuple[Record, Entry]]]:
    """Entries of this machine whose makers are dead, each locked for the time of the sweep."""
    found: list[tuple[Record, Entry]] = []
    with ExitStack() as adopted:
        for place in _own_entries():
            record = _adopt(place)
            if record is None:
                continue
            adopted.callback(record.keep)
            entry = _read(record)
            if entry is None and _is_older(place, FORGET_AFTER_S):
                record.discard()  # nobody understands it any more
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
        except Untrusted as error:
            lines.append(f"{error}; the test file it tells of, if any, is left alone")
        except OSError:
            continue
    return lines


def _own_entries() -> list[Path]:
    """Only what this user wrote, in a folder that only this user can write to."""
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
    except (OSError, Untrusted):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another sweep may have removed it, or its maker given it its name, between opening and locking.
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
        entry = Entry(identity=Identity(**identity) if identity else None, **fields)
        return entry if isinstance(entry.path, str) and isinstance(entry.created_ns, int) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
