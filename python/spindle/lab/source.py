"""The kernel's source: Debian's package `linux-source-6.1` or its like for another series, or a folder."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError, LabMissing
from .janitor import Janitor

SERIES = ("6.1", "6.12")
"""Kernels whose source the changes know (`changes`), the one to take if none is named first."""

_OF_PACKAGE = re.compile(r"(\d+\.\d+\.\d+)-")
_MAKEFILE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL)\s*=\s*(\d+)\s*$", re.M)


def known(versions: Sequence[str] = SERIES) -> str:
    """Versions for a message: `6.1 or 6.12`."""
    return " or ".join(versions)


def series(version: str) -> str:
    """The series of a version: `6.1` of `6.1.192` and of `6.1`. Raises LabMissing if it is not one of `SERIES`."""
    found = ".".join(version.split(".")[:2])
    if found not in SERIES:
        raise LabMissing(f"Linux {version}: the lab's kernel is {known()}; name one of them")
    return found


def package(series: str) -> str:
    """Debian's package with the source."""
    return f"linux-source-{series}"


def tarball(series: str) -> Path:
    """The file that the package brings."""
    return Path(f"/usr/src/{package(series)}.tar.xz")


@dataclass(frozen=True)
class Source:
    """A source that is not unpacked yet: the package's archive, or a folder that is copied."""

    path: Path
    series: str
    """`6.1`."""

    def version(self) -> str | None:
        """The version, where it is known without unpacking."""
        if self.path.is_dir():
            return version(self.path)
        said = subprocess.run(
            ["dpkg-query", "--showformat=${Version}", "--show", package(self.series)],
            capture_output=True,
            text=True,
            check=False,
        )
        found = _OF_PACKAGE.match(said.stdout)
        return found[1] if found and not said.returncode else None

    def unpack(self, janitor: Janitor) -> None:
        """Put the source into an empty folder. Raises LabError."""
        folder = janitor.folder
        if self.path.is_dir():
            command = ["cp", "-a", "--reflink=auto", f"{self.path}/.", str(folder)]
        else:
            command = ["tar", "-C", str(folder), "--strip-components=1", "-xf", str(self.path)]
        status, said = janitor.run(command)
        if status:
            raise LabError(f"{self.path}: cannot be unpacked ({(said.strip().splitlines() or ['no message'])[-1]})")


def find(folder: Path | None, wanted: str | None = None) -> Source:
    """The source to build: `folder`, or Debian's package; of the series of `wanted` if that is given, otherwise of the
    first whose package is there. Raises LabMissing.
    """
    asked = None if wanted is None else series(wanted)
    return _packaged(asked) if folder is None else _unpacked(folder, asked)


def _unpacked(folder: Path, asked: str | None) -> Source:
    if not (folder / "arch/um/Kconfig").is_file():
        raise LabMissing(f"{folder}: not the source of a kernel; name the folder that contains arch/um")
    there = version(folder)
    if asked not in (None, series(there)):
        raise LabMissing(f"{folder}: the source of Linux {there}, not of {asked}")
    return Source(folder.absolute(), series(there))


def _packaged(asked: str | None) -> Source:
    wanted = SERIES if asked is None else (asked,)
    for one in wanted:
        if tarball(one).is_file():
            return Source(tarball(one), one)
    raise LabMissing(
        f"the kernel's source is missing; `apt-get install {package(wanted[0])}` installs it (as root; Debian), or "
        f"`source=` names a folder with the source of Linux {known(wanted)}"
    )


def version(tree: Path) -> str:
    """The version that a tree's Makefile names. Raises LabError."""
    parts = dict(_MAKEFILE.findall((tree / "Makefile").read_text()[:2000]))
    if len(parts) != 3:
        raise LabError(f"{tree}/Makefile names no version; this is not the source of a kernel")
    return ".".join(parts[key] for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
