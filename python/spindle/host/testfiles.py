"""The files of a workload's sets, in a folder of Spindle's own (`TestFolder`), removed with it.

The folder is registered before it exists and nobody else can enter it (0700), so its files need no entries of their
own. Each is made with a call that fails if the name is taken and does not follow links, and is opened for the load only
if it is still the file that was made.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar

from spindle.base.units import si_size

from . import kernel, register
from .errors import TargetError, reason
from .filling import Filler, Progress, fill_error
from .folder import FolderLimits, Parts, file_name, make_set, set_folder, tree_folder
from .folder import Progress as Removed
from .testfolder import TestFolder

_SPARE = 512
"""Descriptors kept for other uses: rings, sysfs, the state folder."""
_SYNCED_APART = 1 << 20
"""Files from this size on are synced one by one; smaller ones all at once."""


@dataclass(frozen=True)
class FileSetSpec:
    """Description of one set."""

    name: str
    sizes: Sequence[int]
    """Size of each file in bytes."""
    fill: bool = True
    """True if the files contain data; otherwise they are empty."""


@dataclass(frozen=True)
class TreeSpec:
    """Space for a tree that the engine makes."""

    name: str
    files: int
    largest_bytes: int
    """Size of the largest file."""
    names: int
    """Number of files and directories."""
    data_bytes: int

    def or_larger(self, other: TreeSpec) -> TreeSpec:
        """Space for either of the two."""
        return TreeSpec(
            name=self.name,
            files=max(self.files, other.files),
            largest_bytes=max(self.largest_bytes, other.largest_bytes),
            names=max(self.names, other.names),
            data_bytes=max(self.data_bytes, other.data_bytes),
        )


class FileSet:
    """The files of one set."""

    def __init__(self, wanted: FileSetSpec, folder: int) -> None:
        self.wanted = wanted
        self.folder = folder
        self.identities: list[tuple[int, int]] = []
        """Device and inode of each file."""

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(self.wanted.sizes)

    def open(self, index: int, flags: int) -> int:
        """Open one of the files. Raises OSError, or TargetError if it is not the file that was made any more."""
        fd = os.open(file_name(index), flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self.identities[index]:
            os.close(fd)
            raise TargetError(f"{self.wanted.name}/{file_name(index)}: is not the file that was made for this run")
        return fd

    def to_dict(self) -> dict[str, object]:
        """The JSON of the result record."""
        sizes = self.wanted.sizes
        return {
            "name": self.wanted.name,
            "files": len(sizes),
            "size_bytes": self.size_bytes,
            "smallest_bytes": min(sizes),
            "largest_bytes": max(sizes),
            "filled": self.wanted.fill,
        }


class TestFiles:
    """Sets of files. Removed when closed."""

    __test__: ClassVar[bool] = False  # pytest must not collect it by its name

    def __init__(self, folder: TestFolder, opened: ExitStack) -> None:
        self.folder = folder
        self.sets: dict[str, FileSet] = {}
        self._opened = opened

    @classmethod
    def create(
        cls,
        place: str | os.PathLike[str],
        sets: Sequence[FileSetSpec],
        *,
        trees: Sequence[TreeSpec] = (),
        on_progress: Progress | None = None,
    ) -> TestFiles:
        """Make and fill them in a new folder in the folder `place`, which must have space for the trees too. Raises
        Refused or TargetError."""
        names = sum(len(wanted.sizes) for wanted in sets) + sum(tree.names for tree in trees)
        total = sum(sum(wanted.sizes) for wanted in sets)
        data_bytes = total + sum(tree.data_bytes for tree in trees)
        files = cls(TestFolder.create(place, names, data_bytes, _parts(sets, trees)), ExitStack())
        try:
            files._make(sets, on_progress)
        except BaseException as error:
            files.remove()
            if isinstance(error, OSError) and not isinstance(error, TargetError):
                why = fill_error(error, total)
                raise TargetError(f"{files.folder.path}: {why}; what was made is removed") from None
            raise
        return files

    @property
    def path(self) -> str:
        """Path of the folder."""
        return str(self.folder.path)

    @property
    def size_bytes(self) -> int:
        """Size of all files; growing files with their final size."""
        return sum(made.size_bytes for made in self.sets.values())

    def fileno(self) -> int:
        """Descriptor of the folder."""
        return self.folder.fileno()

    def _make(self, sets: Sequence[FileSetSpec], on_progress: Progress | None) -> None:
        filler = Filler(sum(sum(wanted.sizes) for wanted in sets if wanted.fill), on_progress)
        for wanted in sets:
            fd = make_set(self.folder.fileno(), wanted.name)
            self._opened.callback(os.close, fd)
            made = self.sets[wanted.name] = FileSet(wanted, fd)
            for index, size_bytes in enumerate(wanted.sizes):
                made.identities.append(_make_file(fd, index, size_bytes if wanted.fill else 0, filler))
        kernel.sync_file_system(self.folder.fileno())

    def remove(self, on_progress: Removed | None = None) -> str | None:
        """Remove everything. Returns one line if something was left. Idempotent."""
        self._opened.close()
        return self.folder.remove(on_progress)

    def keep(self) -> None:
        """Leave everything in place; from now on it belongs to the user."""
        self._opened.close()
        self.folder.keep()

    def __enter__(self) -> TestFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def _parts(sets: Sequence[FileSetSpec], trees: Sequence[TreeSpec]) -> Parts:
    return {
        **{set_folder(wanted.name): FolderLimits.of(wanted.sizes) for wanted in sets},
        **{tree_folder(tree.name): FolderLimits(tree.files, tree.largest_bytes) for tree in trees},
    }


def _make_file(folder: int, index: int, size_bytes: int, filler: Filler) -> tuple[int, int]:
    flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC
    fd = os.open(file_name(index), flags, register.PRIVATE, dir_fd=folder)
    try:
        filler.fill(fd, size_bytes)
        if size_bytes >= _SYNCED_APART:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        status = os.fstat(fd)
        return status.st_dev, status.st_ino
    finally:
        os.close(fd)


def allow_open(count: int, what: str) -> None:
    """Raise the limit of open descriptors to `count` more. Raises TargetError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _SPARE
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise TargetError(
                f"{what}: {count} files would be open at once, but the limit of a process is {hard} (ulimit -Hn); "
                "set fewer "
                "nrfiles, or raise the limit"
            )
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def cannot_open(path: str, error: OSError) -> TargetError:
    """The error for files that cannot be opened."""
    return TargetError(f"{path}: the files that were made there cannot be opened: {reason(error)}")


def words_of(sets: Sequence[FileSetSpec]) -> str:
    """`8 files of 16 GiB in all`."""
    count = sum(len(wanted.sizes) for wanted in sets)
    total = sum(sum(wanted.sizes) for wanted in sets)
    return f"{count} {'file' if count == 1 else 'files'} of {si_size(total)}{'' if count == 1 else ' in all'}"
