"""Builds the lab's kernel: User Mode Linux with time travel, from the distribution's source.

The source is changed in a few places, each because an unchanged kernel would make two runs differ or leave something
behind. It is built in a folder of the cache, which is removed in the end.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from . import cache, source
from .errors import LabError
from .files import place
from .programs import FOR_THE_KERNEL, require

DEFAULT_HZ = 250
"""HZ of Debian's kernels on amd64; md's resync and writeback sleep in whole ticks."""


@dataclass(frozen=True)
class Edit:
    """One change of the source."""

    file: str
    old: str
    new: str


_SPLITMIX = """\
	/* The same numbers in every run (SplitMix64; Steele, Lea & Flood, OOPSLA 2014). */
	static unsigned long state;
	unsigned char *bytes = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned long z = state += 0x9E3779B97F4A7C15UL;

		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9UL;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBUL;
		bytes[i] = z ^ (z >> 31);
	}
	return len;
"""


def _edits(hz: int) -> list[Edit]:
    traced = "PTRACE_O_TRACESYSGOOD"
    stub = "arch/um/os-Linux/skas/process.c"
    return [
        # User Mode Linux has 100, and no option for it.
        Edit("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", f"config HZ\n\tint\n\tdefault {hz}\n"),
        # UUIDs, hash seeds and random delays come from here.
        Edit("arch/um/os-Linux/util.c", "\treturn getrandom(buf, len, flags);\n", _SPLITMIX),
        # Processes in the lab must die with it: without its tracer their system calls would be the host's.
        Edit(stub, f"(void *) {traced})", f"(void *) ({traced} | PTRACE_O_EXITKILL))"),
        Edit(stub, f"(void *){traced})", f"(void *)({traced} | PTRACE_O_EXITKILL))"),
    ]


def configuration() -> bytes:
    """The options that differ from User Mode Linux's defaults."""
    return files(__package__).joinpath("image/kernel.config").read_bytes()


def digest(hz: int = DEFAULT_HZ) -> str:
    """Name of configuration and changes."""
    changes = repr(_edits(hz)).encode()
    return hashlib.sha256(configuration() + changes).hexdigest()[:12]


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
    for edit in _edits(hz):
        _apply(tree, edit)
    place(tree / ".config", configuration())
    _make(tree, "olddefconfig", 1)
    in_force = (tree / ".config").read_text().splitlines()
    for line in configuration().decode().splitlines():
        # An option whose menu is off is not listed at all.
        is_off = line.startswith("# ") and not any(line.split()[1] + "=" in found for found in in_force)
        if line not in in_force and not is_off:
            raise LabError(f"the kernel's configuration does not take `{line}`: its source is too old or too new")


def _apply(tree: Path, edit: Edit) -> None:
    path = tree / edit.file
    text = path.read_text()
    if edit.old not in text:
        raise LabError(f"{edit.file}: the kernel's source is not as the lab knows it; use Linux {source.SERIES}")
    place(path, text.replace(edit.old, edit.new).encode())


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
