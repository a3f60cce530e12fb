"""A file system made anew on a device that the user gave to be erased, for one trial, and taken away again.

The guard decides whether the device may be written at all, with the same consent as `spindle run`. The file system gets
a UUID of ours, which is noted before it is made: what is removed later, after kill -9 as well, is what carries it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spindle import _core
from spindle.campaign.leftovers import Note, Scratch, StillThere, noted
from spindle.campaign.plan import FileSystem
from spindle.host.guard import StreamAccess
from spindle.host.mounts import mount_of
from spindle.host.signals import held_back
from spindle.run.bench import Consent
from spindle.run.errors import RunFailed, Usage

_UUID = {
    "ext2": ("-F", "-q", "-U"),
    "ext3": ("-F", "-q", "-U"),
    "ext4": ("-F", "-q", "-U"),
    "xfs": ("-f", "-q", "-m"),
    "btrfs": ("-f", "-q", "-U"),
}
"""Type -> arguments of its mkfs; the last one sets the UUID. They are told not to ask: the guard has."""
_BLOCK = 1 << 20
"""Test files are so many bytes long, or a multiple of it."""


def check_tools(kind: str) -> None:
    """Raises Usage."""
    for tool in (f"mkfs.{kind}", "mount", "umount", "wipefs", "blkid"):
        if _tool(tool) is None:
            raise Usage(f"filesystem.type: {kind}: {tool} is not installed")


def _tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


@contextmanager
def made(campaign: str, device: str, wanted: FileSystem, consent: Consent) -> Iterator[Path]:
    """The folder where it is mounted. Raises Refused, TargetError or RunFailed."""
    with consent.opened(device, [StreamAccess(write=True)]):
        pass  # it may be erased; mkfs itself refuses one that somebody has mounted since
    folder = Path(tempfile.mkdtemp(prefix="spindle-campaign-"))
    scratch = Scratch(device, str(uuid.uuid4()), str(folder))
    with noted(campaign, "scratch", Note(scratch=scratch)):
        try:
            with held_back():
                _make(scratch, wanted)
            yield folder
        finally:
            with held_back():
                if not _gone(scratch):
                    raise StillThere(
                        f"{device}: its file system cannot be unmounted from {folder}; unmount it, then resume"
                    )


def _make(scratch: Scratch, wanted: FileSystem) -> None:
    *quiet, sets = _UUID[wanted.type]
    value = f"uuid={scratch.uuid}" if wanted.type == "xfs" else scratch.uuid
    _run(f"mkfs.{wanted.type}", *quiet, sets, value, *wanted.mkfs, scratch.device)
    options = ("-o", wanted.mount) if wanted.mount else ()
    _run("mount", "-t", wanted.type, *options, scratch.device, scratch.mount)


def remove(scratch: Scratch) -> bool:
    """After a kill: unmount and wipe what carries our UUID. Whether there was anything."""
    there = _mounted(scratch) or _carries(scratch)
    if there and not _gone(scratch):
        raise RunFailed(
            f"{scratch.device}: its file system cannot be unmounted from {scratch.mount}; unmount it, then resume"
        )
    _rmdir(scratch.mount)
    return there


def _gone(scratch: Scratch) -> bool:
    if _mounted(scratch) and not _try("umount", scratch.mount):
        return False
    if _carries(scratch) and not _try("wipefs", "--all", "--quiet", scratch.device):
        return False
    _rmdir(scratch.mount)
    return True


def _mounted(scratch: Scratch) -> bool:
    try:
        found = mount_of(scratch.mount)
    except OSError:
        return False
    return found is not None and found.point == scratch.mount


def _carries(scratch: Scratch) -> bool:
    tool = _tool("blkid")
    done = subprocess.run(
        [tool or "blkid", "-p", "-s", "UUID", "-o", "value", scratch.device],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip().lower() == scratch.uuid


def _rmdir(folder: str) -> None:
    with suppress(OSError):  # gone already, or a file system that somebody else has mounted there
        Path(folder).rmdir()


def _try(tool: str, *arguments: str) -> bool:
    done = subprocess.run([_tool(tool) or tool, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


def _run(tool: str, *arguments: str) -> None:
    done = subprocess.run(
        [_tool(tool) or tool, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise RunFailed(f"{tool}: {said[-1]}")


def file_bytes(folder: Path, size: str) -> int:
    """Of a test file: a size, or a share of what is free."""
    share = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]+)?)\s*%", size)
    if share is None:
        return _core.parse_size(size)
    status = os.statvfs(folder)
    return int(float(share[1]) / 100 * status.f_bavail * status.f_frsize) // _BLOCK * _BLOCK
