"""Where kernels and archives are kept: a folder for each kernel, named by version, HZ and configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from spindle.base.cache import cache_folder

BUILD = "`spindle lab build` (or `make lab`)"
"""The command that fills the cache."""


def folder() -> Path:
    """The lab's part of the cache."""
    return cache_folder() / "lab"


@dataclass(frozen=True)
class Kernel:
    """A kernel in the cache."""

    version: str
    """As its source names it: `6.1.192`."""
    hz: int
    """Timer interrupts a second."""
    digest: str
    """First digits of the SHA-256 over configuration and changes of the source."""

    @property
    def series(self) -> str:
        """`6.1` of `6.1.192`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def folder(self) -> Path:
        """Its folder in the cache."""
        return folder() / "kernels" / f"{self.version}-hz{self.hz}-{self.digest}"

    @property
    def program(self) -> Path:
        """The kernel, an ordinary program."""
        return self.folder / "linux"

    @property
    def is_built(self) -> bool:
        """True if the kernel is there."""
        return self.program.is_file()


_NAME = re.compile(r"(?P<version>\d+(?:\.\d+)+)-hz(?P<hz>\d+)-(?P<digest>[0-9a-f]+)")


def built() -> list[Kernel]:
    """All kernels in the cache, the newest first."""
    kernels = [_parse(path.name) for path in (folder() / "kernels").glob("*")]
    there = [one for one in kernels if one and one.is_built]
    return sorted(there, key=lambda one: [int(part) for part in one.version.split(".")], reverse=True)


def _parse(name: str) -> Kernel | None:
    found = _NAME.fullmatch(name)
    return Kernel(found["version"], int(found["hz"]), found["digest"]) if found else None


def archive(digest: str) -> Path:
    """The archive of this content."""
    return folder() / "initramfs" / f"{digest}.cpio"
