"""Captures: the files and tool outputs of an inspection, as regular files and links in a tar or a folder.

A capture contains the files that an inspection of everything reads, and the rest of the folders with settings. It is
read into memory, with limits on count and size; device nodes, pipes and hard links are skipped.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import stat
import tarfile
from dataclasses import dataclass
from typing import IO

import msgspec

from spindle.host.errors import NoCapture, TargetError, reason

from .gather import inspect_stack
from .identify import identity, with_serial
from .model import Inventory
from .nodes import Nodes
from .tree import LONG, LiveTree, MemoryTree, ReadError, RecordingTree, Tree

MARK = "spindle-capture.json"
_WANTED = ("sys", "proc", "run/udev/data", "tools", MARK)
_MOST_ENTRIES = 300_000
_MOST_BYTES = 256 << 20
_SETTINGS = ("queue", "queue/iosched", "md", "md/bitmap", "bcache", "loop", "dm")
"""Folders of a device of which a capture keeps all files."""


class Manifest(msgspec.Struct, kw_only=True):
    """The capture's description of itself."""

    format: int = 1
    kind: str = "capture"
    spindle: str | None = None
    kernel: str | None = None
    serials_masked: bool = False


@dataclass(frozen=True)
class Capture:
    """A new capture, and the inventory of the same reading."""

    held: MemoryTree
    inventory: Inventory

    def tar(self, compressed: bool) -> bytes:
        """The capture as a tar; two runs differ only in the values read."""
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w:gz" if compressed else "w", format=tarfile.PAX_FORMAT) as tar:
            for path, content, link in self.held.entries():
                entry = tarfile.TarInfo(path)
                entry.mode = 0o644
                if link is not None:
                    entry.type, entry.linkname = tarfile.SYMTYPE, link
                elif content is None:
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                else:
                    entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content) if content is not None and link is None else None)
        return target.getvalue()


def capture(target: str | None, mask_serials: bool, version: str | None = None) -> Capture:
    """Inspect this machine and keep everything that was read."""
    recording = RecordingTree(LiveTree())
    inventory = inspect_stack(target, recording)
    _keep_settings(recording, inventory)
    held = _masked(recording.held) if mask_serials else recording.held
    manifest = Manifest(spindle=version, kernel=inventory.kernel, serials_masked=mask_serials)
    held.add(MARK, msgspec.json.encode(manifest) + b"\n")
    return Capture(held, inventory)


def _keep_settings(tree: RecordingTree, inventory: Inventory) -> None:
    nodes = Nodes(tree)
    for device in inventory.devices:
        folder = nodes.folder(device.id)
        for place in _SETTINGS:
            for name in tree.names(f"{folder}/{place}"):
                _keep(tree, f"{folder}/{place}/{name}")
        for name in ("stat", "uevent", "inflight", "removable", "range", "capability"):
            _keep(tree, f"{folder}/{name}")
    for path in ("proc/mdstat", "proc/partitions", "proc/diskstats", "proc/version"):
        _keep(tree, path)


def _keep(tree: RecordingTree, path: str) -> None:
    try:
        tree.read(path, LONG)
    except ReadError:
        return


# --- serial numbers ------------------------------------------------------------------------------------------------

_SHORTEST = 5
"""Shorter texts are not masked: they would also match parts of other words."""
_ATA_WORDS = re.compile(r"/ata_device/[^/]+/id$")
_NUMBERED_NAMES = re.compile(r'("(?:wwn|eui64)"\s*:\s*)\{[^{}]*\}')
"""smartctl writes world-wide names as numbers."""
_SERIAL_FILES = {"serial", "wwid", "eui", "nguid", "sas_address", "subsysnqn"}
_SERIAL_KEYS = re.compile(
    r'"(?:serial_number|SN|serial|id|wwn_id|eui64_id|logical_unit_id|Serial Number|WWN|SAS Address)"\s*:\s*"([^"]+)"'
    r"|^E:ID_(?:SERIAL|SERIAL_SHORT|WWN|WWN_WITH_EXTENSION|SCSI_SERIAL|NVME_SERIAL\w*)=(.+)$",
    re.M,
)


def _masked(held: MemoryTree) -> MemoryTree:
    """Replace each serial number and world-wide name everywhere, also in names, by a mark of the same length. The same
    drive gets the same mark."""
    found = sorted(_serials(held), key=lambda text: (-len(text), text))
    marks = {serial: _mark(at, len(serial)) for at, serial in enumerate(found, 1)}
    pattern = re.compile("|".join(map(re.escape, found))) if found else None

    def mask(text: str) -> str:
        return pattern.sub(lambda match: marks[match[0]], text) if pattern else text

    hidden = MemoryTree()
    for path, content, link in held.entries():
        if link is not None:
            hidden.add_link(mask(path), mask(link))
        elif content is None:
            hidden.add_folder(mask(path))
        elif _ATA_WORDS.search(path):
            words = content.decode(errors="replace")
            found_words = identity(words)
            hidden.add(mask(path), with_serial(words, mask((found_words and found_words.serial) or "")).encode())
        else:
            text = content.decode("latin-1")
            if path.startswith("tools/smartctl/"):
                text = _NUMBERED_NAMES.sub(r"\1{}", text)
            hidden.add(mask(path), mask(text).encode("latin-1"))
    return hidden


def _mark(number: int, length: int) -> str:
    return f"X{number}".ljust(length, "X")[: max(length, len(str(number)) + 1)]


def _serials(held: MemoryTree) -> set[str]:
    found: set[str] = set()
    for path, content, _ in held.entries():
        if not content:
            continue
        text = content.decode("latin-1")
        name = posixpath.basename(path)
        if name in _SERIAL_FILES or (name == "uuid" and "/nvme" in path):
            serial = text.strip("\0 \n")
            found |= {serial, serial.removeprefix("naa."), serial.removeprefix("eui."), serial.removeprefix("0x")}
            found.add(re.split(r"[\s_]+", serial)[-1])  # t10.ATA, model, serial number
        elif _ATA_WORDS.search(path) and (words := identity(text)) is not None:
            found.add(words.serial or "")
        elif name == "vpd_pg80":
            found.add(text[4:].strip("\0 \n"))
        elif path.startswith(("tools/", "run/udev/")):
            found |= {(one or other).strip() for one, other in _SERIAL_KEYS.findall(text)}
    return {text for text in found if len(text) >= _SHORTEST and text.isprintable()}


# --- reading one ---------------------------------------------------------------------------------------------------


def open_capture(path: str) -> Tree:
    """Read a folder, or a tar (compressed or not). Raises `NoCapture`."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            held = _from_folder(path)
        elif stat.S_ISREG(status.st_mode):
            held = _from_tar(path)
        else:
            raise NoCapture(f"{path}: neither a folder nor a file; give a file written with `capture=`")
    except OSError as error:
        raise NoCapture(f"{path}: {reason(error)}; give a folder or a tar written with `capture=`") from None
    except (tarfile.TarError, EOFError, ValueError, UnicodeError) as error:
        raise NoCapture(f"{path}: not a readable tar ({error}); give a file written with `capture=`") from None
    except Exception as error:  # zlib and lzma have errors of their own
        if isinstance(error, TargetError) or type(error).__module__ not in ("zlib", "_lzma", "lzma", "gzip"):
            raise
        raise NoCapture(f"{path}: damaged ({error}); give a file written with `capture=`") from None
    if not held.names("sys"):
        raise NoCapture(f"{path}: has no folder `sys`; give the folder that contains the captured sys and proc")
    return held


class _Limits:
    def __init__(self, path: str) -> None:
        self._path = path
        self._entries = 0
        self._bytes = 0

    def count(self, size: int = 0) -> None:
        self._entries += 1
        self._bytes += size
        if self._entries > _MOST_ENTRIES or self._bytes > _MOST_BYTES:
            raise NoCapture(
                f"{self._path}: more than {_MOST_ENTRIES} files or {_MOST_BYTES >> 20} MiB; this is not a capture"
            )


def _from_folder(root: str) -> MemoryTree:
    held, limits = MemoryTree(), _Limits(root)
    pending = [wanted for wanted in _WANTED if _really_inside(root, wanted)]
    while pending:
        path = pending.pop()
        full = os.path.join(root, path)
        status = os.lstat(full)
        if stat.S_ISLNK(status.st_mode):
            limits.count()
            held.add_link(path, os.readlink(full))
        elif stat.S_ISDIR(status.st_mode):
            limits.count()
            held.add_folder(path)
            with os.scandir(full) as entries:
                pending.extend(f"{path}/{entry.name}" for entry in entries if entry.name.isprintable())
        elif stat.S_ISREG(status.st_mode):
            _add_file(held, limits, path, full)
    return held


def _really_inside(root: str, wanted: str) -> bool:
    """True if it exists and no link is on the way: `run` could be a link to the machine's own."""
    at = root
    for part in wanted.split("/"):
        at = os.path.join(at, part)
        if not os.path.lexists(at) or os.path.islink(at):
            return False
    return True


def _add_file(held: MemoryTree, limits: _Limits, path: str, full: str) -> None:
    try:
        fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            _take(held, limits, path, file)


def _take(held: MemoryTree, limits: _Limits, path: str, file: IO[bytes]) -> None:
    content = file.read(LONG + 1)
    if len(content) > LONG:
        limits.count()
        held.add_too_long(path)
    else:
        limits.count(len(content))
        held.add(path, content)


def _inside(name: str) -> str | None:
    """Path of an entry in the capture, which may be in a folder of its own; None if it is not part of one."""
    path = posixpath.normpath("/" + name).lstrip("/")
    if not path.isprintable():  # no kernel file has such a name, and it could not be printed
        return None
    for candidate in (path, path.partition("/")[2]):
        if any(candidate == wanted or candidate.startswith(wanted + "/") for wanted in _WANTED):
            return candidate
    return None


def is_capture(file: IO[bytes]) -> bool:
    """True if a tar contains the mark of a capture."""
    try:
        with tarfile.open(fileobj=file, mode="r|*") as tar:
            limits = _Limits("")
            for entry in tar:
                limits.count(entry.size)
                if entry.name == MARK:
                    return True
    except Exception:  # each way to pack has errors of its own
        return False
    return False


def _from_tar(path: str) -> MemoryTree:
    held, limits = MemoryTree(), _Limits(path)
    with tarfile.open(path, mode="r|*") as tar:
        for entry in tar:
            limits.count()
            name = _inside(entry.name)
            if name is None:
                continue
            if entry.issym():
                held.add_link(name, entry.linkname)
            elif entry.isdir():
                held.add_folder(name)
            elif entry.isreg() and (file := tar.extractfile(entry)) is not None:
                _take(held, limits, name, file)
    return held
