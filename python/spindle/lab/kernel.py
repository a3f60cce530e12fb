"""Builds the lab's kernel: User Mode Linux with time travel, from the distribution's source.

The source is changed in a few places (`changes`). The configuration (`image/kernel.config`) is common to all series but
for a few options (`image/kernel-6.1.config`). The kernel is built in a folder of the cache that is removed in the end.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from . import cache, changes, source
from .errors import LabError, LabMissing
from .files import place
from .janitor import Janitor, passing_folder
from .programs import FOR_THE_KERNEL, require

DEFAULT_HZ = 250
"""HZ of Debian's kernels on amd64; md's resync and writeback sleep in whole ticks."""


def configuration(series: str) -> bytes:
    """The options of a series of kernels that differ from User Mode Linux's defaults."""
    image = files(__package__).joinpath("image")
    return b"".join(image.joinpath(name).read_bytes() for name in ("kernel.config", f"kernel-{series}.config"))


def digest(series: str, hz: int = DEFAULT_HZ) -> str:
    """Name of configuration and changes."""
    return hashlib.sha256(configuration(series) + changes.digested(series, hz)).hexdigest()[:12]


def current(hz: int = DEFAULT_HZ, version: str | None = None) -> cache.Kernel:
    """The kernel to boot: of this version (`6.1`, or `6.1.192`), or of the first of `source.SERIES` that is built; the
    newest of several. Raises LabMissing if none is built.
    """
    wanted = source.SERIES if version is None else (source.series(version),)
    for series in wanted:
        fitting = [one for one in cache.built() if (one.series, one.hz, one.digest) == (series, hz, digest(series, hz))]
        for one in fitting:
            if version in (None, series, one.version):
                return one
        if fitting:
            there = ", ".join(one.version for one in fitting)
            raise LabMissing(f"the lab has no Linux {version}, but {there}; write `{series}`, or build it")
    named, command = "kernel", cache.BUILD
    if version is not None:
        named, command = f"Linux {wanted[0]}", f"`spindle lab build` with `kernel={wanted[0]}`"
    raise LabMissing(f"the lab's {named} is not built; {command} builds it, once, in about 10 minutes of CPU time")


def build(found: source.Source, hz: int, jobs: int, say: Callable[[str], None]) -> cache.Kernel:
    """Build the kernel of a source, unless it is there. Raises LabMissing or LabError."""
    name = digest(found.series, hz)
    known = found.version()
    if known is not None and (there := cache.Kernel(known, hz, name)).is_built:
        return there
    require(FOR_THE_KERNEL)
    cache.folder().mkdir(parents=True, exist_ok=True)
    with passing_folder(cache.folder()) as janitor:
        tree = janitor.folder
        say(f"unpacking {found.path}")
        found.unpack(janitor)
        wanted = cache.Kernel(source.version(tree), hz, name)
        if wanted.is_built:
            return wanted
        say(f"building Linux {wanted.version} for the lab, about 7 minutes of CPU time")
        _configure(janitor, found.series, hz)
        _make(janitor, "linux", jobs)
        _keep(tree, wanted)
    return wanted


def _configure(janitor: Janitor, series: str, hz: int) -> None:
    tree = janitor.folder
    options = configuration(series)
    changes.apply(tree, series, hz)
    place(tree / ".config", options)
    _make(janitor, "olddefconfig", 1)
    in_force = (tree / ".config").read_text().splitlines()
    for line in options.decode().splitlines():
        # An option whose menu is off is not listed at all.
        is_off = line.startswith("# ") and not any(line.split()[1] + "=" in found for found in in_force)
        if line not in in_force and not is_off:
            raise LabError(f"the kernel's configuration does not take `{line}`: its source is too old or too new")


_IDENTITY = {"KBUILD_BUILD_TIMESTAMP": "2025-01-01", "KBUILD_BUILD_USER": "spindle", "KBUILD_BUILD_HOST": "lab"}
"""Names in the kernel's version: a build elsewhere or later gives the same."""


def _make(janitor: Janitor, target: str, jobs: int) -> None:
    command = ["make", "-C", str(janitor.folder), "ARCH=um", f"-j{jobs}", target]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "KCFLAGS": "-w", **_IDENTITY}
    status, said = janitor.run(["nice", "-n", "10", *command], environment)
    if status:
        wrong = [line for line in said.splitlines() if "error" in line.lower() or "***" in line]
        raise LabError(f"the kernel cannot be built: {(wrong or ['make failed'])[0].strip()}")


def _keep(tree: Path, kernel: cache.Kernel) -> None:
    kernel.folder.mkdir(parents=True, exist_ok=True)
    stripped = tree / "linux.stripped"
    subprocess.run(["strip", "-o", str(stripped), str(tree / "linux")], check=True)
    place(kernel.folder / "config", (tree / ".config").read_bytes())
    place(kernel.program, stripped.read_bytes(), 0o755)
