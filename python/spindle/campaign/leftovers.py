"""What a trial on the real machine must leave behind no trace of, written down before it is done, so that whoever
resumes a campaign that was killed takes it down first: commands of teardown, scratch file systems, a load that runs on.

Knobs have their own journal (`host.knobs`).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from spindle.host.register import boot_id, state_folder
from spindle.host.testfile import sweep_leftovers
from spindle.run.errors import RunFailed


class Scratch(msgspec.Struct, frozen=True):
    """A file system that was made for a trial."""

    device: str
    uuid: str
    """Which it got from us: nothing else is ever wiped."""
    mount: str


class Note(msgspec.Struct, frozen=True):
    """What is to be taken down."""

    boot: str
    teardown: tuple[tuple[str, ...], ...] = ()
    scratch: Scratch | None = None
    load: tuple[int, str] | None = None
    """Process group and start time of its leader."""


def _folder() -> Path:
    return state_folder() / "campaigns"


@contextmanager
def noted(campaign: str, what: str, note: Note) -> Iterator[None]:
    """Within it, the note is on the disk. `campaign`: its identity."""
    folder = _folder()
    path = folder / f"{campaign}.{what}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with draft.open("xb") as file:
            file.write(msgspec.json.encode(note))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise RunFailed(f"{folder}: cannot be written to ({error.strerror}); set XDG_STATE_HOME to a folder of yours") from None
    yield
    path.unlink(missing_ok=True)  # not after an error in between: then it is not taken down


def take_down(campaign: str) -> list[str]:
    """What a killed run of this campaign left; lines about it for people. Raises RunFailed where it cannot be."""
    lines: list[str] = []
    for leftover in sweep_leftovers():
        lines.append(leftover.line)
    for path in sorted(_folder().glob(f"{campaign}.*.json"), key=lambda one: one.stat().st_mtime_ns, reverse=True):
        try:
            note = msgspec.json.decode(path.read_bytes(), type=Note)
        except (OSError, msgspec.DecodeError):
            path.unlink(missing_ok=True)  # torn: it was never complete, so nothing was begun
            continue
        lines += _take_down(note)
        path.unlink(missing_ok=True)
    return lines


def _take_down(note: Note) -> list[str]:
    lines = []
    same_boot = note.boot == boot_id()
    if note.load is not None and same_boot and end_group(*note.load):
        lines.append("the load that a killed campaign left running was ended")
    for command in note.teardown if same_boot else ():
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        said = f"exit status {done.returncode}" if done.returncode else "done"
        lines.append(f"teardown that a killed campaign left undone: {' '.join(command)}: {said}")
    if note.scratch is not None:
        from spindle.campaign.scratch import remove

        lines += remove(note.scratch)
    return lines


def start_time(pid: int) -> str | None:
    """Of a process, in ticks since boot (proc_pid_stat(5)); None: there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def end_group(group: int, started: str) -> bool:
    """End a process group of ours; a number that another process has got since is left alone."""
    if start_time(group) != started:
        return False
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    return True


def note_now(**what: object) -> Note:
    """Of this boot."""
    return msgspec.convert({"boot": boot_id(), **{name: value for name, value in what.items()}}, type=Note)
