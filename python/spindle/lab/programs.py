"""Programs of this system that go into the lab, with the libraries they load, and the packages that bring them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import LabError, LabMissing

IN_THE_LAB = {
    "busybox": "busybox-static",
    "mdadm": "mdadm",
    "mkfs.xfs": "xfsprogs",
    "xfs_repair": "xfsprogs",
    "xfs_db": "xfsprogs",
    "xfs_io": "xfsprogs",
    "xfs_growfs": "xfsprogs",
    "mke2fs": "e2fsprogs",
    "e2fsck": "e2fsprogs",
    "dumpe2fs": "e2fsprogs",
    "tune2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "resize2fs": "e2fsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "btrfs": "btrfs-progs",
    "blkid": "util-linux",
    "lsblk": "util-linux",
}
"""Program -> package of Debian that brings it."""

FOR_THE_KERNEL = {
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "tar": "tar",
    "strip": "binutils",
    "perl": "perl",
}
"""Program that building the kernel needs -> package of Debian."""

FOR_A_BOOT = {"setarch": "util-linux", "taskset": "util-linux"}
"""Program that starts the kernel -> package of Debian."""

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(name: str) -> Path | None:
    """The program of this name, also where only root's PATH leads."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SBIN])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def require(wanted: Mapping[str, str]) -> None:
    """Raise LabMissing with the command that installs the packages of missing programs."""
    packages = {package for program, package in wanted.items() if find(program) is None}
    if packages:
        raise LabMissing(
            f"packages are missing; `apt-get install {' '.join(sorted(packages))}` installs them (as root)"
        )


_PAGE = 4096


def sizes(names: Iterable[str]) -> dict[Path, int]:
    """Return programs of this system, and the libraries that they load -> bytes of memory that each takes in the lab.

    Those are whole pages. Programs that are missing are left out.
    """
    found = [path for path in map(find, names) if path is not None]
    parts = {part for program in found for part in (program, *libraries(program))}
    return {part: -(-part.stat().st_size // _PAGE) * _PAGE for part in parts}


_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def libraries(program: Path) -> list[Path]:
    """The libraries that a program of this system loads; none for a script or a static program."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    ldd = find("ldd")
    if ldd is None:
        raise LabMissing("ldd is missing; `apt-get install libc-bin` installs it (as root)")
    said = subprocess.run([ldd, program], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    if "not found" in said.stdout:
        missing = re.findall(r"(\S+) => not found", said.stdout)
        raise LabError(f"{program}: its library {missing[0]} is missing; install the package that brings it")
    return [Path(path) for path in _LIBRARY.findall(said.stdout)]
