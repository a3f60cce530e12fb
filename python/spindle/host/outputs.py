"""Output files that a user names: the only module that decides if an existing file may be replaced, and makes them.

An existing file is replaced only if its content shows that Spindle wrote it as a file of that kind and it belongs to
this user, or if `force=` was given. Only regular files are ever replaced; links are not followed. The new file is
complete before it gets the name, so the old file, and every other hard link to it, keeps its content.
docs/explanation/safety.md, "Outputs", lists the refusals.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

from .errors import Refusal, TargetError, reason
from .mounts import mount_of

Recognise = Callable[[IO[bytes]], bool]
"""Recognises the content of a file of the kind; reads the file from its beginning."""

MODE = 0o666
"""Mode of a new file, less the umask."""
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""Limit of links on a path, as in the kernel (path_resolution(7))."""
_LONGEST_PART = 200
"""Bytes of the name that the name of the unfinished file repeats; names have at most 255."""
_NOT_FOR_FILES = {"devtmpfs", "devpts", "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs"}


class OutputUnusable(TargetError):
    """Nothing can be saved there: no such folder, no permission, not a regular file."""

    exit_code = 2


@dataclass(frozen=True)
class Kind:
    """The kind of an output."""

    words: str
    """Its name with an article: `a result of Spindle`."""
    is_own: Recognise
    """Recognises files of this kind that Spindle wrote."""


def begins(head: bytes) -> Recognise:
    """Recognise files by their first bytes."""
    return lambda file: file.read(len(head)) == head


def never(_file: IO[bytes]) -> bool:
    """Recognise no file: for kinds whose content does not show the writer, and for those that are never replaced."""
    return False


@dataclass(frozen=True)
class Output:
    """A file that a user named."""

    path: Path
    kind: Kind
    option: str
    """The option that named it, for messages."""
    force: bool = False
    """True if any existing regular file may be replaced."""

    def named(self, name: str) -> Output:
        """The same output for a file beside it."""
        return replace(self, path=self.path.with_name(name))

    def check(self) -> None:
        """Check before the work begins. Raises Refusal if a file exists that is not replaced, OutputUnusable if none
        can be made.
        """
        with self._folder() as folder:
            self._look(folder)

    def draft(self) -> Draft:
        """A new file that gets the name when it is complete. Raises as `check`."""
        return Draft(self)

    def save(self, data: bytes) -> None:
        """Save all or nothing. Raises as `check`."""
        with self.draft() as draft:
            try:
                draft.file.write(data)
            except OSError as error:
                raise self.failed(error) from None
            draft.commit()

    def create(self, flags: int = os.O_WRONLY) -> int:
        """Create a new, empty file that can be read while it grows, and return its descriptor. No existing content is
        overwritten. Raises as `check`.
        """
        with self.draft() as draft:
            draft.commit()
            return os.open(f"/proc/self/fd/{draft.file.fileno()}", flags | os.O_CLOEXEC)

    def failed(self, error: OSError) -> OutputUnusable:
        """The error for a failed write."""
        return OutputUnusable(f"{self.option} {self.path}: {reason(error)}; it is not saved, name a file elsewhere")

    @contextmanager
    def _folder(self) -> Iterator[int]:
        if not self.path.name or self.path.name == "..":
            raise OutputUnusable(f"{self.option} {self.path}: not the name of a file; name a file")
        try:
            parent = self.path.absolute().parent
        except FileNotFoundError:  # the working directory was removed
            raise OutputUnusable(f"{self.option} {self.path}: its directory is gone; change to another") from None
        folder = _open_folder(parent, self.option)
        try:
            yield folder
        finally:
            os.close(folder)

    def _look(self, folder: int) -> bool:
        """True if a file exists that may be replaced; False: none exists, and one can be made."""
        there = self._may_take(folder)
        mount = mount_of(folder)
        in_shared_memory = PurePosixPath(os.readlink(f"/proc/self/fd/{folder}")).is_relative_to("/dev/shm")
        kernels = mount is not None and (mount.fs_type in _NOT_FOR_FILES or mount.point == "/dev")
        may_write = os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True)
        if (kernels and not in_shared_memory) or not may_write:
            raise OutputUnusable(f"{self.option} {self.path}: no file can be made in that folder; name another")
        return there

    def _may_take(self, folder: int) -> bool:
        """True if a file exists that may be replaced; False: none exists."""
        name, where = self.path.name, f"{self.option} {self.path}"
        try:
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise OutputUnusable(f"{where}: {reason(error)}; name another file") from None
        if not stat.S_ISREG(there.st_mode):
            raise OutputUnusable(f"{where} is not a regular file; name a file of its own")
        if self.force:
            return True
        if there.st_uid != os.geteuid():
            raise Refusal(f"{where}: exists, and belongs to another user (uid {there.st_uid}); {_ADVICE}")
        if not self._is_own(name, folder, there):
            raise Refusal(f"{where}: exists, and is not {self.kind.words}; {_ADVICE}")
        return True

    def _is_own(self, name: str, folder: int, there: os.stat_result) -> bool:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return False
        with os.fdopen(fd, "rb") as file:
            if not os.path.samestat(os.fstat(fd), there):
                return False
            try:
                return self.kind.is_own(file)
            except OSError:
                return False


_ADVICE = "name another file, or `force=` to replace it"


class Draft:
    """The new file of an output, under a hidden name until `commit`. Without a commit it is removed at the end."""

    def __init__(self, output: Output) -> None:
        self.output = output
        name = os.fsdecode(os.fsencode(output.path.name)[:_LONGEST_PART])
        self._part = f".{name}.{os.urandom(4).hex()}"
        with output._folder() as folder:
            output._look(folder)
            self._folder = os.dup(folder)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._part, flags, MODE, dir_fd=self._folder)
        except OSError as error:
            os.close(self._folder)
            raise output.failed(error) from None
        self.file: IO[bytes] = os.fdopen(fd, "wb")
        self._there = True
        self._open = True

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def commit(self) -> None:
        """Sync it and give it its name. Raises as `Output.check`. If another file has taken the name meanwhile, the new
        file keeps its hidden name, and the message shows it.
        """
        output = self.output
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise output.failed(error) from None
        try:
            if output._may_take(self._folder):
                os.rename(self._part, output.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                self._take_free_name()
        except (TargetError, OSError) as error:
            self._there = False
            said = reason(error) if isinstance(error, OSError) else str(error).partition(";")[0]
            kept = output.path.with_name(self._part)
            raise Refusal(f"{said.removeprefix(f'{output.option} ')}; what was to be saved is in {kept}") from None
        self._there = False

    def drop(self) -> None:
        """Close it; remove it if it has no name yet."""
        if not self._open:
            return
        self._open = False
        with suppress(OSError):
            self.file.close()
        if self._there:
            with suppress(OSError):
                os.unlink(self._part, dir_fd=self._folder)
        os.close(self._folder)

    def _take_free_name(self) -> None:
        """Take the name; fails if somebody took it since the check."""
        name = self.output.path.name
        ends = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        try:
            os.link(self._part, name, follow_symlinks=False, **ends)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE, dir_fd=self._folder))
            os.rename(self._part, name, **ends)
        else:
            os.unlink(self._part, dir_fd=self._folder)


def _open_folder(path: Path, option: str) -> int:
    """Open a folder. A link on the way is followed only if its owner is the user, root or the owner of its folder, as
    the kernel does with `fs.protected_symlinks`, which may be off (proc(5)).
    """
    left = list(reversed(path.parts[1:]))
    links = 0
    at = os.open("/", _PATH)
    try:
        while left:
            part = left.pop()
            step = os.open(part, _PATH, dir_fd=at)
            found = os.fstat(step)
            if not stat.S_ISLNK(found.st_mode):
                os.close(at)
                at = step
                continue
            try:
                links += 1
                parent = os.fstat(at)
                if links > _MOST_LINKS:
                    raise OutputUnusable(f"{option}: {path}: too many links; name another folder")
                if found.st_uid not in (0, os.geteuid(), parent.st_uid):
                    raise Refusal(
                        f"{option}: {path}: the link {part} on the way was made by another user (uid {found.st_uid}), "
                        "and is not followed; name the folder itself"
                    )
                leads = os.readlink("", dir_fd=step)
            finally:
                os.close(step)
            if leads.startswith("/"):
                os.close(at)
                at = os.open("/", _PATH)
            left += [part for part in reversed(leads.split("/")) if part not in ("", ".")]
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            raise NotADirectoryError
    except (FileNotFoundError, NotADirectoryError):
        os.close(at)
        raise OutputUnusable(f"{option}: {path}: no such folder; make it, or name a file elsewhere") from None
    except OSError as error:
        os.close(at)
        raise OutputUnusable(f"{option}: {path}: {reason(error)}; name a file elsewhere") from None
    except BaseException:
        os.close(at)
        raise
    return at
