"""`load`, the program that makes the loads of measured cases: `image/load.c`, compiled once."""

from __future__ import annotations

import hashlib
import os
import subprocess
from importlib.resources import files
from pathlib import Path

from . import cache
from .errors import LabError
from .programs import require


def program() -> Path:
    """The program, one static binary. Raises LabMissing or LabError."""
    source = files(__package__).joinpath("image/load.c").read_bytes()
    path = cache.folder() / "programs" / hashlib.sha256(source).hexdigest()[:12] / "load"
    if not path.is_file():
        require({"gcc": "gcc"})
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"load.{os.getpid()}")
        said = subprocess.run(
            ["gcc", "-O2", "-static", "-x", "c", "-o", str(new), "-"], input=source, capture_output=True, check=False
        )
        if said.returncode:
            lines = said.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise LabError(f"the load program cannot be compiled: {lines[-1]}")
        new.replace(path)
    return path
