"""Files with two identities: an overlay shows a file of the folder underneath with another number."""

from __future__ import annotations

from collections.abc import Sequence

from . import kernel
from .devices import DevNumber
from .kernel import Node
from .mounts import Mount

FileId = tuple[DevNumber, int]
"""File system and inode of a file."""


def file_id(node: Node) -> FileId:
    """Identity of a looked-up file."""
    return DevNumber(*node.device), node.inode


class Overlays:
    """The mounted overlays. They keep the birth time of the file underneath, to the nanosecond."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self._mounts = {mount.mount_id for mount in mounts if mount.fs_type == "overlay"}

    def shows(self, node: Node) -> bool:
        """True if the file was reached through an overlay."""
        return node.mount_id in self._mounts

    def birth_of(self, file: FileId, path: str) -> tuple[int, bool] | None:
        """Birth time of a file, and True if the path leads through an overlay; None without overlays, or if the path no
        longer leads to the file."""
        node = kernel.node_at(path, born=True) if self._mounts else None
        if node is None or node.birth_ns is None or file_id(node) != file:
            return None
        return node.birth_ns, self.shows(node)

    def same(self, file: FileId, path: str, other: FileId, others_path: str) -> bool:
        """True if the two are one file."""
        if file == other:
            return True
        first, second = self.birth_of(file, path), self.birth_of(other, others_path)
        return first is not None and second is not None and first[0] == second[0] and (first[1] or second[1])
