"""The system in the lab: programs of this system, and the first program, in one archive.

For each boot a small archive follows it, with what is to be done: the kernel reads both.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from . import cache
from .cpio import Archive
from .errors import LabError, LabMissing
from .files import place
from .programs import IN_THE_LAB, find, libraries, require

_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links to those below usr."""
_EMPTY = ("proc", "sys", "dev", "run", "tmp", "root", "mnt", "etc")
_OTHER_NAMES = {
    "usr/sbin/mkfs.ext2": "mke2fs",
    "usr/sbin/mkfs.ext3": "mke2fs",
    "usr/sbin/mkfs.ext4": "mke2fs",
    "usr/sbin/fsck.ext4": "e2fsck",
}
_CONFIGURATION = (Path("/etc/mke2fs.conf"),)
"""Files that programs read."""
_FIRST = "usr/local/bin"
"""The first folder of the lab's PATH."""
COMMAND = "lab/command"
"""The script with the command; without it the lab gives a prompt."""


def build() -> Path:
    """Make the archive, unless it is there. Raises LabMissing."""
    require(IN_THE_LAB)
    data = _base().to_bytes()
    path = cache.archive(hashlib.sha256(data).hexdigest()[:12])
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        place(path, data)
        for other in path.parent.glob("*.cpio"):
            if other != path:
                other.unlink(missing_ok=True)
    return path


def current() -> Path:
    """The archive in the cache. Raises LabMissing."""
    found = sorted((cache.folder() / "initramfs").glob("*.cpio"))
    if not found:
        raise LabMissing(f"the lab's programs are not collected; {cache.BUILD} collects them")
    return found[-1]


def _base() -> Archive:
    archive = Archive()
    for name in _MERGED:
        archive.link(name, f"usr/{name}")
    for name in _EMPTY:
        archive.folder(name)
    archive.device("dev/console", 5, 1)
    archive.file("init", files(__package__).joinpath("image/init.sh").read_bytes())
    for name in IN_THE_LAB:
        add_program(archive, name)
    for name, target in _OTHER_NAMES.items():
        archive.link(name, target)
    for path in _CONFIGURATION:
        if path.is_file():
            archive.file(_inside(path), path.read_bytes(), 0o644)
    _add_busybox_names(archive)
    return archive


def add_program(archive: Archive, name: str, folder: str | None = None) -> str:
    """Add a program of this system and its libraries, in the folder where it is here, or in another; its path in the
    lab. Raises LabMissing.
    """
    path = find(name)
    if path is None:
        raise LabMissing(f"{name}: no such program, neither here nor in the lab")
    inside = _inside(path) if folder is None else f"{folder}/{path.name}"
    archive.file(inside, path.read_bytes())
    for library in libraries(path):
        archive.file(_inside(library), library.read_bytes())
    return f"/{inside}"


def _inside(path: Path) -> str:
    """The name in the archive: /bin and /lib are links to those below /usr."""
    name = path.absolute().as_posix().removeprefix("/")
    return f"usr/{name}" if name.split("/")[0] in _MERGED else name


def _add_busybox_names(archive: Archive) -> None:
    busybox = find("busybox")
    if busybox is None:
        raise LabMissing("busybox: no such program")
    said = subprocess.run(["busybox", "--list-full"], executable=busybox, capture_output=True, text=True, check=False)
    if said.returncode or "usr/bin/env" not in said.stdout:
        raise LabError(f"{busybox} lists no programs; install the package busybox-static again")
    for line in said.stdout.splitlines():
        name = _inside(Path("/", line))
        if f"usr/sbin/{Path(line).name}" not in archive and f"usr/bin/{Path(line).name}" not in archive:
            archive.link(name, f"/{_inside(busybox)}")


def for_command(command: Sequence[str], programs: Sequence[str] = (), first: str = "") -> bytes:
    """The archive of one boot: commands of the shell that come `first`, a command line, its program if the lab lacks
    it, and more programs of this system, each a name or a path; they come before the lab's own. Raises LabMissing.
    """
    archive = Archive()
    for name in programs:
        add_program(archive, name, _FIRST)
    program, *rest = command
    if "/" in program and Path(program).is_file():
        program = add_program(archive, program, _FIRST)
    elif "/" not in program and not _has(program) and f"{_FIRST}/{program}" not in archive:
        program = add_program(archive, program)
    archive.file(COMMAND, f"{first}exec {shlex.join([program, *rest])}\n".encode(), 0o644)
    return archive.to_bytes()


def for_script(script: str, files: Mapping[str, bytes], programs: Sequence[str]) -> bytes:
    """The archive of one boot: a script of the shell, the files that it reads, and programs of this system. Raises
    LabMissing.
    """
    archive = Archive()
    for name in programs:
        add_program(archive, name, _FIRST)
    for name, data in files.items():
        archive.file(name, data, 0o644)
    archive.file(COMMAND, script.encode(), 0o644)
    return archive.to_bytes()


def for_shell(columns: int, rows: int, first: str = "") -> bytes:
    """The archive of a boot with a prompt at a terminal of this size, after these commands."""
    archive = Archive()
    archive.file("lab/terminal", f"{first}stty rows {rows} cols {columns}\n".encode(), 0o644)
    return archive.to_bytes()


def _has(program: str) -> bool:
    """True if the lab has the program: shell built-ins, busybox, and the list."""
    busybox = find("busybox")
    if busybox is None:
        return program in IN_THE_LAB
    said = subprocess.run(["busybox", "--list"], executable=busybox, capture_output=True, text=True, check=False)
    return program in {*IN_THE_LAB, *(Path(name).name for name in _OTHER_NAMES), *said.stdout.split()}
