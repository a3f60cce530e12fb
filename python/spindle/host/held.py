"""A checked device for tools that need a name: mkfs, mount, wipefs.

A name may lead to another device at the next moment. So the device is kept open, which prevents reuse of its number,
and the tools get a private node, made for that number in a folder that only root can enter.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .devices import HERE, Device, by_number
from .errors import Refusal, TargetError, reason
from .identity import Identity
from .openers import SearchSet, openers
from .patience import ResourceBusy, patiently

PRIVATE = "/dev/.spindle-"
"""Prefix of these folders. Nodes elsewhere often cannot be opened (`nodev`)."""


class HeldDevice:
    """An open descriptor (without a claim) and the identity of the device when it was checked."""

    def __init__(self, called: str, fd: int, identity: Identity) -> None:
        self.called = called
        self.fd = fd
        self.identity = identity

    @classmethod
    @contextmanager
    def opened(cls, called: str, place: str) -> Iterator[HeldDevice]:
        """`place`: a path under /proc/self/fd, or a node that cannot change its meaning. Raises TargetError."""
        try:
            fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise TargetError(f"{called}: {reason(error)}") from None
        try:
            if not stat.S_ISBLK(os.fstat(fd).st_mode):
                raise TargetError(f"{called}: is not a block device")
            yield cls(called, fd, Identity.of(fd))
        finally:
            os.close(fd)

    @property
    def device(self) -> Device | None:
        """The device in sysfs; None if it has gone."""
        return by_number(self.identity.number, HERE)

    @contextmanager
    def node(self, folder: str) -> Iterator[str]:
        """A node for it, in a new folder (see `PRIVATE`). Raises TargetError."""
        device = self.device
        name = f"{folder}/{device.name if device is not None else 'device'}"
        try:
            Path(folder).mkdir(mode=0o700)
            os.mknod(name, 0o600 | stat.S_IFBLK, os.makedev(*self.identity.number))
        except OSError as error:
            remove_node(folder)
            raise TargetError(f"{self.called}: cannot make a device node in {folder}: {reason(error)}") from None
        try:
            yield name
        finally:
            remove_node(folder)

    def check(self, node: str) -> None:
        """Check right before a tool gets the name. Raises Refusal if it is not the device that was checked."""
        try:
            fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise Refusal(f"{self.called}: {node}: {reason(error)}; nothing is written to it") from None
        try:
            same = stat.S_ISBLK(os.fstat(fd).st_mode) and Identity.of(fd) == self.identity == Identity.of(self.fd)
        finally:
            os.close(fd)
        if not same:
            raise Refusal(f"{self.called}: is no longer the device that was checked; nothing is written to it")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Claim the device, so that nobody can mount it meanwhile. Raises ResourceBusy after some retries."""
        fd = patiently(self._claim)
        try:
            yield
        finally:
            os.close(fd)

    def _claim(self) -> int:
        try:
            return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise ResourceBusy(f"{self.called}: {self.held_by()}") from None
            raise TargetError(f"{self.called}: {reason(error)}") from None

    def is_claimed(self) -> bool:
        """True if somebody holds it exclusively now."""
        try:
            os.close(self._claim())
        except ResourceBusy:
            return True
        return False

    def held_by(self) -> str:
        """The user, as in `is held by process 12 (lvm)`."""
        found = openers(SearchSet({self.identity.number: "it"}), HERE)
        return f"is held by {found[0]}" if found else "is held by a process that cannot be seen"


def remove_node(folder: str) -> None:
    """Remove a folder made by `HeldDevice.node`, also after a kill."""
    if re.fullmatch(rf"{re.escape(PRIVATE)}[0-9a-f-]+", folder):
        shutil.rmtree(folder, ignore_errors=True)
