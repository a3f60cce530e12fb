"""Files and folders that Spindle makes in a folder of its own, and their removal: sets of files, and trees of names.

A set is in one folder, with files `f0000000000` ... A tree is in one folder too: directories `d0000000` ... with files
`f0000000000` ..., which are renamed to `r0000000000` ... (crates/engine/src/names.rs makes them). Single names are not
registered, only the folder is. In it, only files with Spindle's names, of the kinds that it makes, and not larger than
it made them (`Part`), are removed. Links are never followed: every step uses the descriptor of a directory that was
opened without following any.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

PREFIX = "tree-"
"""Prefix of a tree's folder, before the name of its set."""
SET_PREFIX = "files-"
"""Prefix of a set's folder, before its name."""
MODE = 0o700
_DIRECTORY = re.compile(r"d[0-9]{7,}")
_FILE = re.compile(r"[fr][0-9]{10,}")
_SHOWN = 3

Progress = Callable[[int], None]
"""Called now and then with the number of removed names."""


@dataclass(frozen=True)
class FolderLimits:
    """Limits of the files that Spindle makes in a set or a tree. Further or larger files belong to somebody else."""

    files: int
    most_bytes: int
    """Largest size of one file."""
    sizes: Sequence[int] | None = None
    """Size of each file, while the process that made them still runs."""

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FolderLimits:
        """The limits for files of these sizes."""
        return cls(len(sizes), max(sizes, default=0), sizes)

    def has(self, number: int, size_bytes: int) -> bool:
        """True if Spindle can have made this file."""
        if number >= self.files:
            return False
        return size_bytes <= (self.most_bytes if self.sizes is None else self.sizes[number])

    def and_also(self, other: FolderLimits) -> FolderLimits:
        """Limits that allow the files of either."""
        return FolderLimits(max(self.files, other.files), max(self.most_bytes, other.most_bytes))


Parts = Mapping[str, FolderLimits]
"""Limits by folder name; `REST` is for folders without an entry."""
REST = ""
_NOTHING = FolderLimits(0, 0)


def set_folder(name: str) -> str:
    """Name of the folder of a set."""
    return SET_PREFIX + name


def tree_folder(name: str) -> str:
    """Name of the folder of a tree."""
    return PREFIX + name


def parts_within(most_bytes: int) -> Parts:
    """Limits for a folder of which only the total size is known."""
    return {REST: FolderLimits(sys.maxsize, most_bytes)}


def make_set(folder: int, name: str) -> int:
    """Make an empty folder for the files of a set, in a folder of Spindle's own. Returns its descriptor. Raises
    OSError."""
    place = set_folder(name)
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def file_name(index: int) -> str:
    """Name of a file of a set, counted from 0."""
    return f"f{index:010d}"


def make_tree(folder: int, name: str) -> int:
    """Make an empty folder for the tree of a set, in a folder of Spindle's own. Returns its descriptor. Raises
    OSError."""
    place = tree_folder(name)
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def empty_folder(folder: int, parts: Parts, on_progress: Progress | None = None) -> list[str]:
    """Remove Spindle's files in a folder of its own. Returns the paths that were left. Raises OSError."""
    left: list[str] = []
    # btrfs lists the entries of the time when the folder was opened (fs/btrfs/inode.c, btrfs_opendir): so open it
    # again.
    fresh = _open(".", folder)
    try:
        names = os.listdir(fresh)
    finally:
        os.close(fresh)
    for name in names:
        part = parts.get(name, parts.get(REST, _NOTHING))
        if name.startswith(PREFIX):
            left += _remove_tree(folder, name, part, on_progress)
        elif name.startswith(SET_PREFIX):
            left += _remove_set(folder, name, part, on_progress)
        else:
            left.append(name)
    return left


def remove_folder(parent: int, name: str, folder: int) -> None:
    """Remove the empty folder, if the name still leads to it. Raises OSError."""
    there = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not os.path.samestat(there, os.fstat(folder)):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
    os.rmdir(name, dir_fd=parent)


def _remove_tree(folder: int, name: str, part: FolderLimits, on_progress: Progress | None) -> list[str]:
    """Remove the tree called `name` in `folder`; other files stay. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, part, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.tree(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def _remove_set(folder: int, name: str, part: FolderLimits, on_progress: Progress | None) -> list[str]:
    """Remove the files of the set called `name` in `folder`, and its folder. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, part, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.files(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def left_line(place: str, left: list[str]) -> str:
    """One line about the paths that were left."""
    shown = ", ".join(f"{place}/{path}" for path in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return f"left {shown}{more}: Spindle did not make it, or somebody else has written to it; it is yours now"


class _Removal:
    """One walk over a set or a tree."""

    def __init__(self, device: int, part: FolderLimits, on_progress: Progress | None) -> None:
        self.left: list[str] = []
        self.device = device
        self._part = part
        self._removed = 0
        self._on_progress = on_progress

    def tree(self, top: int, path: str) -> None:
        for directory, is_ours in _listed(top, _DIRECTORY, directories=True):
            inside = f"{path}/{directory}"
            if not is_ours:
                self.left.append(inside)
                continue
            with _opened(directory, top, self.device) as opened:
                if opened is not None:
                    self.files(opened, inside)
            _rmdir(directory, top, self, inside)

    def files(self, directory: int, path: str) -> None:
        """Remove the files of one directory."""
        for file, is_ours in _listed(directory, _FILE, directories=False):
            with suppress(FileNotFoundError):
                if not is_ours or not self._is_as_made(file, directory):
                    self.left.append(f"{path}/{file}")
                    continue
                os.unlink(file, dir_fd=directory)
            self._removed += 1
            if self._on_progress is not None and self._removed % 4096 == 0:
                self._on_progress(self._removed)

    def _is_as_made(self, file: str, directory: int) -> bool:
        size_bytes = os.stat(file, dir_fd=directory, follow_symlinks=False).st_size
        return self._part.has(int(file[1:]), size_bytes)


def _listed(folder: int, pattern: re.Pattern[str], *, directories: bool) -> list[tuple[str, bool]]:
    """All names in a folder, each with True if it belongs to the tree; the list is complete before anything is
    removed."""
    with os.scandir(folder) as entries:
        return [
            (
                entry.name,
                pattern.fullmatch(entry.name) is not None
                and (entry.is_dir(follow_symlinks=False) if directories else entry.is_file(follow_symlinks=False)),
            )
            for entry in entries
        ]


def _open(name: str, folder: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


@contextmanager
def _opened(name: str, folder: int, device: int) -> Iterator[int | None]:
    """Open a folder; None if it is gone, a link, a mount, or somebody else's."""
    try:
        fd = _open(name, folder)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EACCES):
            raise
        yield None
        return
    try:
        status = os.fstat(fd)
        yield fd if status.st_dev == device and status.st_uid == os.geteuid() else None
    finally:
        os.close(fd)


def _rmdir(name: str, folder: int, removal: _Removal, path: str) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY, errno.EACCES, errno.EPERM):
            raise
        # The entry that keeps a directory is reported; the directories above it need no line of their own.
        if not any(left.startswith(f"{path}/") for left in removal.left):
            removal.left.append(path)
