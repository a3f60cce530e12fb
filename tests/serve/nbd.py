"""A small NBD client."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

READ, WRITE, LEAVE, FLUSH, TRIM, ZEROES = 0, 1, 2, 3, 4, 6
OPTION = struct.Struct(">8sII")
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")


class Nbd:
    """A client that has chosen the disk."""

    def __init__(self, path: Path) -> None:
        self.socket = connected(path)
        self.exactly(18)
        self.socket.sendall(struct.pack(">I", 3) + OPTION.pack(b"IHAVEOPT", 7, 6) + bytes(6))
        self.size = 0
        while (answer := self._option_reply())[0] != 1:
            if answer[1][:2] == b"\0\0":
                self.size = int.from_bytes(answer[1][2:10], "big")
        self._cookie = 0

    def _option_reply(self) -> tuple[int, bytes]:
        _, _, kind, length = struct.unpack(">QIII", self.exactly(20))
        return kind, self.exactly(length)

    def exactly(self, length: int) -> bytes:
        """Bytes of the server."""
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def send(self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"") -> int:
        """Send a request; its cookie."""
        self._cookie += 1
        self.socket.sendall(REQUEST.pack(0x25609513, 0, kind, self._cookie, offset, length or len(data)) + data)
        return self._cookie

    def answer(self, read: int = 0) -> tuple[int, int, bytes]:
        """The next answer: cookie, error, bytes of a read."""
        magic, error, cookie = REPLY.unpack(self.exactly(REPLY.size))
        assert magic == 0x67446698
        return cookie, error, b"" if error else self.exactly(read)

    def ask(self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"") -> tuple[int, bytes]:
        """Send a request and wait for its answer: error, bytes."""
        sent = self.send(kind, offset, length, data)
        cookie, error, found = self.answer(length if kind == READ else 0)
        assert cookie == sent
        return error, found

    def close(self) -> None:
        """Leave."""
        self.socket.close()


Clients = Callable[[Path], Nbd]


def connected(path: Path) -> socket.socket:
    """A connection without a handshake."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    return client
