"""What Spindle makes in a folder of its own, and its removal: sets of files, and trees for operations on names.

A set lies in one folder, its files called `f0000000000` ... A tree lies in one folder too: directories `d0000000` ...,
in them files `f0000000000` ..., called `r0000000000` ... once they are renamed (crates/engine/src/names.rs makes
them). Nothing is registered for a name: the folder is registered, and in it only what is called as Spindle calls
things, and is of the kind that it makes, is removed. Links are never followed: every step goes through the descriptor
of a directory that was opened without following any.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

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


def make_set(folder: int, name: str) -> int:
    """An empty folder for the files of a set, in a folder of Spindle's own; its descriptor. Raises OSError."""
    place = SET_PREFIX + name
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def file_name(index: int) -> str:
    """Name of a file of a set, counted from 0."""
    return f"f{index:010d}"


def make_tree(folder: int, name: str) -> int:
    """An empty folder for the tree of a set, in a folder of Spindle's own; its descriptor. Raises OSError."""
    place = PREFIX + name
    os.mkdir(place, MODE, dir_fd=folder)
    return _open(place, folder)


def empty_folder(folder: int, on_progress: Progress | None = None) -> list[str]:
    """Remove what Spindle made in a folder of its own. Returns the paths in it that were left. Raises OSError."""
    left: list[str] = []
    # btrfs lists what was there when the folder was opened (fs/btrfs/inode.c, btrfs_opendir): it is opened again.
    fresh = _open(".", folder)
    try:
        names = os.listdir(fresh)
    finally:
        os.close(fresh)
    for name in names:
        if name.startswith(PREFIX):
            left += remove_tree(folder, name, on_progress)
        elif name.startswith(SET_PREFIX):
            left += remove_set(folder, name, on_progress)
        else:
            left.append(name)
    return left


def remove_folder(parent: int, name: str, folder: int) -> None:
    """Remove the folder itself, empty by now, if the name still stands for it. Raises OSError."""
    there = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not os.path.samestat(there, os.fstat(folder)):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
    os.rmdir(name, dir_fd=parent)


def remove_tree(folder: int, name: str, on_progress: Progress | None = None) -> list[str]:
    """Remove the tree called `name` in `folder`; what is not the tree's own stays. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.tree(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def remove_set(folder: int, name: str, on_progress: Progress | None = None) -> list[str]:
    """Remove the files of the set called `name` in `folder`, and its folder. Returns the paths that were left."""
    removal = _Removal(os.fstat(folder).st_dev, on_progress)
    with _opened(name, folder, removal.device) as top:
        if top is not None:
            removal.files(top, name)
    _rmdir(name, folder, removal, name)
    return removal.left


def left_line(place: str, left: list[str]) -> str:
    """One line about what was left."""
    shown = ", ".join(f"{place}/{path}" for path in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return f"left {shown}{more}: Spindle did not make it"


class _Removal:
    """One walk over a tree."""

    def __init__(self, device: int, on_progress: Progress | None) -> None:
        self.left: list[str] = []
        self.device = device
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
            if not is_ours:
                self.left.append(f"{path}/{file}")
                continue
            with suppress(FileNotFoundError):
                os.unlink(file, dir_fd=directory)
            self._removed += 1
            if self._on_progress is not None and self._removed % 4096 == 0:
                self._on_progress(self._removed)


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
