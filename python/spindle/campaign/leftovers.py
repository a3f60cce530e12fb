"""Cleanup notes: everything that a trial on the real machine must undo is noted before it is done. A resumed campaign
first undoes what a killed one left: commands of teardown, scratch file systems, a load that still runs.

Knobs have their own journal (`spindle.knobs`), test files their own register (`host.testfile`).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from spindle.base.decoding import decode_json
from spindle.host.identity import Identity
from spindle.host.register import boot_id, state_folder
from spindle.host.trusted import check_folder, make_folder, new_own, read_own
from spindle.run.errors import RunFailed

_DRAFT = ".new"
TOKEN = "SPINDLE_LOAD"
"""Variable in the environment of a load."""


class Scratch(msgspec.Struct, frozen=True):
    """A file system that is made for a trial."""

    device: str
    uuid: str
    """Set by Spindle: nothing else is ever wiped."""
    mount: str
    node: str = ""
    """Folder of the node for tools."""
    identity: Identity | None = None
    """Number of the device, valid until the next boot."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Objects to remove after a trial."""

    boot: str = msgspec.field(default_factory=boot_id)
    teardown: tuple[tuple[str, ...], ...] = ()
    scratch: Scratch | None = None
    load: str | None = None
    """Token in the environment of a command that runs during trials."""


def _folder() -> Path:
    return state_folder() / "campaigns"


class NoteState:
    """Decides if a note stays on the disk."""

    stays = False


@contextmanager
def noted(campaign: str, what: str, note: Note) -> Iterator[NoteState]:
    """Keep a note on the disk during the `with`. It stays if the objects could not be removed: the body raises
    RemovalFailed or sets `stays`.

    `campaign`: its id. Raises RunFailed if the note cannot be written.
    """
    path = _folder() / f"{campaign}.{what}.json"
    _write(path, msgspec.json.encode(note))
    kept = NoteState()
    try:
        yield kept
    except RemovalFailed:
        kept.stays = True
        raise
    finally:
        if not kept.stays:
            path.unlink(missing_ok=True)


def scratches(campaign: str) -> Iterator[tuple[Path, Scratch, bool]]:
    """File systems of this campaign that could not be removed yet: path of the note, file system, and true in the same
    boot."""
    for path in sorted(_folder().glob(f"{campaign}.scratch-*.json")):
        note = _read(path)
        if note.scratch is not None:
            yield path, note.scratch, note.boot == boot_id()


class RemovalFailed(RunFailed):
    """An object that was made for a trial could not be removed."""


def _write(path: Path, data: bytes) -> None:
    try:
        make_folder(path.parent)
        draft = path.with_name(path.name + _DRAFT)
        draft.unlink(missing_ok=True)
        with os.fdopen(new_own(draft), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        said = (error.strerror or "").lower()
        raise RunFailed(
            f"{path.parent}: cannot be written to ({said}); set XDG_STATE_HOME to a folder of yours"
        ) from None


def take_down(campaign: str) -> list[str]:
    """Remove the objects that a killed run of this campaign left, and return lines about them. Raises RunFailed if one
    stays, Untrusted if another user could have written the note.
    """
    lines: list[str] = []
    if not _folder().is_dir():
        return lines
    check_folder(_folder())  # what it says is carried out: commands, removals of file systems
    for path in sorted(_folder().glob(f"{campaign}.*.json{_DRAFT}")):
        path.unlink(missing_ok=True)  # never complete, so nothing was begun
    for path in sorted(_folder().glob(f"{campaign}.*.json"), key=lambda one: one.lstat().st_mtime_ns, reverse=True):
        lines += _take_down(_read(path))
        path.unlink(missing_ok=True)
    return lines


def _read(path: Path) -> Note:
    try:
        return decode_json(read_own(path), Note)
    except (OSError, msgspec.DecodeError) as error:
        raise RunFailed(f"{path}: cannot be read ({error}); undo its entries, and remove it") from None


def _take_down(note: Note) -> list[str]:
    from spindle.campaign.scratch import remove

    lines = []
    same_boot = note.boot == boot_id()
    if note.load is not None and same_boot and end_load(note.load):
        lines.append("the load that a killed campaign left running was ended")
    for command in note.teardown if same_boot else ():
        status = _status(command)
        lines.append(f"teardown that a killed campaign left undone: `{shlex.join(command)}`: {status}")
    if note.scratch is not None and remove(note.scratch, same_boot):
        lines.append(f"{note.scratch.device}: the file system that a killed campaign made on it was removed")
    return lines


def _status(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return f"exit status {done.returncode}" if done.returncode else "done"


def end_load(token: str) -> bool:
    """Kill every process that has the token in its environment, the load's children with sessions of their own too.
    Whether there was any.
    """
    found = False
    while pids := [pid for pid in processes_of(token) if pid != os.getpid()]:
        found = True
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return found


def processes_of(token: str) -> list[int]:
    """Processes with the token of a load in their environment."""
    marker = f"{TOKEN}={token}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended, or is another user's
                if marker in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found
