"""A served drive over vhost-user-blk, with a front end of its own: memory, one ring, event descriptors."""

from __future__ import annotations

import mmap
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.served import QUICK, SIZE, Serve, is_dropped

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEMORY, SET_NUM, SET_ADDRESSES = 1, 2, 3, 5, 8, 9
SET_BASE, GET_BASE, SET_KICK, SET_CALL, GET_PROTOCOL, SET_PROTOCOL, ENABLE, GET_CONFIG = 10, 11, 12, 13, 15, 16, 18, 24
READ, WRITE, FLUSH, IDENTIFY = 0, 1, 4, 8
GUEST, USER, MEMORY = 0x1_0000_0000, 0x7000_0000_0000, 1 << 20
DESCRIPTORS, AVAILABLE, USED, HEADER, DATA = 0, 0x1000, 0x2000, 0x3000, 0x10000
RING = 64
NEXT, WRITABLE = 1, 2


class FrontEnd:
    """A virtio-blk driver behind vhost-user."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.fd = os.memfd_create("memory")
        os.truncate(self.fd, MEMORY)
        self.memory = mmap.mmap(self.fd, MEMORY)
        self.kick, self.call = os.eventfd(0), os.eventfd(0)
        self._made = 0
        self._seen = 0

    def close(self) -> None:
        """Leave."""
        self.socket.close()
        self.memory.close()
        for fd in (self.fd, self.kick, self.call):
            os.close(fd)

    def send(self, request: int, payload: bytes = b"", *fds: int) -> None:
        """Send a message."""
        message = struct.pack("=III", request, 1, len(payload)) + payload
        socket.send_fds(self.socket, [message], list(fds))

    def ask(self, request: int, payload: bytes = b"") -> bytes:
        """Send a message and wait for its answer's payload."""
        self.send(request, payload)
        answered, flags, length = struct.unpack("=III", self._exactly(12))
        assert (answered, flags) == (request, 5)
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def set_up(self, base: int = 0) -> None:
        """Negotiate, and start ring 0 at an index."""
        features = int.from_bytes(self.ask(GET_FEATURES), "little")
        assert features & (1 << 32 | 1 << 30 | 1 << 9) == 1 << 32 | 1 << 30 | 1 << 9
        protocol = int.from_bytes(self.ask(GET_PROTOCOL), "little")
        assert protocol & (1 << 9 | 1 << 14) == 1 << 9, "configuration, and no notifications in band"
        self.send(SET_PROTOCOL, struct.pack("=Q", protocol))
        self.send(SET_OWNER)
        self.send(SET_FEATURES, struct.pack("=Q", features))
        config = self.ask(GET_CONFIG, struct.pack("=III", 0, 60, 0) + bytes(60))
        assert int.from_bytes(config[12:20], "little") * 512 == SIZE
        self.send(SET_MEMORY, struct.pack("=II4Q", 1, 0, GUEST, MEMORY, USER, 0), self.fd)
        self.send(SET_NUM, struct.pack("=II", 0, RING))
        self.send(SET_BASE, struct.pack("=II", 0, base))
        self.send(SET_ADDRESSES, struct.pack("=II4Q", 0, 0, USER + DESCRIPTORS, USER + USED, USER + AVAILABLE, 0))
        self.send(SET_CALL, struct.pack("=Q", 0), self.call)
        self.send(SET_KICK, struct.pack("=Q", 0), self.kick)
        self.send(ENABLE, struct.pack("=II", 0, 1))

    def offer(self, number: int, code: int, sector: int, length: int, writable: bool) -> None:
        """Offer request `number` (0 to 15), whose data are at `DATA + number * 4096`."""
        header, status = HEADER + 32 * number, HEADER + 32 * number + 16
        struct.pack_into("<IIQB", self.memory, header, code, 0, sector, 0xFF)
        chain = [(header, 16, 0), (DATA + 4096 * number, length, WRITABLE if writable else 0), (status, 1, WRITABLE)]
        chain = [part for part in chain if part[1]]
        for place, (at, size, flags) in enumerate(chain):
            index = 4 * number + place
            following = (NEXT, index + 1) if place + 1 < len(chain) else (0, 0)
            entry = struct.pack("<QIHH", GUEST + at, size, flags | following[0], following[1])
            self.memory[DESCRIPTORS + 16 * index : DESCRIPTORS + 16 * index + 16] = entry
        struct.pack_into("<H", self.memory, AVAILABLE + 4 + 2 * (self._made % RING), 4 * number)
        self._made += 1
        struct.pack_into("<H", self.memory, AVAILABLE + 2, self._made % 65536)

    def returned(self, count: int) -> list[int]:
        """Kick, and wait until all `count` requests were returned: their statuses, in the order of the offers."""
        os.eventfd_write(self.kick, 1)
        self._seen += count
        while struct.unpack_from("<H", self.memory, USED + 2)[0] != self._seen % 65536:
            os.eventfd_read(self.call)
        return [self.memory[HEADER + 32 * number + 16] for number in range(count)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "disk.sock"


@pytest.fixture
def front(serve: Serve, path: Path) -> Iterator[FrontEnd]:
    serve(*QUICK, "--socket", path)
    made = FrontEnd(path)
    yield made
    made.close()


def test_requests_through_a_ring_keep_their_data(front: FrontEnd) -> None:
    front.set_up()
    data = random.Random(1).randbytes(8 * 4096)
    front.memory[DATA : DATA + len(data)] = data
    for number in range(8):
        front.offer(number, WRITE, 8 * number, 4096, writable=False)
    assert front.returned(8) == [0] * 8
    front.memory[DATA : DATA + len(data)] = bytes(len(data))
    for number in range(8):
        front.offer(number, READ, 8 * number, 4096, writable=True)
    assert front.returned(8) == [0] * 8
    assert front.memory[DATA : DATA + len(data)] == data
    front.offer(0, FLUSH, 0, 0, writable=False)
    front.offer(1, IDENTIFY, 0, 20, writable=True)
    front.offer(2, READ, SIZE // 512, 512, writable=True)
    front.offer(3, 77, 0, 512, writable=True)
    assert front.returned(4) == [0, 0, 1, 2]


def test_a_front_end_that_stops_its_ring_gets_all_requests_back_first(front: FrontEnd) -> None:
    front.set_up()
    for number in range(16):
        front.offer(number, READ, 8 * number, 4096, writable=True)
    os.eventfd_write(front.kick, 1)
    os.eventfd_read(front.call)
    base = struct.unpack("=II", front.ask(GET_BASE, struct.pack("=II", 0, 0)))
    assert base == (0, 16)
    assert struct.unpack_from("<H", front.memory, USED + 2)[0] == 16


def test_the_next_front_end_reads_what_the_one_before_wrote(serve: Serve, path: Path) -> None:
    server = serve(*QUICK, "--socket", path)
    for turn, code in enumerate((WRITE, READ)):
        front = FrontEnd(path)
        front.set_up()
        front.memory[DATA : DATA + 4096] = bytes([7 * (1 - turn)]) * 4096
        front.offer(0, code, 8, 4096, writable=code == READ)
        assert front.returned(1) == [0]
        assert front.memory[DATA : DATA + 4096] == b"\7" * 4096
        front.offer(1, READ, 0, 4096, writable=True)
        os.eventfd_write(front.kick, 1)
        front.close()
    figures = server.figures()
    assert (figures["clients"], figures["dropped"], figures["counts"]["writes"]) == (2, 0, 1)


def test_garbage_is_dropped_and_the_next_front_end_is_served(serve: Serve, path: Path) -> None:
    server = serve(*QUICK, "--socket", path)
    draw = random.Random(3)
    for length in (0, 5, 12, 100, 3000):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(draw.randbytes(length))
    for request in range(1, 40, 3):
        front = FrontEnd(path)
        front.set_up()
        front.send(request, draw.randbytes(draw.randrange(48)))
        front.close()
    for where in (DESCRIPTORS, AVAILABLE):
        front = FrontEnd(path)
        front.set_up()
        front.offer(0, READ, 0, 512, writable=True)
        front.memory[where : where + 512] = draw.randbytes(512)
        os.eventfd_write(front.kick, 1)
        assert is_dropped(front.socket), "a ring that is wrong ends the connection"
        front.close()
    front = FrontEnd(path)
    front.set_up()
    front.offer(0, READ, 0, 512, writable=True)
    assert front.returned(1) == [0]
    front.close()
    assert server.figures()["dropped"] > 3
