"""A folder of Spindle's own: the only place where it makes more than one file, removed with its files.

It is registered before it exists, private (0700), marked, and its name has a random token that nobody can guess. Only
files with Spindle's names, kinds and sizes are removed; files of others stay, and are reported.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path

from spindle.base.units import si_size

from . import register
from .errors import Refusal, WrongTarget, reason
from .folder import REST, FolderLimits, Parts, Progress, empty_folder, left_line, remove_folder
from .own import OwnedPath
from .register import Entry, Record
from .signals import held_back
from .testfile import KEEP_FREE, check_place, make_error, mark, open_folder

_INODE = 512
"""Smallest space of a name and its attributes: an inode of XFS, two of ext4."""
_PARTS_BYTES = 8192
"""Limit for parts in an entry of the register: half of an entry, the other half is for the path."""


class TestFolder(OwnedPath):
    """A folder made by Spindle in a user's folder. Removed when closed."""

    WHAT = "test folder"

    def __init__(self, path: Path, fd: int, parent: int, record: Record, parts: Parts) -> None:
        super().__init__(path, fd, parent, record)
        self._parts = parts

    @classmethod
    def create(
        cls, place: str | os.PathLike[str], names: int = 0, data_bytes: int = 0, parts: Parts | None = None
    ) -> TestFolder:
        """Make it in `place`, for `names` names and `data_bytes` in these parts. Raises Refusal or TargetError."""
        parts = parts or {}
        if not os.path.isdir(place):
            what = "is not a folder" if os.path.exists(place) else "no such folder"
            raise WrongTarget(f"{os.fspath(place) or 'the empty path'}: {what}; name a folder for the files")
        token = secrets.token_hex(8)
        path = Path(os.path.abspath(place)) / f"spindle-test-{token}"
        with held_back(), ExitStack() as undo:
            parent = open_folder(path)
            undo.callback(os.close, parent)
            check_place(path, parent)
            _check_room(path, parent, names, data_bytes)
            entry = replace(Entry.intent(token, str(path), data_bytes, register.FOLDER), parts=_noted(parts))
            record = Record.create(entry)
            undo.callback(record.discard)
            try:
                os.mkdir(path.name, register.PRIVATE_FOLDER, dir_fd=parent)
                undo.callback(os.rmdir, path.name, dir_fd=parent)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(path.name, flags, dir_fd=parent)
                undo.callback(os.close, fd)
            except OSError as error:
                raise make_error(path, error) from None
            record.write(replace(entry, identity=mark(fd, token)))
            undo.pop_all()
            return cls(path, fd, parent, record, parts)

    def remove(self, on_progress: Progress | None = None) -> str | None:
        """Remove its files, the folder and its entry. Returns one line if something was left. Idempotent."""
        if (record := self._taken()) is None:
            return None
        with held_back():
            self._record = None
            try:
                left = empty_folder(self._fd, self._parts, on_progress)
                if not left:
                    remove_folder(self._parent, self.path.name, self._fd)
                record.discard()
                return left_line(str(self.path), left) if left else None
            except FileNotFoundError:
                record.discard()
                return f"{self.path}: the test folder has been moved or removed by someone else"
            except OSError as error:
                record.keep()
                return f"{self.path}: the test folder could not be removed: {reason(error)}"
            finally:
                self._close()


def _noted(parts: Parts) -> dict[str, tuple[int, int]]:
    """The parts for the register; one common entry if they are too many."""
    noted = {name: (part.files, part.most_bytes) for name, part in parts.items()}
    if len(json.dumps(noted)) <= _PARTS_BYTES:
        return noted
    together = reduce(FolderLimits.and_also, parts.values())
    return {REST: (together.files, together.most_bytes)}


def _check_room(path: Path, parent: int, names: int, data_bytes: int) -> None:
    """Check the free space: the last 5 % of a file system's blocks and inodes are never used."""
    space = os.statvfs(f"/proc/self/fd/{parent}")
    if space.f_blocks == 0:
        raise Refusal(f"{path}: its file system does not report its free space; choose another place")
    total, available = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
    needed, takable = data_bytes + names * _INODE, available - int(total * KEEP_FREE)
    if needed > takable:
        raise Refusal(
            f"{path.parent}: {names} names with {si_size(data_bytes)} would take the last {KEEP_FREE:.0%} of the file "
            f"system ({si_size(total)}, {si_size(available)} free); set fewer nrfiles or a smaller filesize"
        )
    # 0: inodes are made as they are needed (btrfs).
    if space.f_files and names > space.f_favail - int(space.f_files * KEEP_FREE):
        raise Refusal(
            f"{path.parent}: {names} names would take the last {KEEP_FREE:.0%} of the file system's inodes "
            f"({space.f_files}, {space.f_favail} free); set fewer nrfiles"
        )
