"""Programs that disturb disks: those that moved data in the window, and programs known to use disks heavily.

The kernel counts the bytes each process moves from and to block devices (`/proc/PID/io`, proc_pid_io(5)), but not which
device. The process's open files show if it uses the target's stack. Only root can see processes of other users.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spindle.base.words import listed
from spindle.host.devices import HERE, Device, DevNumber, Machine, text_of
from spindle.host.number import whole_number
from spindle.host.stack import above

from .disks import OTHER_BYTES_PER_S
from .finding import ConditionFinding

_KNOWN: tuple[tuple[str, str], ...] = (
    (r"updatedb(\..*)?|locate", "reads every folder for an index of file names"),
    (r"mandb", "reads every manual page for an index"),
    (r"fstrim", "discards the free space of file systems"),
    (r"mdcheck|checkarray", "starts checks of md arrays"),
    (r"e2scrub(_all)?|xfs_scrub(_all)?|xfs_fsr", "reads or moves a whole file system"),
    (r"e2fsck|fsck(\..*)?|xfs_repair|badblocks", "reads a whole file system or disk"),
    (r"mkfs(\..*)?|mke2fs", "makes a file system"),
    (r"apt|apt-get|aptitude|dpkg|dnf5?|yum|zypper|pacman|rpm|unattended-upgr", "installs packages"),
    (r"rsync|rsnapshot|borg|restic|duplicity|rclone|kopia|dump|xfsdump", "copies or backs up files"),
    (
        r"pg_dump(all)?|pg_basebackup|mysqldump|mariadb-dump|mariadb-backup|mariabackup|xtrabackup",
        "backs up a database",
    ),
    (r"clamscan|aide|tripwire|rkhunter|chkrootkit|debsums", "reads every file"),
)
"""Name (as `ps -o comm` prints it, cut to 15 characters) -> what the program does to disks."""
_ONLY_WITH = {
    "btrfs": (re.compile(r"\b(scrub|balance|defrag\w*|replace)\b"), "goes through a whole file system"),
    "zpool": (re.compile(r"\b(scrub|resilver|trim)\b"), "goes through a whole pool"),
}
"""Programs that count with certain arguments only."""
_WAITS = re.compile(r"--wait-for-signal|--daemon\b")
"""Arguments of a program that only waits (unattended-upgrade-shutdown, rsync as a server)."""
_NAMED = 3
"""Number of programs that a message names; it counts the rest."""


@dataclass(frozen=True)
class Process:
    """Bytes that one process has moved from and to block devices since it began."""

    pid: int
    name: str
    started: str
    """Start time in ticks since boot; distinguishes processes that get the same number."""
    parent: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Processes:
    """All processes at one moment."""

    seen: dict[int, Process]
    hidden: int
    """Number of processes whose I/O this user has no right to see."""


@dataclass(frozen=True)
class Job:
    """A process that used disks between two moments, or a program known to use them heavily."""

    pid: int
    name: str
    read_bytes: int
    write_bytes: int
    bytes_per_s: float
    on_target: bool
    """It has a file open on the target's stack."""
    does: str
    """Effect of such a program on disks; empty: not known."""

    @property
    def disturbs(self) -> bool:
        """True if it is known to disturb disks, or did so in the window."""
        return bool(self.does) or (self.on_target and self.bytes_per_s > OTHER_BYTES_PER_S)

    def __str__(self) -> str:
        moved = f", {self.bytes_per_s / 1e6:.1f} MB/s" if self.bytes_per_s > 0 else ""
        return f"{self.name} (process {self.pid}{moved}{f'; {self.does}' if self.does else ''})"


def processes(machine: Machine = HERE) -> Processes:
    """All processes but this one."""
    seen: dict[int, Process] = {}
    hidden = 0
    for folder in _folders(machine):
        pid = int(folder.name)
        status = text_of(folder / "stat")
        if status is None or pid == os.getpid():
            continue
        # pid (name) state ...: the name may contain blanks and brackets.
        name = status.partition("(")[2].rpartition(")")[0]
        fields = status.rpartition(")")[2].split()
        if len(fields) < 20 or fields[0] in "ZX":
            continue
        counted = _counted(text_of(folder / "io"))
        hidden += counted is None and (folder / "io").exists()  # False for a process that has just ended
        parent = whole_number(fields[1]) or 0
        seen[pid] = Process(pid, name, fields[19], parent, *(counted or (0, 0)))
    return Processes(seen, hidden)


def _folders(machine: Machine) -> Iterable[Path]:
    try:
        names = os.listdir(machine.proc)
    except OSError:
        return []
    return [machine.proc / name for name in names if re.fullmatch(r"[0-9]{1,9}", name)]


def _counted(text: str | None) -> tuple[int, int] | None:
    values: dict[str, int | None] = {}
    for line in (text or "").splitlines():
        name, _, value = line.partition(":")
        values[name] = whole_number(value.strip())
    read, written = values.get("read_bytes"), values.get("write_bytes")
    if read is None or written is None:
        return None
    return read, max(0, written - (values.get("cancelled_write_bytes") or 0))


def between(
    before: Processes, after: Processes, seconds: float, devices: Iterable[Device], machine: Machine = HERE
) -> list[Job]:
    """Processes that moved data meanwhile, and those known to disturb disks; the busiest first."""
    numbers: set[DevNumber] | None = None
    found = []
    inherited = _inherited(before, after)
    for pid, now in after.seen.items():
        then = before.seen.get(pid)
        if then is not None and then.started != now.started:
            then = None
        old_read, old_written = inherited.get(pid, (0, 0))
        read = max(0, now.read_bytes - (then.read_bytes if then else 0) - old_read)
        written = max(0, now.write_bytes - (then.write_bytes if then else 0) - old_written)
        does = _does(now.name, machine.proc / str(pid))
        if not (read or written or does):
            continue
        if numbers is None:
            numbers = _numbers_of_stack(devices, machine)
        on_target = bool(numbers) and _has_open(machine.proc / str(pid) / "fd", numbers)
        found.append(Job(pid, now.name, read, written, (read + written) / seconds, on_target, does))
    return sorted(found, key=lambda job: (-job.bytes_per_s, job.pid))


def _inherited(before: Processes, after: Processes) -> dict[int, tuple[int, int]]:
    """Bytes that processes which have ended since had moved *before*. The parent that waits for a child inherits the
    child's whole account (kernel/exit.c, wait_task_zombie), not just the part since then."""
    found: dict[int, tuple[int, int]] = {}

    def alive(process: Process) -> bool:
        now = after.seen.get(process.pid)
        return now is not None and now.started == process.started

    for process in before.seen.values():
        if alive(process):
            continue
        heir = before.seen.get(process.parent)
        for _ in range(len(before.seen)):
            if heir is None or alive(heir):
                break
            heir = before.seen.get(heir.parent)
        if heir is not None:
            read, written = found.get(heir.pid, (0, 0))
            found[heir.pid] = (read + process.read_bytes, written + process.write_bytes)
    return found


def _does(name: str, folder: Path) -> str:
    does = next((does for pattern, does in _KNOWN if re.fullmatch(pattern, name)), "")
    only = _ONLY_WITH.get(name)
    if not does and only is None:
        return ""
    arguments = (text_of(folder / "cmdline") or "").replace("\0", " ")
    if only is not None:
        return only[1] if only[0].search(arguments) else ""
    return "" if _WAITS.search(arguments) else does


def _numbers_of_stack(devices: Iterable[Device], machine: Machine) -> set[DevNumber]:
    """Numbers of the devices and of all devices built on them."""
    return {one.dev for device in devices for one in (device, *above(device, machine))}


def _has_open(folder: Path, numbers: set[DevNumber]) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            status = os.stat(folder / name)
        except OSError:
            continue
        number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
        if DevNumber.of(number) in numbers:
            return True
    return False


def jobs(found: list[Job], when: str = "before the run", only_known: bool = False) -> ConditionFinding:
    """The finding. `only_known`: programs that only moved data are left to the finding on the devices' traffic."""
    loud = [job for job in found if job.does or (job.disturbs and not only_known)]
    evidence = {"jobs": float(len(loud)), "bytes_per_s": sum(job.bytes_per_s for job in loud)}
    if not loud:
        return ConditionFinding("jobs", "ok", "no background job that disturbs disks was seen", evidence)
    evidence["pid"] = float(loud[0].pid)
    verb = "was" if len(loud) == 1 else "were"
    return ConditionFinding("jobs", "warn", f"{_listed(loud)} {verb} at work {when}", evidence)


def suspects(found: list[Job]) -> str:
    """Programs that may cause traffic on the target: those with a file open there, else all that moved data."""
    moving = [job for job in found if job.bytes_per_s > 0]
    near = [job for job in moving if job.on_target] or moving
    return f"seen moving data: {_listed(near)}" if near else ""


def _listed(found: list[Job]) -> str:
    more = len(found) - _NAMED
    return listed([str(job) for job in found[:_NAMED]] + ([f"{more} more"] if more > 0 else []))


def to_dicts(found: list[Job], most: int = 10) -> list[dict[str, object]]:
    """The JSON of the result record."""
    return [
        {
            "pid": job.pid,
            "name": job.name,
            "read_bytes": job.read_bytes,
            "write_bytes": job.write_bytes,
            "on_target": job.on_target,
        }
        for job in found[:most]
    ]
