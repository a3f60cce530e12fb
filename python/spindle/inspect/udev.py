"""Properties of devices from udev (or, without it, lsblk). udev stores them in /run/udev/data, one per line:
E:KEY=value."""

from __future__ import annotations

from typing import Any

from .reading import Reading, dig_list, dig_text
from .tree import LONG, ReadError, Tool, Tree, plain

_LSBLK = Tool(
    "lsblk",
    "all",
    ("lsblk", "--json", "--bytes", "--all", "--output", "KNAME,FSTYPE,LABEL,UUID,PTTYPE,TRAN,MODEL,SERIAL"),
)
_AS_UDEV = {
    "fstype": "ID_FS_TYPE",
    "uuid": "ID_FS_UUID",
    "label": "ID_FS_LABEL",
    "pttype": "ID_PART_TABLE_TYPE",
    "tran": "ID_TRANSPORT",
    "model": "ID_MODEL",
    "serial": "ID_SERIAL_SHORT",
}


class Udev:
    """Properties by device number, or by name from lsblk."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._notes: dict[str, str] = {}
        listing = Reading(tree, self._notes).json("lsblk", _LSBLK)
        self._listed: dict[str, dict[str, str]] = {}
        self._list(dig_list(listing, "blockdevices"))

    @property
    def why(self) -> str:
        """Reason for missing properties."""
        return "udev has no data on it" + (f"; {self._notes['lsblk']}" if self._notes else ", nor does lsblk report it")

    def _list(self, rows: list[Any]) -> None:
        pending = list(rows)
        while pending:
            row = pending.pop()
            pending.extend(dig_list(row, "children"))
            name = dig_text(row, "kname")
            if name is not None:
                found = {key: dig_text(row, column) for column, key in _AS_UDEV.items()}
                self._listed[name] = {key: text for key, text in found.items() if text}

    def of(self, name: str, number: str | None) -> dict[str, str]:
        """All properties of a block device."""
        return {**self._listed.get(name, {}), **(self.entry(f"b{number}") if number else {})}

    def entry(self, key: str) -> dict[str, str]:
        """One file of udev's data: `b8:0`, `+pci:0000:03:00.0`."""
        try:
            text = self._tree.read(f"run/udev/data/{key}", LONG).decode(errors="replace")
        except ReadError:
            return {}
        pairs = (line[2:].partition("=") for line in text.splitlines() if line.startswith("E:"))
        return {name: plain(value) for name, _, value in pairs if value}

    def links(self, number: str) -> list[str]:
        """Names of a device under /dev that udev made: disk/by-id/..., mapper/..., md/..."""
        try:
            text = self._tree.read(f"run/udev/data/b{number}", LONG).decode(errors="replace")
        except ReadError:
            return []
        return [line[2:] for line in text.splitlines() if line.startswith("S:")]
