"""Archives as the kernel reads them at boot: cpio, format `newc` (Documentation/driver-api/early-userspace).

Owners, times and inode numbers are fixed, so that equal contents are equal bytes.
"""

from __future__ import annotations

import stat

_MAGIC = b"070701"
_END = "TRAILER!!!"


class Archive:
    """An archive that grows. Folders above an entry are added with it."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._names: set[str] = set()

    def folder(self, name: str) -> None:
        """Add a folder; `name` without a leading slash. Twice is once."""
        if name and name not in self._names:
            self._add(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """Add a file. The first of a name stays."""
        self._add(name, stat.S_IFREG | mode, data)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link. The first of a name stays."""
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._add(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def to_bytes(self) -> bytes:
        """The archive with its end. Its length is a multiple of 4: another one may follow it."""
        return bytes(self._data) + _entry(_END, 0, b"", (0, 0), 0)

    def _add(self, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        if name in self._names:
            return
        above = name.rpartition("/")[0]
        self.folder(above)
        self._names.add(name)
        self._data += _entry(name, mode, data, device, len(self._names))


def _entry(name: str, mode: int, data: bytes, device: tuple[int, int], number: int) -> bytes:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0)
    head = _MAGIC + b"".join(b"%08X" % field for field in fields) + encoded
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
