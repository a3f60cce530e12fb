"""The journal's destination: a new file on another device, or a receiver on another host."""

from __future__ import annotations

import fcntl
import hmac
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from spindle.host.devices import Device, whole
from spindle.host.durably import sync_folder
from spindle.host.errors import reason
from spindle.host.guard import OpenTarget
from spindle.host.mounts import mount_of
from spindle.host.stack import below, devices_under
from spindle.host.trusted import new_own
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch

PATIENCE_S = 15.0
"""A receiver that is silent for this time is gone; the same for a writer, which sends every 0.1 s."""
READY = "ready 1"
"""The receiver's first line; the number is the version of the protocol."""
TOKEN = "token"
"""First line of a receiver that requires a token, with a nonce; also the start of the writer's answer, with its
proof.
"""
TOKEN_LEAST = 16
LINE_MAX = 200
VOLATILE = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class OpenJournal:
    """A journal that is ready to be written."""

    fd: int
    receiver: bool
    """True for a connection."""
    where: str
    path: Path | None = None

    def discard(self) -> None:
        """Discard a journal without checkable entries."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def address(text: str, what: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, or `PORT` alone for this host. Raises Usage."""
    try:
        parts = urlsplit(f"//{text if ':' in text else '127.0.0.1:' + text}")
        if parts.hostname and parts.port is not None and not parts.path and not parts.username:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise Usage(f"{what} {text}: is not an address; write HOST:PORT, for example 192.0.2.7:7800")


def read_token(path: Path) -> bytes:
    """A secret that writer and receiver share. Raises Usage."""
    try:
        if path.stat().st_mode & 0o077:
            raise Usage(f"`token_file=` {path}: others may read it; `chmod 600` it")
        token = path.read_bytes()[:4096].strip()
    except OSError as error:
        raise Usage(f"`token_file=` {path}: {reason(error)}") from None
    if len(token) < TOKEN_LEAST:
        raise Usage(
            f"`token_file=` {path}: holds fewer than {TOKEN_LEAST} bytes; make one with "
            "`(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
        )
    return token


def proof(token: bytes, nonce: str) -> str:
    """Proof of having the token, without sending it."""
    return hmac.new(token, f"spindle durability journal 1 {nonce}".encode(), "sha256").hexdigest()


@contextmanager
def open_journal(
    where: str, target: OpenTarget, on_target: bool, token: bytes | None, watch: Watch
) -> Iterator[OpenJournal]:
    """Make the file or connect to the receiver; closed at the end. Raises Usage or RunFailed."""
    scheme, separator, rest = where.partition("://")
    if not separator:
        if token is not None:
            raise Usage("`token_file=`: goes with `journal=` tcp://HOST:PORT")
        with _file(Path(where), target, on_target, watch) as journal:
            yield journal
        return
    if scheme != "tcp":
        raise Usage(f"`journal=` {where}: {scheme}:// is not known; give a file or tcp://HOST:PORT")
    with _connected(where, *address(rest, "`journal=`"), token, watch) as journal:
        yield journal


# --- a receiver ------------------------------------------------------------------------------------------------------


@contextmanager
def _connected(where: str, host: str, port: int, token: bytes | None, watch: Watch) -> Iterator[OpenJournal]:
    try:
        connection = socket.create_connection((host, port), timeout=PATIENCE_S)
    except OSError as error:
        raise RunFailed(
            f"`journal=` {where}: nobody answers ({reason(error)}); start `spindle verify` with `listen=` there first"
        ) from None
    with connection:
        # Entries are sent at once; a dead link is detected in seconds, not in a quarter of an hour.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(PATIENCE_S * 1000))
        _await_readiness(where, connection, token)
        connection.settimeout(None)
        if connection.getpeername()[0] == connection.getsockname()[0]:
            watch.say(f"spindle: {where}: is this machine, and loses its power with the target's host")
        yield OpenJournal(connection.fileno(), True, where)


def _await_readiness(where: str, connection: socket.socket, token: bytes | None) -> None:
    """Wait for the receiver before anything is made or written; its first line may refuse the writer."""
    said = _line(where, connection)
    if said.startswith(f"{TOKEN} "):
        if token is None:
            raise RunFailed(f"`journal=` {where}: the receiver wants a token; give `token_file=` here as there")
        connection.sendall(f"{TOKEN} {proof(token, said.removeprefix(TOKEN).strip())}\n".encode())
        said = _line(where, connection)
    elif token is not None and said == READY:
        raise RunFailed(f"`journal=` {where}: the receiver asks for no token; start it with the same `token_file=`")
    if said.startswith("refused "):
        raise RunFailed(f"`journal=` {where}: the receiver refuses: {said.removeprefix('refused ')}")
    if said != READY:
        raise RunFailed(f"`journal=` {where}: the answer is not from a receiver of this version ({said[:40]!r})")


def _line(where: str, connection: socket.socket) -> str:
    line = b""
    try:
        while not line.endswith(b"\n") and len(line) < LINE_MAX:
            part = connection.recv(1)
            if not part:
                break
            line += part
    except OSError as error:
        raise RunFailed(f"`journal=` {where}: says nothing ({reason(error)}); is it a receiver of journals?") from None
    return line.decode(errors="replace").strip()


# --- a file ----------------------------------------------------------------------------------------------------------


@contextmanager
def _file(path: Path, target: OpenTarget, on_target: bool, watch: Watch) -> Iterator[OpenJournal]:
    with new_journal(path, "`journal=`") as fd:
        made = OpenJournal(fd, False, str(path.absolute()), path.absolute())
        try:
            shared = _shared(fd, target)
            if shared and not on_target:
                raise Usage(
                    f"`journal=` {path}: is on {shared}, like the target, and would be lost with it; "
                    "choose another device, or give `journal_on_target=`"
                )
        except BaseException:
            made.discard()
            raise
        mount = mount_of(fd)
        if mount is not None and mount.fs_type in VOLATILE:
            watch.say(f"spindle: `journal=` {path}: is in memory ({mount.fs_type}), and is lost with the power")
        yield made


@contextmanager
def new_journal(path: Path, option: str) -> Iterator[int]:
    """Descriptor of a new file whose name is on the disk; locked, so that it is not checked too early."""
    try:
        file = os.fdopen(new_own(path), "r+b", buffering=0)  # only its owner may read or write it
    except FileExistsError:
        raise Usage(f"{option} {path}: exists already; a journal is a new file") from None
    except OSError as error:
        raise Usage(f"{option} {path}: no file can be made there: {reason(error)}") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sync_folder(path.absolute().parent)
        yield file.fileno()


def _shared(fd: int, target: OpenTarget) -> str | None:
    """The device that both are on, or the file system if there is no device."""
    disks = _disks(target.counted_devices())
    for device in _disks(devices_under(fd)).values():
        if device.name in disks:
            return device.path
    same = any(os.fstat(file.fd).st_dev == os.fstat(fd).st_dev for file in target.files) and target.is_one_file
    return "the same file system" if same else None


def _disks(devices: Sequence[Device]) -> dict[str, Device]:
    """Whole disks at the bottom and in between."""
    return {whole(under).name: whole(under) for device in devices for under in (device, *below(device))}
