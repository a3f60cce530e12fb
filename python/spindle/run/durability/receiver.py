"""Takes the journal of a writer on another host: bytes in, bytes on the disk, and a word on how many are there.

No authentication is pretended: whoever reaches the port can write one journal.
"""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from spindle.host.errors import reason
from spindle.host.signals import Stopped
from spindle.result import units
from spindle.result.durability import Journal
from spindle.run.durability.aftercrash import read_journal
from spindle.run.durability.journal import PATIENCE_S, READY, new_journal
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch

MAGIC = b"spindle durability journal "
SYNC_S = 0.05
"""How often what has come is brought to the disk."""
PIECE = 1 << 20


@dataclass(frozen=True)
class Received:
    """A journal that is complete, as far as it came."""

    path: Path
    ended: str
    """`closed`: the writer ended; `silent`: nothing came any more, as when its power is cut; `stopped`."""
    journal: Journal


def receive(host: str, port: int, path: Path, watch: Watch) -> Received:
    """Wait for one writer and take its journal. Raises Usage or RunFailed."""
    with ExitStack() as stack:
        listener = stack.enter_context(_listening(host, port))
        fd = stack.enter_context(new_journal(path, "--journal"))
        try:
            shown = listener.getsockname()
            place = f"[{shown[0]}]:{shown[1]}" if ":" in shown[0] else f"{shown[0]}:{shown[1]}"
            watch.say(f"spindle: listening on {place}; there: spindle durability TARGET --journal tcp://{place}")
            ended = _take(listener, fd, watch)
            watch.end()
            return Received(path, ended, read_journal(fd_for_reading(path, stack), str(path)))
        except (RunFailed, Stopped):
            if os.fstat(fd).st_size == 0:
                path.unlink(missing_ok=True)
            raise


def fd_for_reading(path: Path, stack: ExitStack) -> int:
    """A descriptor of its own: the one that writes cannot read."""
    return stack.enter_context(path.open("rb", buffering=0)).fileno()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise Usage(f"--listen {host}:{port}: {why}; choose another port, or an address of this machine") from None


def _take(listener: socket.socket, fd: int, watch: Watch) -> str:
    """Until a writer has come and gone."""
    try:
        while True:
            connection, peer = listener.accept()
            with connection:
                taking = _Taking(connection, fd)
                if not taking.begin():
                    watch.say(f"spindle: {peer[0]} is no writer of journals; waiting for another")
                    continue
                watch.say(f"spindle: a writer on {peer[0]}")
                return taking.carry_out(listener, watch)
    except Stopped:
        if os.fstat(fd).st_size == 0:
            raise
        return "stopped"


class _Taking:
    """One connection."""

    def __init__(self, connection: socket.socket, fd: int) -> None:
        self._connection = connection
        self._fd = fd
        self._bytes = 0
        self._stored = 0
        connection.settimeout(PATIENCE_S)

    def begin(self) -> bool:
        """Whether what comes begins as a journal does."""
        first = b""
        try:
            self._connection.sendall(f"{READY}\n".encode())
            while len(first) < len(MAGIC):
                part = self._connection.recv(len(MAGIC) - len(first))
                if not part:
                    return False
                first += part
        except OSError:
            return False
        if first != MAGIC:
            _refuse(self._connection, "this is no journal of spindle")
            return False
        self._write(first)
        return True

    def carry_out(self, listener: socket.socket, watch: Watch) -> str:
        """Take what comes."""
        heard = synced = time.monotonic()
        while True:
            ready, _, _ = select.select([self._connection, listener], [], [], SYNC_S)
            now = time.monotonic()
            if listener in ready:
                _turn_away(listener)
            if self._connection in ready:
                heard = now
                try:
                    part = self._connection.recv(PIECE)
                except OSError:  # reset: the writer's machine is back, and knows nothing of the connection
                    part = b""
                if not part:
                    self._store()
                    return "closed"
                self._write(part)
            if now - synced >= SYNC_S and self._stored < self._bytes:
                synced = now
                self._store()
                watch.step(f"journal: {units.size(self._bytes)} stored")
            if now - heard > PATIENCE_S:
                self._store()
                return "silent"

    def _write(self, part: bytes) -> None:
        view = memoryview(part)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            _refuse(self._connection, reason(error))
            raise RunFailed(f"the journal cannot be written: {reason(error)}") from None
        self._bytes += len(part)

    def _store(self) -> None:
        os.fdatasync(self._fd)
        self._stored = self._bytes
        with suppress(OSError):  # nobody there to hear it
            self._connection.sendall(b"stored %d\n" % self._stored)


def _turn_away(listener: socket.socket) -> None:
    with suppress(OSError):
        other, _ = listener.accept()
        with other:
            other.settimeout(1.0)
            _refuse(other, "it has a writer already")


def _refuse(connection: socket.socket, why: str) -> None:
    with suppress(OSError):
        connection.sendall(f"refused {why}\n".encode())
