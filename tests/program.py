"""Runs the program as a separate process, and keeps its result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-m", "spindle.cli"]


class Ended(NamedTuple):
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("spindle: ")
        return lines[0]


Invoke = Callable[..., Ended]
"""The fixture `invoke`: runs a command line in this process."""
Amid = Callable[[Callable[[], object]], None]
"""The fixture `amid`: has something done once a load is being measured."""


def spindle(*arguments: str | Path, cwd: Path | None = None, timeout: float = 120.0, stdin: str | None = None) -> Ended:
    """Run a command line to its end."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a process that gets signals; the caller must end it."""
    return subprocess.Popen([*COMMAND, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], timeout: float | None = 30.0) -> Ended:
    """Wait for the end of the process."""
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


def of_session(leader: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found
