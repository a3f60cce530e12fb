"""Scratch file systems: made for one trial on a device that the user gave to be erased, and removed afterwards.

The guard decides if the device may be written, with the same consent as `spindle run`. The device then stays open, and
tools get a node that always refers to it (`host.held`). The file system gets a UUID that is noted before it is made:
later removal, also after kill -9, only removes what has this UUID.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spindle import _core
from spindle.campaign.leftovers import Note, Scratch, noted, scratches
from spindle.campaign.plan import FileSystem
from spindle.host.busy import unmount
from spindle.host.devices import HERE, DevNumber, by_number
from spindle.host.errors import DeviceHeld, TargetError, reason
from spindle.host.held import PRIVATE, HeldDevice, remove_node
from spindle.host.mounts import Mount, devices_of, mount_of
from spindle.host.patience import ResourceBusy, patiently
from spindle.host.signals import held_back
from spindle.host.signatures import UnknownContent, uuid_of
from spindle.run.consent import Consent
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch

_UUID = {
    "ext2": ("-F", "-q", "-U"),
    "ext3": ("-F", "-q", "-U"),
    "ext4": ("-F", "-q", "-U"),
    "xfs": ("-f", "-q", "-m"),
    "btrfs": ("-f", "-q", "-U"),
}
"""Type -> arguments of its mkfs; the last one sets the UUID. They disable questions: the guard has asked."""
_BLOCK = 1 << 20
"""Test files have this size, or a multiple of it."""


def check_tools(kind: str) -> None:
    """Raise Usage if a tool is missing."""
    for tool in (f"mkfs.{kind}", "mount", "wipefs", "blkid"):
        if _tool(tool) is None:
            raise Usage(f"filesystem.type: {kind}: {tool} is not installed")


def _tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


@contextmanager
def made(campaign: str, device: str, wanted: FileSystem, consent: Consent, watch: Watch) -> Iterator[Path]:
    """The folder where it is mounted. Raises Refusal, TargetError or RunFailed.

    A file system that cannot be unmounted afterwards does not invalidate a figure: it is reported, noted, and removed
    before the device is used again or at the end (`clear`).
    """
    clear(campaign, device)
    with ExitStack() as stack:
        held = stack.enter_context(consent.held(device))
        identity = str(uuid.uuid4())
        folder = Path(tempfile.gettempdir(), f"spindle-campaign-{identity}")
        scratch = Scratch(device, identity, str(folder), PRIVATE + identity, held.identity)
        kept = stack.enter_context(noted(campaign, f"scratch-{identity}", Note(scratch=scratch)))
        node = stack.enter_context(held.node(scratch.node))
        try:
            with held_back():
                _make(held, node, scratch, wanted, consent)
            yield folder
        finally:
            with held_back():
                kept.stays = True
                try:
                    _take_away(held, node, scratch)
                    kept.stays = False
                except ResourceBusy as busy:
                    watch.say(f"spindle: {busy}; it is tried again before the device is used again")


def clear(campaign: str, device: str | None = None) -> None:
    """Remove file systems that could not be removed after their trial: all, or those on one device. Raises
    RunFailed.
    """
    for path, scratch, same_boot in scratches(campaign):
        if device is None or _is(device, scratch):
            remove(scratch, same_boot)
            path.unlink(missing_ok=True)


def _is(device: str, scratch: Scratch) -> bool:
    try:
        return scratch.identity is None or DevNumber.of(os.stat(device).st_rdev) == scratch.identity.number
    except OSError:
        return False


def remove(scratch: Scratch, same_boot: bool) -> bool:
    """Unmount and wipe the file system with our UUID; False: there was none. Raises RunFailed if it stays."""
    remove_node(scratch.node)
    try:
        with _found_again(scratch, same_boot) as held, held.node(scratch.node or PRIVATE + scratch.uuid) as node:
            return _take_away(held, node, scratch)
    except ResourceBusy as busy:
        raise RunFailed(str(busy)) from None
    except TargetError as error:
        if _mounted(scratch) is not None:
            raise RunFailed(f"{error}; unmount {scratch.mount}") from None
        _rmdir(scratch.mount)
        return False  # the device is gone, or is another one now


@contextmanager
def _found_again(scratch: Scratch, same_boot: bool) -> Iterator[HeldDevice]:
    """Find the device by its number in the same boot, by its name after a reboot. Raises TargetError."""
    if same_boot and scratch.identity is not None:
        device = by_number(scratch.identity.number)
        name = device.path if device is not None else scratch.device
    else:
        name = scratch.device
    with HeldDevice.opened(scratch.device, name) as held:
        known = scratch.identity
        if known is not None and (
            held.identity != known if same_boot else held.identity.size_bytes != known.size_bytes
        ):
            raise TargetError(f"{scratch.device}: has become another device")
        yield held


# --- the tools -------------------------------------------------------------------------------------------------------


def _make(held: HeldDevice, node: str, scratch: Scratch, wanted: FileSystem, consent: Consent) -> None:
    """Raises Refusal, TargetError or RunFailed."""
    options = ("-o", wanted.mount) if wanted.mount else ()
    try:
        Path(scratch.mount).mkdir(mode=0o700)
    except OSError as error:
        raise RunFailed(f"{scratch.mount}: {reason(error)}; set TMPDIR to a folder of yours") from None
    try:
        patiently(_Mkfs(held, node, scratch, wanted, consent))
        _forget_pages(held)
        if not _carries(held, scratch):
            raise RunFailed(f"{held.called}: the file system is not there; another program writes to it")
        patiently(lambda: _run(held, node, "mount", "-t", wanted.type, *options, node, scratch.mount))
    except ResourceBusy as busy:
        raise RunFailed(str(busy)) from None
    if _mounted(scratch) is None:
        raise RunFailed(f"{held.called}: mount did not mount it on {scratch.mount}")


@dataclass
class _Mkfs:
    """Attempts to make the file system."""

    held: HeldDevice
    node: str
    scratch: Scratch
    wanted: FileSystem
    consent: Consent
    _again: bool = False

    def __call__(self) -> None:
        """Raises ResourceBusy, RunFailed, Refusal, TargetError."""
        if self._again:
            self._check()
        self._again = True
        *quiet, sets = _UUID[self.wanted.type]
        value = f"uuid={self.scratch.uuid}" if self.wanted.type == "xfs" else self.scratch.uuid
        _run(self.held, self.node, f"mkfs.{self.wanted.type}", *quiet, sets, value, *self.wanted.mkfs, self.node)

    def _check(self) -> None:
        """Ask the guard again: another program used the device, and may have written to it."""
        try:
            with self.consent.held(self.scratch.device):
                pass
        except DeviceHeld as error:
            raise ResourceBusy(str(error)) from None


def _run(held: HeldDevice, node: str, tool: str, *arguments: str, claimed: bool = False) -> None:
    """Raises ResourceBusy, RunFailed, Refusal. The tool gets the node right after the node was compared with the
    device, and has no other folder to work in. `claimed`: the claim is Spindle's."""
    held.check(node)
    done = subprocess.run(
        [_tool(tool) or tool, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=os.path.dirname(node),
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    if done.returncode == 0:
        return
    lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
    said = lines[-1].replace(node, held.called)
    if (not claimed and held.is_claimed()) or re.search("busy|in use", done.stderr + done.stdout, re.I):
        raise ResourceBusy(f"{held.called}: {tool}: {said}; {held.held_by()}")
    raise RunFailed(f"{tool}: {said}")


def _forget_pages(held: HeldDevice) -> None:
    """Drop pages that mkfs left in the device's page cache, which an open device would keep."""
    os.fsync(held.fd)
    os.posix_fadvise(held.fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _take_away(held: HeldDevice, node: str, scratch: Scratch) -> bool:
    """Unmount and wipe; False: there was nothing. Raises ResourceBusy."""
    mounted = _mounted(scratch) is not None
    if mounted:
        try:
            unmount(scratch.mount, f"{held.called}: its file system")
        except OSError as error:
            raise RunFailed(f"{held.called}: cannot be unmounted from {scratch.mount}: {reason(error)}") from None
    _rmdir(scratch.mount)
    if not _carries(held, scratch):
        return mounted
    with held.claimed():
        # --force: otherwise wipefs requires the claim, which must be kept.
        _run(held, node, "wipefs", "--all", "--force", "--quiet", node, claimed=True)
        os.fsync(held.fd)
    return True


def _mounted(scratch: Scratch) -> Mount | None:
    """The mount in our folder, if it is on our device."""
    try:
        found = mount_of(scratch.mount)
    except OSError:
        return None
    if found is None or found.point != scratch.mount:
        return None
    known = scratch.identity
    return found if known is None or known.number in devices_of(found, HERE) or found.dev.major == 0 else None


def _carries(held: HeldDevice, scratch: Scratch) -> bool:
    try:
        return uuid_of(held.fd) == scratch.uuid
    except UnknownContent as error:
        raise RunFailed(f"{held.called}: its content cannot be read ({error})") from None


def _rmdir(folder: str) -> None:
    with suppress(OSError):  # gone already, or another file system is mounted there
        Path(folder).rmdir()


def file_bytes(folder: Path, size: str) -> int:
    """Size of a test file: given, or a share of the free space."""
    share = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]+)?)\s*%", size)
    if share is None:
        return _core.parse_size(size)
    status = os.statvfs(folder)
    return int(float(share[1]) / 100 * status.f_bavail * status.f_frsize) // _BLOCK * _BLOCK
