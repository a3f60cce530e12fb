"""The kernel's source: Debian's package `linux-source-6.1`, or a folder."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError, LabMissing

SERIES = "6.1"
"""The kernel that the configuration is made for."""
PACKAGE = f"linux-source-{SERIES}"
TARBALL = Path(f"/usr/src/{PACKAGE}.tar.xz")

_OF_PACKAGE = re.compile(r"(\d+\.\d+\.\d+)-")
_MAKEFILE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL)\s*=\s*(\d+)\s*$", re.M)


@dataclass(frozen=True)
class Source:
    """A source that is not unpacked yet: the package's archive, or a folder that is copied."""

    path: Path

    def version(self) -> str | None:
        """The version, where it is known without unpacking."""
        if self.path.is_dir():
            return version(self.path)
        said = subprocess.run(
            ["dpkg-query", "--showformat=${Version}", "--show", PACKAGE], capture_output=True, text=True, check=False
        )
        found = _OF_PACKAGE.match(said.stdout)
        return found[1] if found and not said.returncode else None

    def unpack(self, folder: Path) -> Path:
        """Put the source into an empty folder; the folder of its Makefile. Raises LabError."""
        if self.path.is_dir():
            command = ["cp", "-a", "--reflink=auto", f"{self.path}/.", str(folder)]
        else:
            command = ["tar", "-C", str(folder), "--strip-components=1", "-xf", str(self.path)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode:
            raise LabError(f"{self.path}: cannot be unpacked ({said.stderr.strip().splitlines()[-1:]})")
        return folder


def find(folder: Path | None) -> Source:
    """The source to build: `folder`, or Debian's package. Raises LabMissing."""
    if folder is not None:
        if not (folder / "arch/um/Kconfig").is_file():
            raise LabMissing(f"{folder}: not the source of a kernel; name the folder that contains arch/um")
        return Source(folder.absolute())
    if not TARBALL.is_file():
        raise LabMissing(
            f"the kernel's source is missing; `apt-get install {PACKAGE}` installs it (as root; Debian 12), or "
            f"`source=` names a folder with the source of Linux {SERIES}"
        )
    return Source(TARBALL)


def version(tree: Path) -> str:
    """The version that a tree's Makefile names. Raises LabError."""
    parts = dict(_MAKEFILE.findall((tree / "Makefile").read_text()[:2000]))
    if len(parts) != 3:
        raise LabError(f"{tree}/Makefile names no version; this is not the source of a kernel")
    return ".".join(parts[key] for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
