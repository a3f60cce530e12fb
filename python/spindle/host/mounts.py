"""Mounts, here and in other mount namespaces, and swap areas."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .devices import HERE, DevNumber, Machine, text_of
from .number import signed_number, whole_number


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo (proc(5))."""

    mount_id: int
    dev: DevNumber
    root: str
    point: str
    options: str
    fs_type: str
    source: str
    super_options: str
    where: str = ""
    """Empty for this namespace; otherwise its owner, for people: 'process 123 (dockerd)'."""
    root_path: Path = Path("/")
    """Root of that namespace's paths, seen from here."""

    def __str__(self) -> str:
        return f"{self.point} (in the mount namespace of {self.where})" if self.where else self.point


@dataclass(frozen=True)
class Swap:
    """One line of /proc/swaps; `dev` for a device, `file` (file system, inode) for a swap file."""

    path: str
    dev: DevNumber | None
    file: tuple[DevNumber, int] | None
    used_bytes: int
    size_bytes: int = 0
    priority: int | None = None
    """Below 0 if the kernel chose it."""


def unescape(text: str) -> str:
    """Decode a path, in which the kernel writes blanks, tabs, newlines and backslashes as octal."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def parse_mountinfo(text: str, where: str = "", root_path: Path = Path("/")) -> list[Mount]:
    """The mounts of one mountinfo file."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or len(tail) < 3 or not _sound(fields[0], fields[2]):
            continue
        mounts.append(
            Mount(
                mount_id=int(fields[0]),
                dev=DevNumber.parse(fields[2]),
                root=unescape(fields[3]),
                point=unescape(fields[4]),
                options=fields[5],
                fs_type=tail[0],
                source=unescape(tail[1]),
                super_options=tail[2],
                where=where,
                root_path=root_path,
            )
        )
    return mounts


def _sound(mount_id: str, dev: str) -> bool:
    """True if the numbers are valid: a captured file may contain anything."""
    return re.fullmatch(r"[0-9]{1,18} [0-9]{1,9}:[0-9]{1,9}", f"{mount_id} {dev}") is not None


def own_mounts(machine: Machine) -> list[Mount]:
    """The mounts that this process sees."""
    return parse_mountinfo(text_of(machine.proc / "self/mountinfo") or "")


def all_mounts(machine: Machine) -> list[Mount]:
    """The mounts here and in all other mount namespaces that this user may read, each once."""
    mounts = own_mounts(machine)
    seen = {_namespace(machine.proc / "self")}
    for process in _processes(machine):
        namespace = _namespace(process)
        if namespace is None or namespace in seen:
            continue
        text = text_of(process / "mountinfo")
        if text is None:
            continue
        seen.add(namespace)
        where = f"process {process.name} ({text_of(process / 'comm') or '?'})"
        mounts.extend(parse_mountinfo(text, where, process / "root"))
    return mounts


def mount_of(path: str | os.PathLike[str] | int, machine: Machine = HERE) -> Mount | None:
    """The mount of a path or an open descriptor."""
    fd = path if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        text = text_of(Path(f"/proc/self/fdinfo/{fd}")) or ""
    finally:
        if fd != path:
            os.close(fd)
    found = re.search(r"^mnt_id:\s*(\d+)$", text, re.M)
    wanted = int(found[1]) if found else None
    return next((mount for mount in own_mounts(machine) if mount.mount_id == wanted), None)


def _processes(machine: Machine) -> Iterator[Path]:
    for entry in sorted((name for name in os.listdir(machine.proc) if name.isdigit()), key=int):
        yield machine.proc / entry


def _namespace(process: Path) -> str | None:
    try:
        return os.readlink(process / "ns/mnt")
    except OSError:
        return None


# Block devices that a file system uses besides the one that mountinfo names:
# XFS log and real-time device, ext4 and reiserfs external journal, bcachefs and f2fs members.
_DEVICE_OPTION = re.compile(r"^(?:logdev|rtdev|journal_path|jdev|device)=(/.*)$")
_NUMBER_OPTION = re.compile(r"^journal_dev=(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,18})$")


def devices_of(mount: Mount, machine: Machine) -> set[DevNumber]:
    """All block devices that a mounted file system is known to use."""
    found = {mount.dev} if mount.dev.major != 0 else set()
    paths = [part for part in _split_source(mount.source) if part.startswith("/")]
    for option in mount.super_options.split(","):
        if named := _DEVICE_OPTION.match(unescape(option)):
            paths.append(named[1])
        elif numbered := _NUMBER_OPTION.match(option):
            number = int(numbered[1], 0)
            found.add(DevNumber(os.major(number), os.minor(number)))
    found |= {dev for dev in (_number_of(mount.root_path, path) for path in paths) if dev is not None}
    if mount.fs_type == "btrfs":
        for members in btrfs_members(machine).values():
            if found & members:
                found |= members
    return found


def _split_source(source: str) -> list[str]:
    """Split the source: bcachefs names its members as /dev/a:/dev/b."""
    return re.split(r":(?=/)", source)


def _number_of(root: Path, path: str) -> DevNumber | None:
    """The device that a path names in its namespace, or else here."""
    for candidate in (f"{root}/{path.lstrip('/')}", path):
        try:
            found = os.stat(candidate)
        except OSError:
            continue
        if stat.S_ISBLK(found.st_mode):
            return DevNumber.of(found.st_rdev)
    return None


def btrfs_members(machine: Machine) -> dict[str, set[DevNumber]]:
    """Members of each mounted btrfs by its UUID; mountinfo names only one of them."""
    members: dict[str, set[DevNumber]] = {}
    for folder in (machine.sys / "fs/btrfs").glob("*/devices"):
        numbers = (DevNumber.read(entry / "dev") for entry in folder.iterdir())
        members[folder.parent.name] = {number for number in numbers if number is not None}
    return members


def swaps(machine: Machine) -> list[Swap]:
    """All swap areas in use."""
    found = []
    for line in (text_of(machine.proc / "swaps") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) < 5:
            continue
        path = unescape(fields[0]).removesuffix(" (deleted)")
        dev, file = None, None
        try:
            status = os.stat(path)
            if stat.S_ISBLK(status.st_mode):
                dev = DevNumber.of(status.st_rdev)
            else:
                file = (DevNumber.of(status.st_dev), status.st_ino)
        except OSError:
            # The path may lead nowhere in this namespace; the kernel's name for the device still works.
            dev = DevNumber.read(machine.sys / "class/block" / Path(path).name / "dev")
        total, used = whole_number(fields[2]) or 0, whole_number(fields[3]) or 0
        found.append(Swap(path, dev, file, used * 1024, total * 1024, signed_number(fields[4])))
    return found
