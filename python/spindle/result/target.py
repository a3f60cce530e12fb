"""The target of a record: where the load ran, and the properties of its kind.

`KINDS` has one entry for each kind. Other modules use these properties and do not compare names of kinds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from spindle.base import units

NULL = "null"
MODEL = "model"
KERNEL = "kernel"
NULL_PREFIX = "null:"
"""The null target is named with its size: `null:1GiB`."""


class Target(Struct, frozen=True, kw_only=True):
    """Where the load ran."""

    asked: str
    """As given on the command line."""
    kind: str
    """`device`, `file`, `directory` (files made in it), `model` (a modelled machine), `kernel` (one under
    the real kernel: exact), or `null` (no I/O at all)."""
    size_bytes: int
    created: bool = False
    """True if the file was made for this run."""
    has_device: bool = True
    """True if a block device with counters is known under it."""
    detail: dict[str, Any] = {}
    """Details from the machine: device, identity, layers below."""

    @property
    def traits(self) -> Kind:
        """The properties of its kind."""
        return KINDS.get(self.kind) or Kind(self.kind, self.kind)

    @property
    def short_name(self) -> str:
        """The name as asked: `/dev/sda`, `six-sata-f2`. A test file that Spindle named is shown by its folder."""
        folder, _, name = self.asked.rpartition("/")
        unnamed = self.created and name.startswith("spindle-test-")
        return f"a test file in {folder or '.'}" if unnamed else self.asked

    @property
    def place(self) -> str:
        """Its name, without folder and suffix of a machine file: for tables with real and modelled storage."""
        return self.asked.rpartition("/")[2].removesuffix(".toml") if self.traits.is_modelled else self.short_name

    @property
    def words(self) -> str:
        """`t.bin (file of 4 GiB on vda, ext4)`."""
        return self.traits.words_of(self)


@dataclass(frozen=True)
class Kind:
    """A kind of target on this machine."""

    name: str
    """Its name in records."""
    words: str
    """Its name in a list of what all runs of a report have in common."""
    is_modelled: bool = False
    """Computed: the same machine, workload and seed give the same record, wherever and whenever it runs."""
    has_kernel: bool = False
    """A modelled machine under the real kernel: page cache, settings and counters are a kernel's."""
    does_io: bool = True
    """False: requests complete at once, and the figures are those of the load generator."""
    is_device: bool = False
    """Requests reach a block device unchanged. It is written only if `erase=` names it."""
    on_files: bool = False
    """A file system is between the load and the device."""
    is_one_file: bool = False
    """It can be made with `create=SIZE`."""

    def words_of(self, target: Target) -> str:
        """Name, size, devices and file system of a target of this kind."""
        listed = target.detail.get("devices")
        devices = [device for device in listed if isinstance(device, dict)] if isinstance(listed, list) else []
        parts = [self._size_words(target)]
        if self.on_files and devices:
            parts[0] += " on " + ", ".join(str(device.get("name")) for device in devices)
        parts.extend(str(device["model"]) for device in devices if device.get("model"))
        if fs := target.detail.get("file_system"):
            parts.append(str(fs))
        return f"{target.short_name} ({', '.join(parts)})"

    def _size_words(self, target: Target) -> str:
        return f"{target.kind} of {units.size(target.size_bytes)}"


class _Directory(Kind):
    def _size_words(self, target: Target) -> str:
        """`16 files of 1 GiB in all`."""
        if not target.size_bytes:
            return target.kind
        sets = target.detail.get("sets")
        known = [each.get("files") for each in sets if isinstance(each, dict)] if isinstance(sets, list) else []
        count = sum(files for files in known if isinstance(files, int))
        size = units.size(target.size_bytes)
        return f"a file of {size}" if count == 1 else f"{count} files of {size} in all"


class _Null(Kind):
    def words_of(self, target: Target) -> str:
        return f"null target of {units.size(target.size_bytes)}"


class _Model(Kind):
    def words_of(self, target: Target) -> str:
        drives = Counter(str(model) for model in target.detail.get("drives") or [])
        words = [f"{count} x {model}" if count > 1 else model for model, count in drives.items()]
        level = [str(target.detail["level"]).upper()] if target.detail.get("level") else []
        how = f"Linux {target.detail.get('kernel')} on modelled drives" if self.has_kernel else "modelled"
        return f"{target.asked} ({how}: {', '.join([*level, *words, units.size(target.size_bytes)])})"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("device", "block device", is_device=True),
        Kind("file", "file", on_files=True, is_one_file=True),
        _Directory("directory", "directory", on_files=True),
        _Null(NULL, "null target", does_io=False),
        _Model(MODEL, "modelled", is_modelled=True),
        _Model(KERNEL, "Linux on modelled drives", is_modelled=True, has_kernel=True),
    )
}
