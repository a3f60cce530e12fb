"""Sources of text: the running machine, or a capture of one in memory.

Paths are relative to the root, without a leading slash: `sys/block/sda/size`. Outputs of tools are beside them under
`tools/`, so that a capture consists only of files. No reader follows a link out of its root, opens anything but regular
files, or reads more than a limit.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

SHORT = 64 * 1024
"""Bytes of the longest kernel file with one value: a page of sysfs is 4 KiB, or 64 KiB on some machines."""
LONG = 4 * 1024 * 1024
"""Bytes of the longest table (mountinfo, interrupts) or tool output that is read."""
_TOOL_SECONDS = 20.0
_LAST_SECONDS = 1.0
_MOST_LINKS = 40  # as the kernel's own limit, MAXSYMLINKS


class ReadError(Exception):
    """Something could not be read; the text says what and why."""


@dataclass(frozen=True)
class Tool:
    """A command whose output is read. `name` and `of` (its object) give its place in a capture."""

    name: str
    of: str
    command: tuple[str, ...]

    @property
    def path(self) -> str:
        """Path of its output in a capture."""
        return f"tools/{self.name}/{_one_name(self.of)}"

    @property
    def why_path(self) -> str:
        """Path of the reason in a capture, if it has no output."""
        return self.path + ".why"


def _one_name(text: str) -> str:
    """One component of a path for any object: a mount point contains slashes."""
    return text.replace("%", "%25").replace("/", "%2F") or "%"


class Tree(Protocol):
    """Methods of every source of text."""

    live: bool
    """True for the running machine, whose paths and devices can be asked directly."""

    def read(self, path: str, limit: int = SHORT) -> bytes:
        """Content of a regular file. Raises `ReadError`."""

    def names(self, path: str) -> list[str]:
        """Names in a folder; none if it does not exist."""

    def resolve(self, path: str) -> str | None:
        """The path without links; None if it does not exist."""

    def points_to(self, path: str) -> str | None:
        """The last name in a link's target, which may not exist; None if it is not a link."""

    def output(self, tool: Tool) -> str:
        """Output of a tool. Raises `ReadError`."""


class LiveTree:
    """The running machine."""

    live = True

    def read(self, path: str, limit: int = SHORT) -> bytes:
        try:
            # Not blocking: the name may be a pipe or a device. Its kind is checked before it is read.
            fd = os.open("/" + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError) as error:
            raise ReadError(f"{path}: {_reason(error)}") from None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ReadError(f"{path}: not a regular file")
            return _at_most(fd, limit, path)
        except OSError as error:
            raise ReadError(f"{path}: {_reason(error)}") from None
        finally:
            os.close(fd)

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir("/" + path), key=natural)
        except (OSError, ValueError):
            return []

    def resolve(self, path: str) -> str | None:
        try:
            return os.path.realpath("/" + path, strict=True)[1:]
        except (OSError, ValueError):
            return None

    def points_to(self, path: str) -> str | None:
        try:
            return posixpath.basename(os.readlink("/" + path)) or None
        except (OSError, ValueError):
            return None

    def output(self, tool: Tool) -> str:
        search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        found = shutil.which(tool.command[0], path=search)
        if found is None:
            raise ReadError(f"{tool.command[0]}: not installed")
        try:
            status, printed, complaint = _run([found, *tool.command[1:]], {**os.environ, "PATH": search, "LC_ALL": "C"})
        except subprocess.TimeoutExpired:
            raise ReadError(f"{tool.command[0]} {tool.of}: no answer in {_TOOL_SECONDS:.0f} s") from None
        except OSError as error:
            raise ReadError(f"{tool.command[0]}: {_reason(error)}") from None
        # smartctl's status also reports the drive's health: output counts, whatever the status.
        if printed.strip() and (status == 0 or tool.command[0] == "smartctl"):
            if len(printed) > LONG:
                raise ReadError(f"{tool.command[0]} {tool.of}: its output is longer than {LONG} bytes")
            return printed.decode(errors="replace")
        said = (complaint or printed).decode(errors="replace").strip().splitlines()
        text = plain(said[-1]) if said else "prints nothing"
        raise ReadError(f"{tool.command[0]} {tool.of}: {text or 'failed without a message'}")


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, bytes, bytes]:
    """A command's status and output. Raises `subprocess.TimeoutExpired`."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        printed, complaint = process.communicate(timeout=_TOOL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # In an uninterruptible wait (a drive or pool that is gone) it cannot be killed: it is left behind.
            process.wait(_LAST_SECONDS)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        raise
    return process.returncode, printed, complaint


def running() -> Tree:
    """This machine."""
    return LiveTree()


class MemoryTree:
    """A tree in memory: files and links by path. Only the size of too long files is known."""

    live = False

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.too_long: set[str] = set()
        self.links: dict[str, str] = {}
        self._folders: dict[str, set[str]] = {"": set()}

    def add(self, path: str, content: bytes) -> None:
        """A regular file."""
        self.files[path] = content
        self._enter(path)

    def add_link(self, path: str, target: str) -> None:
        """Add a symbolic link, as text."""
        self.links[path] = target
        self._enter(path)

    def add_folder(self, path: str) -> None:
        """Add a folder, perhaps empty."""
        if path not in self._folders:
            self._folders[path] = set()
            self._enter(path)

    def add_too_long(self, path: str) -> None:
        """Add a file that exists but was not read."""
        self.too_long.add(path)
        self._enter(path)

    def _enter(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            known = self._folders.setdefault(folder, set())
            if name in known:
                return
            known.add(name)
            path = folder

    def entries(self) -> Iterator[tuple[str, bytes | None, str | None]]:
        """All paths in order: with content, or the link's target, or neither (a folder)."""
        for path in sorted({*self.files, *self.links, *self._folders} - {""}):
            yield path, self.files.get(path), self.links.get(path)

    def read(self, path: str, limit: int = SHORT) -> bytes:
        found = self.resolve(path)
        if found is None:
            raise ReadError(f"{path}: not in the capture")
        if found in self.too_long:
            raise ReadError(f"{path}: longer than {limit} bytes")
        content = self.files.get(found)
        if content is None:
            raise ReadError(f"{path}: not a regular file")
        if len(content) > limit:
            raise ReadError(f"{path}: longer than {limit} bytes")
        return content

    def names(self, path: str) -> list[str]:
        found = self.resolve(path)
        return sorted(self._folders.get(found, ()), key=natural) if found is not None else []

    def resolve(self, path: str) -> str | None:
        # Component by component, as in the kernel; `..` stops at the root, and a link that begins with a slash begins
        # at this root, so no path leads out.
        pending = [part for part in path.split("/") if part not in ("", ".")][::-1]
        at, links = "", 0
        while pending:
            part = pending.pop()
            if part == "..":
                at = posixpath.dirname(at)
                continue
            step = f"{at}/{part}" if at else part
            target = self.links.get(step)
            if target is None:
                if part not in self._folders.get(at, ()):
                    return None
                at = step
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            if target.startswith("/"):
                at = ""
            pending.extend([part for part in target.split("/") if part not in ("", ".")][::-1])
        return at

    def points_to(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        found = self.resolve(folder)
        target = self.links.get(f"{found}/{name}" if found else name)
        return posixpath.basename(target.rstrip("/")) or None if target is not None else None

    def output(self, tool: Tool) -> str:
        try:
            return self.read(tool.path, LONG).decode(errors="replace")
        except ReadError as missing:
            try:
                why = plain(self.read(tool.why_path).decode(errors="replace"))
            except ReadError:
                why = ""
            raise ReadError(why or str(missing)) from None


class RecordingTree:
    """The running machine, which keeps everything that is read as a capture with the same answers."""

    live = True

    def __init__(self, source: Tree) -> None:
        self._source = source
        self._once: dict[str, bytes] = {}
        self._listed: dict[str, list[str]] = {}
        self._resolved: dict[str, str | None] = {}
        self.held = MemoryTree()

    def read(self, path: str, limit: int = SHORT) -> bytes:
        # Read once, so that the capture agrees with the inspection even if the machine changes meanwhile.
        content = self._once.get(path)
        if content is None:
            content = self._once[path] = self._source.read(path, limit)
            self.held.add(self._keep_links(path), content)
        return content

    def names(self, path: str) -> list[str]:
        if path in self._listed:
            return self._listed[path]
        names = self._listed[path] = self._source.names(path)
        if names or self._source.resolve(path) is not None:
            folder = self._keep_links(path)
            self.held.add_folder(folder)
            for name in names:
                self._keep_entry(f"{folder}/{name}")
        return names

    def resolve(self, path: str) -> str | None:
        if path in self._resolved:  # a device that has gone meanwhile stays what it was
            return self._resolved[path]
        found = self._resolved[path] = self._source.resolve(path)
        if found is not None:
            kept = self._keep_links(path)
            if kept not in self.held.files:
                self._keep_entry(kept)
        return found

    def points_to(self, path: str) -> str | None:
        name = self._source.points_to(path)
        if name is not None:
            self._keep_links(posixpath.dirname(path))
            self._keep_entry(path)
        return name

    def output(self, tool: Tool) -> str:
        try:
            text = self._source.output(tool)
        except ReadError as missing:
            self.held.add(tool.why_path, f"{missing}\n".encode())
            raise
        self.held.add(tool.path, text.encode(errors="replace"))
        return text

    def _keep_entry(self, path: str) -> None:
        """Keep an entry of a folder: a link as a link; a file without its content until that is read."""
        if (target := _link_at(path)) is not None:
            self.held.add_link(path, target)
        elif os.path.isdir("/" + path):
            self.held.add_folder(path)
        elif path not in self.held.files:
            self.held.add(path, b"")

    def _keep_links(self, path: str) -> str:
        """Keep the links on the way. Returns the path without them."""
        at = ""
        for _ in range(_MOST_LINKS):
            parts = path.split("/")
            for count in range(1, len(parts) + 1):
                at = "/".join(parts[:count])
                if (target := _link_at(at)) is not None:
                    self.held.add_link(at, target)
                    folder = posixpath.dirname("/" + at)
                    path = posixpath.normpath(posixpath.join(folder, target, *parts[count:])).lstrip("/")
                    break
            else:
                return path
        return path


def _link_at(path: str) -> str | None:
    """Target of a link; None: not a link, or gone."""
    try:
        return os.readlink("/" + path)
    except (OSError, ValueError):
        return None


def _at_most(fd: int, limit: int, path: str) -> bytes:
    parts, left = [], limit + 1
    while left > 0 and (part := os.read(fd, min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise ReadError(f"{path}: longer than {limit} bytes")
    return b"".join(parts)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "not there"
    if isinstance(error, PermissionError):
        return "no permission to read it; try as root"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]


def natural(name: str) -> tuple[int, str]:
    """Sort key: sda, sdb, ..., sdz, sdaa; loop2 before loop10."""
    return len(name), name


def plain(text: str) -> str:
    """One line without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text[:1000]).split())
