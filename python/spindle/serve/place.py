"""Where a disk is served: sockets and mounts."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spindle.base.errors import RunError
from spindle.host.devices import HERE
from spindle.host.errors import Refusal, reason
from spindle.host.mounts import own_mounts


@dataclass(frozen=True)
class Place:
    """A protocol of the core and where it is spoken."""

    protocol: str
    name: str

    @property
    def where(self) -> str:
        """The name for a client: socket, address or file."""
        return str(Path(self.name) / "disk") if self.protocol == "fuse" else self.name

    def check(self) -> None:
        """Refuse what is in the way. Raises Refusal."""
        if self.protocol == "fuse":
            _check_folder(Path(self.name))
        elif self.protocol != "nbd":
            _check_socket(Path(self.name))

    def identity(self) -> tuple[int, int] | None:
        """The socket that was made, so that no other is removed."""
        if self.protocol in ("fuse", "nbd"):
            return None
        found = os.lstat(self.name)
        return found.st_dev, found.st_ino

    def remove(self, made: tuple[int, int] | None) -> None:
        """Remove the socket; the core has unmounted a mount."""
        if made is not None:
            with suppress(FileNotFoundError):
                found = os.lstat(self.name)
                if (found.st_dev, found.st_ino) == made:
                    os.unlink(self.name)


def nbd_place(address: str) -> Place:
    """A path has a `/`, an address a `:` before its port. Raises RunError."""
    if "/" in address:
        return Place("nbd-socket", address)
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise RunError(
            f"`nbd={address}`: is neither a path with a `/` nor HOST:PORT; write ./{address} or localhost:10809"
        )
    return Place("nbd", f"{host or 'localhost'}:{port}")


def _check_socket(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refusal(f"{path}: {reason(error)}; give another path") from None
    if not stat.S_ISSOCK(mode):
        raise Refusal(f"{path}: exists and is not a socket; give another path")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            raise Refusal(f"{path}: the socket of a server that is gone; remove it with `rm {path}`") from None
        except OSError:
            pass
    raise Refusal(f"{path}: a server listens there; end it or give another path")


def _check_folder(folder: Path) -> None:
    kind = _mounted(folder)
    try:
        entries = os.listdir(folder)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            tool = "umount" if os.geteuid() == 0 else "fusermount3 -u"
            raise Refusal(f"{folder}: the mount of a server that is gone; remove it with `{tool} {folder}`") from None
        raise Refusal(f"{folder}: {reason(error)}; give an empty folder") from None
    if kind == "fuse.spindle":
        raise Refusal(f"{folder}: another server has its disk there; end it or give another folder")
    if entries:
        raise Refusal(f"{folder}: is not empty; give an empty folder")


def _mounted(folder: Path) -> str | None:
    """The kind of the file system that is mounted at a folder."""
    kinds = [mount.fs_type for mount in own_mounts(HERE) if mount.point == os.path.abspath(folder)]
    return kinds[-1] if kinds else None
