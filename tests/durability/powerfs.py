"""A file system with one file, `disk`, whose power can be cut: python powerfs.py IMAGE FOLDER SEED

What is written to the file is forgotten unless it was synced; IMAGE gets what is on the medium when power is cut.
Commands on standard input, one a line, each answered by a line: a mode (`honest`, `lying`, `reordering`, `torn`),
`syncs`, answered by how many there were in this mode, or `cut`, after which every request fails as on a drive that is
gone. The protocol of /dev/fuse is spoken directly (linux/fuse.h, version 7.31): root and the kernel is all it needs.

| mode | a sync | at the cut |
|---|---|---|
| honest | brings all to the medium | of what is not synced, any part may arrive, the last piece torn: that is allowed |
| lying | says so and does nothing | all of it is forgotten |
| reordering | says so and does nothing | a random part arrives, the last write among it |
| torn | brings all but the end of the last write | that end is forgotten |
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import stat
import struct
import sys
from contextlib import suppress
from errno import EIO, ENOENT, ENOSYS

SECTOR = 512
ROOT, DISK = 1, 2
MODES = ("honest", "lying", "reordering", "torn")

HEADER = struct.Struct("<IIQQIIII")  # len, opcode, unique, nodeid, uid, gid, pid, padding
ANSWER = struct.Struct("<IiQ")  # len, error, unique
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
MAX_WRITE = 1 << 20


class Disk:
    """The content of memory, and of the medium."""

    def __init__(self, image: str, seed: int) -> None:
        self._image = image
        with open(image, "rb") as file:
            self._medium = bytearray(file.read())
        self.content = bytearray(self._medium)
        self._unsynced: list[tuple[int, bytes]] = []
        self._chance = random.Random(seed)
        self.mode = "honest"
        self.syncs = 0
        self.gone = False

    def turn(self, mode: str) -> None:
        self.mode, self.syncs = mode, 0

    def write(self, offset: int, data: bytes) -> None:
        self.content[offset : offset + len(data)] = data
        self._unsynced.append((offset, data))

    def sync(self) -> None:
        self.syncs += 1
        if self.mode in ("lying", "reordering"):
            return
        held = []
        if self.mode == "torn" and self._unsynced:
            offset, data = self._unsynced.pop()
            kept = self._torn(len(data), least=min(SECTOR, len(data) - SECTOR))
            self._unsynced.append((offset, data[:kept]))
            held = [(offset + kept, data[kept:])]
        for offset, data in self._unsynced:
            self._keep(offset, data)
        self._unsynced = held

    def cut(self) -> None:
        """Power is gone: what is not on the medium is forgotten."""
        self.gone = True
        pieces = self._unsynced if self.mode in ("honest", "reordering") else []
        for index, (offset, data) in enumerate(pieces):
            last = index == len(pieces) - 1
            if self.mode == "honest" and last:
                self._keep(offset, data[: self._torn(len(data))])
            elif last or self._chance.random() < 0.5:
                self._keep(offset, data)
        with open(self._image, "wb") as file:
            file.write(self._medium)

    def _torn(self, length: int, least: int = 0) -> int:
        """How many bytes arrive: whole sectors, not all of them."""
        return self._chance.randrange(least, max(length, SECTOR), SECTOR)

    def _keep(self, offset: int, data: bytes) -> None:
        self._medium[offset : offset + len(data)] = data


class Server:
    """Answers the kernel."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"powerfs", folder.encode(), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")

    def serve(self) -> None:
        """Until standard input ends or the file system is unmounted."""
        print("mounted", flush=True)
        while True:
            ready, _, _ = select.select([self._fuse, 0], [], [])
            if 0 in ready:
                command = os.read(0, 100).decode().strip()
                if not command:
                    return
                answer = "done"
                if command == "cut":
                    self._disk.cut()
                elif command == "syncs":
                    answer = str(self._disk.syncs)
                elif command in MODES:
                    self._disk.turn(command)
                print(answer, flush=True)
            if self._fuse in ready:
                try:
                    request = os.read(self._fuse, MAX_WRITE + 4096)
                except OSError:  # unmounted; or the request was withdrawn
                    return
                self._answer(request)

    def _answer(self, request: bytes) -> None:
        _, opcode, unique, node, *_ = HEADER.unpack_from(request)
        if opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET: want no answer
            return
        try:
            body = self._carry_out(opcode, node, request[HEADER.size :])
            head = ANSWER.pack(ANSWER.size + len(body), 0, unique)
        except OSError as error:
            body = b""
            head = ANSWER.pack(ANSWER.size, -(error.errno or EIO), unique)
        with suppress(OSError):  # whoever asked is gone
            os.write(self._fuse, head + body)

    def _carry_out(self, opcode: int, node: int, body: bytes) -> bytes:
        disk = self._disk
        match opcode:
            case 26:  # INIT: big writes, 256 pages a request
                _, _, readahead, _ = struct.unpack_from("<IIII", body)
                flags = 1 << 5 | 1 << 22
                return struct.pack("<IIIIHHIIHHI28x", 7, 31, readahead, flags, 16, 12, MAX_WRITE, 1, 256, 0, 0)
            case 1:  # LOOKUP
                if node != ROOT or body != b"disk\0":
                    raise OSError(ENOENT, "")
                return struct.pack("<QQQQII", DISK, 0, 0, 0, 0, 0) + self._attributes(DISK)
            case 3 | 4:  # GETATTR, SETATTR
                return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
            case 14 | 27:  # OPEN, OPENDIR: with direct I/O, the kernel keeps no copy of its own
                return struct.pack("<QII", 0, 1 if node == DISK else 0, 0)
            case 17:  # STATFS
                return struct.pack("<QQQQQIIII24x", 1 << 20, 1 << 19, 1 << 19, 10, 10, 4096, 255, 4096, 0)
            case 18 | 29 | 38:  # RELEASE, RELEASEDIR, DESTROY
                return b""
            case 15 | 16 | 20 | 25 if disk.gone:
                raise OSError(EIO, "")
            case 15:  # READ
                _, offset, length = struct.unpack_from("<QQI", body)
                return bytes(disk.content[offset : offset + length])
            case 16:  # WRITE
                _, offset, length = struct.unpack_from("<QQI", body)
                disk.write(offset, body[40 : 40 + length])
                return struct.pack("<II", length, 0)
            case 20:  # FSYNC, and fdatasync
                disk.sync()
                return b""
            case 25:  # FLUSH: a descriptor is closed, which promises nothing
                return b""
            case 28:  # READDIR
                return b""
        raise OSError(ENOSYS, "")

    def _attributes(self, node: int) -> bytes:
        length = len(self._disk.content) if node == DISK else 0
        mode = stat.S_IFREG | 0o600 if node == DISK else stat.S_IFDIR | 0o700
        return ATTR.pack(node, length, length // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


if __name__ == "__main__":
    Server(Disk(sys.argv[1], int(sys.argv[3])), sys.argv[2]).serve()
