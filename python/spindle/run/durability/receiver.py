"""Receives the journals of writers on other hosts, syncs them to disk, and confirms the number of stored bytes.

Each connection has a thread of its own and a time limit for the beginning of a journal, so a silent or slow peer does
not delay others. Storage is limited. A token, if given, decides which writers are accepted; it is proven, not sent.
Nothing is encrypted.
"""

from __future__ import annotations

import hmac
import os
import queue
import secrets
import select
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from spindle.base import units
from spindle.base.commands import given, shell
from spindle.host.durably import sync_folder
from spindle.host.errors import reason
from spindle.host.signals import Stopped
from spindle.host.testfile import KEEP_FREE
from spindle.host.trusted import new_own
from spindle.result.journal import Journal
from spindle.run.durability.aftercrash import read_journal
from spindle.run.durability.journal import LINE_MAX, PATIENCE_S, READY, TOKEN, new_journal, proof
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch

MAGIC = b"spindle durability journal 1\n"
HEADER_MAX = 64 << 10
"""Largest entry that describes the test, bytes; it usually has about two thousand."""
SYNC_S = 0.05
"""Interval between syncs."""
BEGIN_S = 10.0
"""A connection without a journal is closed after this time."""
LINGER_S = 1.0
PIECE = 1 << 18
LIMIT = 2 << 30
"""Default limit of each journal, bytes."""
JOURNALS = 16
"""Most journals in a folder."""
CONNECTIONS = 32
"""Most connections without a journal; the oldest is closed first."""
_LENGTHS = {ord("S"): (0, 0), ord("A"): (20, 20), ord("L"): (8, 8), ord("E"): (9, 9), ord("B"): (8, 8 + 4 * 16_384)}
"""Smallest and largest payload of each kind of entry after the first, bytes (crates/engine/src/durable/entry.rs)."""
_FRAME = 5


@dataclass(frozen=True)
class ReceivedJournal:
    """A received journal, complete or cut short."""

    path: Path
    ended: str
    """`closed`: the writer ended; `silent`: no more data, as after a power cut; `full`: its limit was reached;
    `garbage`: the data was not a journal; `stopped`.
    """
    journal: Journal


@dataclass(frozen=True)
class ReceiverOptions:
    """Options of the receiver."""

    host: str
    port: int
    path: Path
    """A new file for one journal, or a folder for many."""
    token: bytes | None = None
    limit_bytes: int = LIMIT


def receive(order: ReceiverOptions, watch: Watch) -> list[ReceivedJournal]:
    """Wait for writers and receive their journals: one into a file, or many into a folder until stopped. Raises
    Usage or RunFailed, and Stopped if nothing was received.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(_listening(order.host, order.port))
        store = _Folder(order.path) if order.path.is_dir() else _File(order.path)
        stack.enter_context(store)
        shown = listener.getsockname()
        place = f"[{shown[0]}]:{shown[1]}" if ":" in shown[0] else f"{shown[0]}:{shown[1]}"
        there = shell("spindle", "durability", "TARGET", *given(journal=f"tcp://{place}"))
        watch.say(f"spindle: listening on {place}; there: {there}")
        server = _Server(listener, store, order, watch)
        server.serve()
        watch.end()
        return server.received


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise Usage(f"`listen=` {host}:{port}: {why}; choose another port, or an address of this machine") from None


# --- where journals go -----------------------------------------------------------------------------------------------


class _Refusal(Exception):
    """A writer is refused; the text is the reason."""


@dataclass
class _Place:
    """The file of a journal."""

    path: Path
    fd: int


class _File(ExitStack):
    """A single journal in a named file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.single = True
        self._path = path
        self._fd = self.enter_context(new_journal(path, "`journal=`"))
        self._taken = False
        self.callback(self._forget)

    def check(self) -> None:
        """Raise _Turned if there is no room."""
        if self._taken:
            raise _Refusal("it has a writer already")

    def take(self, run: str) -> _Place:
        """Reserve a file for a writer. Raises _Turned."""
        self.check()
        self._taken = True
        return _Place(self._path, os.dup(self._fd))

    def _forget(self) -> None:
        if not self._taken:
            self._path.unlink(missing_ok=True)


class _Folder(ExitStack):
    """Many journals, each in a file named by its run."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.single = False
        self._path = path
        self._taken = 0

    def check(self) -> None:
        """Raise _Turned if there is no room."""
        if self._taken >= JOURNALS:
            raise _Refusal(f"it has taken {JOURNALS} journals, its limit; start another one")

    def take(self, run: str) -> _Place:
        """Reserve a file for a writer. Raises _Turned."""
        self.check()
        path = self._path / f"{run}.journal"
        try:
            fd = new_own(path)
            sync_folder(self._path)
        except FileExistsError:
            raise _Refusal(f"it has a journal of run {run} already") from None
        except OSError as error:
            raise _Refusal(f"no file can be made there: {reason(error)}") from None
        self._taken += 1
        return _Place(path, fd)


# --- the server ------------------------------------------------------------------------------------------------------


@dataclass
class _Server:
    """The main thread accepts connections and writes messages; each connection has a thread."""

    listener: socket.socket
    store: _File | _Folder
    order: ReceiverOptions
    watch: Watch
    received: list[ReceivedJournal] = field(default_factory=list)
    stored_bytes: int = 0
    stopping: bool = False
    _failure: str | None = None
    _lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[_Connection] = field(default_factory=list)
    """Connections without a journal, the oldest first."""
    _all: set[_Connection] = field(default_factory=set)

    def serve(self) -> None:
        """Serve until the journal is complete or a person stops it."""
        stopped: Stopped | None = None
        try:
            while not (self.store.single and (self.received or self._failure)):
                ready, _, _ = select.select([self.listener], [], [], 0.1)
                if ready:
                    self._accept()
                self._speak()
        except Stopped as error:
            stopped = error
        self._end()
        if self._failure is not None and self.store.single:
            raise RunFailed(self._failure)
        if stopped is not None and not self.received:
            raise stopped

    def _accept(self) -> None:
        try:
            connection, peer = self.listener.accept()
        except OSError:
            time.sleep(0.05)  # too many are open, or it is gone again
            return
        one = _Connection(self, connection, peer[0])
        with self._lock:
            surplus = self._waiting.pop(0) if len(self._waiting) >= CONNECTIONS else None
            self._waiting.append(one)
            self._all.add(one)
        if surplus is not None:
            surplus.hang_up()
        one.start()

    def _speak(self) -> None:
        with suppress(queue.Empty):
            while True:
                self.watch.say(f"spindle: {self._lines.get_nowait()}")
        if self.stored_bytes:
            self.watch.step(f"journal: {units.size(self.stored_bytes)} stored")

    def _end(self) -> None:
        self.stopping = True
        with self._lock:
            left = list(self._all)
            waiting = list(self._waiting)
        for one in waiting:
            one.hang_up()
        for one in left:
            one.join()
        self._speak()

    # --- for connections ---

    def say(self, line: str) -> None:
        """Print a line; callable from any thread."""
        self._lines.put(line)

    def take(self, one: _Connection, run: str) -> _Place:
        """Reserve a file for a journal that has begun. Raises _Turned."""
        with self._lock:
            place = self.store.take(run)
            if one in self._waiting:
                self._waiting.remove(one)
            return place

    def complete(self, place: _Place, ended: str, failure: str | None) -> None:
        """Note the end of a journal."""
        with self._lock:
            self._failure = self._failure or failure
            if failure is None:
                self.received.append(ReceivedJournal(place.path, ended, read_journal(place.fd, str(place.path))))

    def gone(self, one: _Connection) -> None:
        """Release the connection."""
        with self._lock:
            self._all.discard(one)
            if one in self._waiting:
                self._waiting.remove(one)


class _Connection(threading.Thread):
    """One peer, from the greeting to the end of its journal."""

    def __init__(self, server: _Server, connection: socket.socket, peer: str) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._connection = connection
        self._peer = peer
        self._bytes = 0
        self._stored = 0
        self._frames = _Frames()

    def hang_up(self) -> None:
        """Close from another thread, after the time limit."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        """Run the connection."""
        try:
            with self._connection:
                self._serve()
        except _Refusal as turned:
            self._server.say(f"{self._peer} was refused: {turned}")
        except OSError:
            self._server.say(f"{self._peer} is not a writer of journals: it sent nothing, or closed the connection")
        finally:
            self._server.gone(self)

    def _serve(self) -> None:
        try:
            begin = self._begin()
            place = self._server.take(self, _run_of(begin))
        except _Refusal as turned:
            _refuse(self._connection, str(turned))
            raise
        try:
            self._server.say(f"a writer on {self._peer}, its journal in {place.path}")
            ended, failure = self._carry_out(place, begin)
            self._server.complete(place, ended, failure)
        finally:
            os.close(place.fd)

    # --- the beginning ---

    def _begin(self) -> bytes:
        """Receive the first bytes of a journal with its whole first entry. Raises _Turned or OSError."""
        until = time.monotonic() + BEGIN_S
        if (token := self._server.order.token) is not None:
            nonce = secrets.token_hex(16)
            self._connection.sendall(f"{TOKEN} {nonce}\n".encode())
            if not hmac.compare_digest(self._line(until), f"{TOKEN} {proof(token, nonce)}".encode()):
                raise _Refusal("its token is wrong or missing")
        self._server.store.check()  # before the writer creates anything
        self._connection.sendall(f"{READY}\n".encode())
        begin = b""
        while begin != MAGIC:
            begin += self._exactly(1, until)
            if not MAGIC.startswith(begin):
                raise _Refusal("not a journal of spindle, or one of another version")
        frame = self._exactly(_FRAME, until)
        length = int.from_bytes(frame[1:], "little")
        if frame[:1] != b"H" or length > HEADER_MAX:
            raise _Refusal("not a journal of spindle: its first entry does not describe the test")
        return begin + frame + self._exactly(length + 4, until)

    def _exactly(self, count: int, until: float) -> bytes:
        found = b""
        while len(found) < count:
            self._connection.settimeout(max(until - time.monotonic(), 0.001))
            part = self._connection.recv(count - len(found))
            if not part or self._server.stopping:
                raise OSError
            found += part
        return found

    def _line(self, until: float) -> bytes:
        line = b""
        while len(line) < LINE_MAX and not line.endswith(b"\n"):
            line += self._exactly(1, until)
        return line.removesuffix(b"\n")

    # --- the rest ---

    def _carry_out(self, place: _Place, begin: bytes) -> tuple[str, str | None]:
        """Store the journal. Returns the way it ended, and a local problem."""
        try:
            self._write(place, begin)
            return self._take(place), None
        except OSError as error:
            _refuse(self._connection, reason(error))
            return "closed", f"the journal cannot be written: {reason(error)}"

    def _take(self, place: _Place) -> str:
        heard = synced = time.monotonic()
        while not self._server.stopping:
            now = time.monotonic()
            if (part := self._part()) is not None:
                heard = now
                whole = self._frames.sound(part)
                room = self._server.order.limit_bytes - self._bytes
                self._write(place, part[: min(whole, room)])
                if not part or whole < len(part) or room < len(part) or _is_full(place.fd):
                    self._store(place)
                    return self._why_it_ends(part, whole, room)
            if now - synced >= SYNC_S and self._stored < self._bytes:
                synced = now
                self._store(place)
            if now - heard > PATIENCE_S:
                self._store(place)
                return "silent"
        self._store(place)
        return "stopped"

    def _part(self) -> bytes | None:
        """Received data; empty at the end, None if there is none now."""
        try:
            self._connection.settimeout(SYNC_S)
            return self._connection.recv(PIECE)
        except TimeoutError:
            return None
        except OSError:  # reset: the writer's machine is back without the connection
            return b""

    def _why_it_ends(self, part: bytes, whole: int, room: int) -> str:
        if not part:
            return "closed"
        if whole < len(part) and whole <= room:
            _refuse(self._connection, "the data is not a journal any more")
            return "garbage"
        limit = units.size(self._server.order.limit_bytes)
        _refuse(self._connection, f"the journal has reached its limit ({limit}, or the last of the file system there)")
        return "full"

    def _write(self, place: _Place, part: bytes) -> None:
        view = memoryview(part)
        while view:
            view = view[os.write(place.fd, view) :]
        self._bytes += len(part)
        self._server.stored_bytes += len(part)

    def _store(self, place: _Place) -> None:
        os.fdatasync(place.fd)
        self._stored = self._bytes
        with suppress(OSError):  # the peer is gone
            self._connection.sendall(b"stored %d\n" % self._stored)


class _Frames:
    """Follows entries by kind and length: garbage is detected before it fills the disk. `verify` checks the
    checksums.
    """

    def __init__(self) -> None:
        self._skip = 0
        self._head = b""

    def sound(self, part: bytes) -> int:
        """Number of leading bytes that can belong to a journal."""
        at = 0
        while at < len(part):
            if self._skip:
                step = min(self._skip, len(part) - at)
                self._skip -= step
                at += step
                continue
            begin = at
            at = min(at + _FRAME - len(self._head), len(part))
            self._head += part[begin:at]
            if len(self._head) == _FRAME:
                least, most = _LENGTHS.get(self._head[0], (1, 0))
                length = int.from_bytes(self._head[1:], "little")
                if not least <= length <= most:
                    return begin
                self._skip, self._head = length + 4, b""
        return at


def _run_of(begin: bytes) -> str:
    """The number of the run, from a valid beginning. Raises _Turned."""
    with os.fdopen(os.memfd_create("beginning"), "r+b", buffering=0) as file:
        file.write(begin)
        try:
            return read_journal(file.fileno(), "it").header.run
        except Usage as error:
            raise _Refusal(f"not a journal of spindle: {error}") from None


def _is_full(fd: int) -> bool:
    space = os.fstatvfs(fd)
    return space.f_blocks > 0 and space.f_bavail < space.f_blocks * KEEP_FREE


def _refuse(connection: socket.socket, why: str) -> None:
    """Send the reason, and receive for a moment: closing at once would reset the connection and lose it."""
    until = time.monotonic() + LINGER_S
    with suppress(OSError):
        connection.settimeout(LINGER_S)
        connection.sendall(f"refused {why}\n".encode())
        connection.shutdown(socket.SHUT_WR)
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(PIECE):
                break
