"""The program as a process of its own, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-m", "spindle.cli"]


class Ended(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("spindle: ")
        return lines[0]


def spindle(*arguments: str | Path, cwd: Path | None = None, timeout: float = 120.0, stdin: str | None = None) -> Ended:
    """Run a command line to its end."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start one, to be signalled; it is the caller's to end."""
    return subprocess.Popen([*COMMAND, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], timeout: float | None = 30.0) -> Ended:
    """Wait for it."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return Ended(process.returncode, out, err)


def inside(folder: Path) -> list[str]:
    """Processes that work in a folder below this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = os.readlink(process / "cwd")
        except OSError:
            continue
        if place.startswith(f"{folder}/"):
            found.append(process.name)
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Fail unless it comes about in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.05)
