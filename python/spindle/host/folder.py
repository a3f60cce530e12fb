"""What Spindle makes in a folder of its own, and its removal: sets of files, and trees for operations on names.

A set lies in one folder, its files called `f0000000000` ... A tree lies in one folder too: directories `d0000000` ...,
in them files `f0000000000` ..., called `r0000000000` ... once they are renamed (crates/engine/src/names.rs makes
them). Nothing is registered for a name: the folder is registered, and in it only what is called as Spindle calls
things, is of the kind that it makes, and is no larger than it made it (`Part`), is removed. Links are never followed:
every step goes through the descriptor of a directory that was opened without following any.
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
"""A tree's folder is called so and by its set's name."""
SET_PREFIX = "files-"
"""A set's folder is called so and by its name."""
MODE = 0o700
_DIRECTORY = re.compile(r"d[0-9]{7,}")
_FILE = re.compile(r"[fr][0-9]{10,}")
_SHOWN = 3

Progress = Callable[[int], None]
"""Told how many names are removed, now and then."""


@dataclass(frozen=True)
class Part:
    """The files that Spindle makes in a set or a tree. Further ones, and larger ones, are somebody else's."""

    files: int
    most_bytes: int
    """Of one file."""
    sizes: Sequence[int] | None = None
    """Of each file, where the process that made them still runs."""

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Part:
        """Of files of these sizes."""
        return cls(len(sizes), max(sizes, default=0), sizes)

    def has(self, number: int, size_bytes: int) -> bool:
        """Can this file be as Spindle made it?"""
        if number >= self.files:
            return False
        return size_bytes <= (self.most_bytes if self.sizes is None else self.sizes[number])

    def and_also(self, other: Part) -> Part:
        """What can belong to either."""
        return Part(max(self.files, other.files), max(self.most_bytes, other.most_bytes))


Parts = Mapping[str, Part]
"""By the names of their folders; those of `REST` have no entry of their own."""
REST = ""
_NOTHING = Part(0, 0)


def set_folder(name: str) -> str:
    """Name of the folder of a set."""
    return SET_PREFIX + name


def tree_folder(name: str) -> str:
    """Name of the folder of a tree."""
    return PREFIX + name


def parts_within(most_bytes: int) -> Parts:
    """For a folder of which only the size of all its files is known."""
    return {REST: Part(sys.maxsize, most_bytes)}


def make_set(folder: int, name: str) -> int:
    """An empty folder for the files of a set, in a folder of Spindle's own; its descriptor. Raises OSError."""
    place = set_folder(name)
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def file_name(index: int) -> str:
    """Name of a file of a set, counted from 0."""
    return f"f{index:010d}"


def make_tree(folder: int, name: str) -> int:
    """An empty folder for the tree of a set, in a folder of Spindle's own; its descriptor. Raises OSError."""
    place = tree_folder(name)
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def empty_folder(folder: int, parts: Parts, on_progress: Progress | None = None) -> list[str]:
    """Remove what Spindle made in a folder of its own. Returns the paths in it that were left. Raises OSError."""
    left: list[str] = []
    # btrfs lists what was there when the folder was opened (fs/btrfs/inode.c, btrfs_opendir): it is opened again.
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
    """Remove the folder itself, empty by now, if the name still stands for it. Raises OSError."""
    there = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not os.path.samestat(there, os.fstat(folder)):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
    os.rmdir(name, dir_fd=parent)


def _remove_tree(folder: int, name: str, part: Part, on_progress: Progress | None) -> list[str]:
    """Remove the tree called `name` in `folder`; what is not the tree's own stays. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, part, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.tree(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def _remove_set(folder: int, name: str, part: Part, on_progress: Progress | None) -> list[str]:
    """Remove the files of the set called `name` in `folder`, and its folder. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, part, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.files(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def left_line(place: str, left: list[str]) -> str:
    """One line about what was left."""
    shown = ", ".join(f"{place}/{path}" for path in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return f"left {shown}{more}: Spindle did not make it, or somebody else has written to it; it is yours now"


class _Removal:
    """One walk over a set or a tree."""

    def __init__(self, device: int, part: Part, on_progress: Progress | None) -> None:
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
        """Those of one directory."""
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
    """Every name there, and whether it is one of the tree's; the list is whole before anything is removed."""
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
    """None: it is gone, is a link or a mount, or somebody else's."""
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
        # What keeps a directory is told; the directories above it go without saying.
        if not any(left.startswith(f"{path}/") for left in removal.left):
            removal.left.append(path)
