"""Builds the lab's kernel: User Mode Linux with time travel, from the distribution's source.

The source is changed in a few places (`changes`). It is built in a folder of the cache, which is removed in the end.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from . import cache, changes, source
from .errors import LabError
from .files import place
from .programs import FOR_THE_KERNEL, require

DEFAULT_HZ = 250
"""HZ of Debian's kernels on amd64; md's resync and writeback sleep in whole ticks."""


def configuration() -> bytes:
    """The options that differ from User Mode Linux's defaults."""
    return files(__package__).joinpath("image/kernel.config").read_bytes()


def digest(hz: int = DEFAULT_HZ) -> str:
    """Name of configuration and changes."""
    return hashlib.sha256(configuration() + changes.digested(hz)).hexdigest()[:12]


def current(hz: int = DEFAULT_HZ, version: str | None = None) -> cache.Kernel:
    """The kernel to boot, the newest of this version (`6.1`). Raises LabMissing if none is built."""
    return cache.built(hz, digest(hz), version)


def build(folder: Path | None, hz: int, jobs: int, say: Callable[[str], None]) -> cache.Kernel:
    """Build the kernel, unless it is there. `folder`: a source other than Debian's. Raises LabMissing or LabError."""
    found = source.find(folder)
    version = found.version()
    if version is not None and (there := cache.Kernel(version, hz, digest(hz))).is_built:
        return there
    require(FOR_THE_KERNEL)
    with _workshop() as tree:
        say(f"unpacking {found.path}")
        found.unpack(tree)
        wanted = cache.Kernel(source.version(tree), hz, digest(hz))
        if wanted.is_built:
            return wanted
        say(f"building Linux {wanted.version} for the lab, about 7 minutes of CPU time")
        _configure(tree, hz)
        _make(tree, "linux", jobs)
        _keep(tree, wanted)
    return wanted


@contextmanager
def _workshop() -> Iterator[Path]:
    above = cache.folder()
    above.mkdir(parents=True, exist_ok=True)
    tree = Path(tempfile.mkdtemp(prefix="build-", dir=above))
    try:
        yield tree
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def _configure(tree: Path, hz: int) -> None:
    changes.apply(tree, hz)
    place(tree / ".config", configuration())
    _make(tree, "olddefconfig", 1)
    in_force = (tree / ".config").read_text().splitlines()
    for line in configuration().decode().splitlines():
        # An option whose menu is off is not listed at all.
        is_off = line.startswith("# ") and not any(line.split()[1] + "=" in found for found in in_force)
        if line not in in_force and not is_off:
            raise LabError(f"the kernel's configuration does not take `{line}`: its source is too old or too new")


_IDENTITY = {"KBUILD_BUILD_TIMESTAMP": "2025-01-01", "KBUILD_BUILD_USER": "spindle", "KBUILD_BUILD_HOST": "lab"}
"""Names in the kernel's version: a build elsewhere or later gives the same."""


def _make(tree: Path, target: str, jobs: int) -> None:
    command = ["make", "-C", str(tree), "ARCH=um", f"-j{jobs}", target]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "KCFLAGS": "-w", **_IDENTITY}
    said = subprocess.run(
        ["nice", "-n", "10", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if said.returncode:
        wrong = [line for line in said.stdout.splitlines() if "error" in line.lower() or "***" in line]
        raise LabError(f"the kernel cannot be built: {(wrong or ['make failed'])[0].strip()}")


def _keep(tree: Path, kernel: cache.Kernel) -> None:
    kernel.folder.mkdir(parents=True, exist_ok=True)
    stripped = tree / "linux.stripped"
    subprocess.run(["strip", "-o", str(stripped), str(tree / "linux")], check=True)
    place(kernel.folder / "config", (tree / ".config").read_bytes())
    place(kernel.program, stripped.read_bytes(), 0o755)
