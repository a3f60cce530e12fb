"""Folders that disappear even if Spindle is killed, with the processes that work in them.

A shell makes the folder and waits for the end of its standard input, which comes with Spindle's own end, whatever that
is. Then it kills the group of processes that was named last, and removes the folder.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import LabError

_SCRIPT = """
trap '' PIPE
folder=$(mktemp -d "$1") || exit
echo "$folder"
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group"
rm -rf -- "$folder"
"""


class Janitor:
    """The shell that sees to a folder."""

    def __init__(self, folder: Path, pipe: IO[bytes]) -> None:
        """`pipe`: its standard input."""
        self.folder = folder
        self._pipe = pipe

    @contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """While this lasts, kill the group of processes if Spindle ends."""
        self._name(group)
        try:
            yield
        finally:
            self._name("")

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a command that is killed if Spindle ends: its exit status, and its output with errors."""
        running = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
        with self.watching(running.pid):
            try:
                said, _ = running.communicate()
            except BaseException:
                os.killpg(running.pid, 9)
                running.wait()
                raise
        return running.returncode, said

    def _name(self, group: object) -> None:
        with suppress(BrokenPipeError):
            self._pipe.write(f"{group}\n".encode())
            self._pipe.flush()


@contextmanager
def passing_folder(above: Path | None = None) -> Iterator[Janitor]:
    """A new folder in `above`, by default that of temporary files, for as long as this lasts. Raises LabError."""
    place = Path(tempfile.gettempdir()) if above is None else above
    shell = subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "spindle-lab-janitor", str(place / "spindle-lab-XXXXXXXX")],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    try:
        made = shell.stdout.readline().removesuffix(b"\n")
        if not made:
            raise LabError(f"{place}: no folder can be made there")
        yield Janitor(Path(os.fsdecode(made)), shell.stdin)
    finally:
        with suppress(BrokenPipeError):
            shell.stdin.close()
        shell.wait()
        shell.stdout.close()
