"""Block devices of a tree: names, kinds, layers below and above."""

from __future__ import annotations

import posixpath
import re

from spindle.host.devices import DevNumber

from .reading import number, raw, value
from .tree import Tree

_VIRTUAL = re.compile(r"(loop|zram|ram|nbd|bcache|rbd|drbd|zd)\d")
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Nodes:
    """All block devices. Reads sysfs once for each question and caches the answer."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.folders: dict[str, str] = {}
        self.numbers: dict[str, str] = {}
        for name in tree.names("sys/class/block") or tree.names("sys/block"):
            self._meet(name)
        for name in list(self.folders):  # a capture may have only /sys/block
            for inside in self._partition_names(name):
                self._meet(inside)
        self._loops = {name: file for name in self.folders if (file := self.loop_file(name)) is not None}

    def _meet(self, name: str) -> None:
        if name in self.folders:
            return
        for way in (f"sys/class/block/{name}", f"sys/block/{name}", *self._inside_disk(name)):
            folder = self.tree.resolve(way)
            if folder is not None:
                self.folders[name] = folder
                if (dev := value(self.tree, f"{folder}/dev")) is not None and re.fullmatch(r"[0-9]+:[0-9]+", dev):
                    self.numbers[dev] = name
                return

    def _inside_disk(self, name: str) -> list[str]:
        found = re.fullmatch(r"(.*[0-9])p[0-9]+|(.*[^0-9])[0-9]+", name)
        return [f"sys/block/{found[1] or found[2]}/{name}"] if found else []

    def folder(self, name: str) -> str:
        """Its folder in sysfs, without links."""
        return self.folders[name]

    def by_number(self, dev: DevNumber) -> str | None:
        """Name of the device with this number."""
        return self.numbers.get(str(dev))

    def __contains__(self, name: str) -> bool:
        return name in self.folders

    def in_use(self, name: str) -> bool:
        """True if it has a size, which unset loop devices and empty slots lack."""
        return self.kind(name) == "disk" or number(self.tree, f"{self.folder(name)}/size") != 0

    def kind(self, name: str) -> str:
        """disk, partition, md, dm, loop ..., path (a hidden path to an NVMe namespace)."""
        folder = self.folder(name)
        if self.tree.resolve(f"{folder}/partition") is not None:
            return "partition"
        for inside in ("md", "dm"):
            if self.tree.resolve(f"{folder}/{inside}") is not None:
                return inside
        if found := _VIRTUAL.match(name):
            return found[1]
        if value(self.tree, f"{folder}/hidden") == "1" or re.fullmatch(r"nvme\d+c\d+n\d+", name):
            return "path"
        if re.fullmatch(r"md(_d)?\d+|dm-\d+", name):
            return name[:2]
        return "disk"

    def whole(self, name: str) -> str:
        """The disk of a partition; any other device itself."""
        if self.kind(name) != "partition":
            return name
        disk = posixpath.basename(posixpath.dirname(self.folder(name)))
        return disk if disk in self.folders else name

    def partitions(self, name: str) -> list[str]:
        """Partitions of a disk."""
        return [inside for inside in self._partition_names(name) if inside in self.folders]

    def _partition_names(self, name: str) -> list[str]:
        folder = self.folders[name]
        inside = [found for found in self.tree.names(folder) if found.startswith(name)]
        return [found for found in inside if self.tree.resolve(f"{folder}/{found}/partition") is not None]

    def below(self, name: str) -> list[str]:
        """Block devices that it is made of. sysfs does not show the device of a loop device's file: see `gather`."""
        whole = self.whole(name)
        if whole != name:
            return [whole]
        return [member for member in self.tree.names(f"{self.folder(name)}/slaves") if member in self.folders]

    def above(self, name: str) -> list[str]:
        """Partitions, devices built on it, loop devices over it."""
        holders = [holder for holder in self.tree.names(f"{self.folder(name)}/holders") if holder in self.folders]
        over = [loop for loop, file in self._loops.items() if file == "/dev/" + name]
        return [*self.partitions(name), *holders, *over]

    def loop_file(self, name: str) -> str | None:
        """The file behind a loop device, as the kernel names it."""
        found = raw(self.tree, f"{self.folder(name)}/loop/backing_file") if name.startswith("loop") else None
        return found.decode(errors="replace").rstrip("\n") or None if found else None

    def pci(self, name: str) -> str | None:
        """PCI address of its controller."""
        return pci_of(self.folder(name))


def pci_of(folder: str) -> str | None:
    """The nearest PCI device on the path to a folder of sysfs."""
    return next((part for part in reversed(folder.split("/")) if _PCI.fullmatch(part)), None)


def component(folder: str, pattern: str) -> str | None:
    """The last component of a path that matches."""
    return next((part for part in reversed(folder.split("/")) if re.fullmatch(pattern, part)), None)


def up_to(folder: str, part: str) -> str:
    """The path up to a component."""
    parts = folder.split("/")
    return "/".join(parts[: len(parts) - parts[::-1].index(part)]) if part in parts else folder
