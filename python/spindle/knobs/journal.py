"""The journal: each planned change and the value before it, on the disk before the change is made.

One file for each call of Spindle that changes something, numbered in the order of the calls. A line is
`CRC32 JSON\n`; lines are only ever appended. Kinds of lines:

    begin   version, kind ('with', 'set', 'campaign'), boot, host, pid, command, time
    intent  id, place, knob, wanted, before {knob: value}; synced to the disk before the change
    made    id, after {knob: value}: read back
    plan    place, values {knob: value}: what an undo is about to write; foreign [knob]: values that somebody else set
    undone  place: nothing is left to do there, except for the knobs in `except`, which that version did not know

The maker holds a lock on the file as long as it lives. The file is deleted when nothing is left to undo.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from spindle.host.durably import sync_folder
from spindle.host.errors import reason
from spindle.host.register import boot_id
from spindle.host.trusted import UntrustedFile, check_folder, new_own, open_own, read_own

from .catalogue import Scope
from .errors import KnobRefusal
from .locks import command_line, folder, made_folder
from .places import KnobFolder

VERSION = 1
_NAME = re.compile(r"([0-9]{10})\.journal")
_NUMBERING = "numbering.lock"


@dataclass(frozen=True)
class Plan:
    """The values an undo is about to write. A later undo uses it to find how far a killed one may have got."""

    values: dict[str, str | None]
    foreign: frozenset[str]
    """Knobs that somebody else changed: their values are kept, and set again where the scheduler resets them."""


@dataclass
class Change:
    """One intent and its known outcome. Values by the knob's name; None: the knob did not exist."""

    id: int
    place: dict[str, Any]
    key: str
    knob: str
    wanted: str
    before: dict[str, str | None]
    after: dict[str, str | None] | None = None
    """None: the process died before it read them back."""
    plans: tuple[Plan, ...] = ()
    """Plans of undos of this place that were killed before this change."""

    def only(self, names: frozenset[str]) -> Change:
        """The same change, reduced to some knobs."""
        before = {name: value for name, value in self.before.items() if name in names}
        after = {name: value for name, value in self.after.items() if name in names} if self.after is not None else None
        return replace(self, before=before, after=after)


@dataclass
class History:
    """The content of a journal."""

    kind: str
    boot: str
    host: str
    command: str
    changes: list[Change] = field(default_factory=list)
    plans: dict[str, list[Plan]] = field(default_factory=dict)
    undone: dict[str, frozenset[str]] = field(default_factory=dict)
    """Places where everything is undone, except for these knobs."""
    damaged: int = 0
    """Number of lines with a wrong check sum, not counting a torn last line."""
    strange: int = 0
    """Number of whole lines that this version does not understand."""

    @property
    def open_changes(self) -> list[Change]:
        """Changes not undone yet; where a place is undone except for some knobs, these knobs only."""
        found = []
        for change in self.changes:
            left = self.undone.get(change.key)
            if left is None:
                found.append(change)
            elif left & change.before.keys():
                found.append(change.only(left))
        return found


class Unknown(Exception):
    """Not a journal that this version understands; its changes may still have to be undone."""


class Journal:
    """One journal file, locked by this process."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._count = 0
        self._torn = False

    @classmethod
    def begin(cls, kind: str) -> Journal:
        """Create a new one on the disk. Raises KnobRefusal: without a journal nothing is changed."""
        place = made_folder()
        made: Journal | None = None
        try:
            with (place / _NUMBERING).open("ab") as numbering:
                fcntl.flock(numbering, fcntl.LOCK_EX)
                number = (
                    max((int(found[1]) for found in map(_NAME.fullmatch, os.listdir(place)) if found), default=0) + 1
                )
                path = place / f"{number:010}.journal"
                draft = path.with_suffix(".new")
                draft.unlink(missing_ok=True)  # left by a process that died here with the numbering lock
                file = os.fdopen(new_own(draft), "r+b", buffering=0)
                made = cls(path, file)
                # The lock comes before the name that a restore looks for.
                fcntl.flock(file, fcntl.LOCK_EX)
                draft.rename(path)
            made._append(
                {
                    "kind": "begin",
                    "version": VERSION,
                    "session": kind,
                    "boot": boot_id(),
                    "host": os.uname().nodename,
                    "pid": os.getpid(),
                    "command": command_line(),
                    "time": int(time.time()),
                },
                sync=True,
            )
            sync_folder(place)
        except OSError as error:
            if made is not None:
                made.keep()
            raise KnobRefusal(
                f"{place}: the journal of changes cannot be written: {reason(error)}; nothing was changed"
            ) from None
        return made

    @classmethod
    def adopt(cls, path: Path) -> Journal | None:
        """Take over the journal of a process that has ended; None: the process lives, or the journal is gone. Raises
        UntrustedFile, or OSError where it cannot be opened."""
        try:
            file = os.fdopen(open_own(path, appending=True), "r+b", buffering=0)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path, follow_symlinks=False)):
                found = cls(path, file)
                found._mend()
                return found
        except OSError:
            pass
        file.close()
        return None

    def _mend(self) -> None:
        """Start a new line after a torn one."""
        end = self._file.seek(0, os.SEEK_END)
        if end:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def intent(self, place: KnobFolder, knob: str, wanted: str, before: dict[str, str | None]) -> Change:
        """Record a change that is about to be made. It is on the disk on return."""
        self._count += 1
        change = Change(self._count, place.to_dict(), place.key, knob, wanted, before)
        try:
            self._append(
                {"kind": "intent", "id": change.id, "place": change.place, "key": change.key, "knob": knob,
                 "wanted": wanted, "before": before},
                sync=True,
            )  # fmt: skip
        except OSError as error:
            raise KnobRefusal(f"{self.path}: the journal of changes cannot be written: {reason(error)}") from None
        return change

    def made(self, change: Change, after: dict[str, str | None]) -> None:
        """Record the values read back. Not synced: after a power loss all of these values are the boot's. Errors are
        ignored, as a full disk must not prevent an undo; only `intent` may fail."""
        change.after = after
        with suppress(OSError):
            self._append({"kind": "made", "id": change.id, "after": after})

    def plan(self, key: str, plan: Plan) -> None:
        """Record an undo that is about to begin. Not synced, for the same reason."""
        with suppress(OSError):
            self._append({"kind": "plan", "key": key, "values": plan.values, "foreign": sorted(plan.foreign)})

    def undone(self, key: str, but: frozenset[str] = frozenset()) -> None:
        """Record that nothing is left to do at that place, except for some knobs."""
        with suppress(OSError):
            self._append({"kind": "undone", "key": key, **({"except": sorted(but)} if but else {})})

    def _append(self, record: dict[str, Any], sync: bool = False) -> None:
        data = json.dumps(record).encode()
        line = b"%s%08x %s\n" % (b"\n" if self._torn else b"", zlib.crc32(data), data)
        self._torn = True
        written = self._file.write(line)
        if written != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False
        if sync:
            os.fsync(self._file.fileno())

    def story(self) -> History | None:
        """Its content; None: its first line was never completed, so nothing was changed."""
        self._file.seek(0)
        return _read(self.path, self._file.read())

    def discard(self) -> None:
        """Delete it, as nothing is left to undo."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        with suppress(OSError):
            sync_folder(self.path.parent)
        self._file.close()

    def keep(self) -> None:
        """Close it and leave it for a later restore."""
        self._file.close()


def read(path: Path) -> History | None:
    """The whole lines of a journal; None: its maker died before it changed anything. Raises OSError, UntrustedFile and
    Unknown."""
    return _read(path, read_own(path))


def _read(path: Path, content: bytes) -> History | None:
    lines = content.split(b"\n")
    torn = lines.pop()  # empty, or a line without its end
    story: History | None = None
    bad = 0
    for number, line in enumerate(lines):
        record = _record(line)
        if record is None:
            # An empty line follows a torn one; the last line may also be torn in its middle.
            bad += bool(line) and not (number == len(lines) - 1 and not torn)
        elif record["kind"] == "begin" and story is None:
            story = _story(record)
        elif story is not None:
            story.strange += not _add(story, record)
    if story is not None:
        story.damaged += bad
    elif any(lines[1:]):
        raise Unknown(f"{path}: its beginning cannot be read")
    return story


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        crc, data = line[:8], line[9:]
        if int(crc, 16) != zlib.crc32(data):
            return None
        record = json.loads(data)
        return record if isinstance(record, dict) and isinstance(record.get("kind"), str) else None
    except (ValueError, RecursionError):
        return None


def _story(record: dict[str, Any]) -> History:
    if record.get("version") != VERSION:
        raise Unknown(
            f"written by another version of spindle (format {record.get('version')}); run `spindle restore` of that one"
        )
    return History(
        kind=str(record.get("session")),
        boot=str(record.get("boot")),
        host=str(record.get("host")),
        command=str(record.get("command")),
    )


def _add(story: History, record: dict[str, Any]) -> bool:
    try:
        match record["kind"]:
            case "intent":
                Scope(record["place"]["scope"])
                change = Change(
                    id=int(record["id"]),
                    place=record["place"],
                    key=str(record["key"]),
                    knob=str(record["knob"]),
                    wanted=str(record["wanted"]),
                    before=_values(record["before"]),
                )
                story.changes.append(change)
            case "made":
                of = next((one for one in reversed(story.changes) if one.id == record["id"]), None)
                if of is None:
                    story.damaged += 1  # the line of its intent
                else:
                    of.after = _values(record["after"])
            case "plan":
                foreign = frozenset(str(name) for name in record["foreign"])
                story.plans.setdefault(str(record["key"]), []).append(Plan(_values(record["values"]), foreign))
            case "undone":
                story.undone[str(record["key"])] = frozenset(str(name) for name in record.get("except", ()))
            case _:
                return False
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _values(data: Any) -> dict[str, str | None]:
    if not isinstance(data, dict) or not all(value is None or isinstance(value, str) for value in data.values()):
        raise ValueError("not values")
    return data


@contextmanager
def looking() -> Iterator[None]:
    """Let one process at a time read the journals: two would each take the other for a living maker."""
    if not folder().is_dir():
        yield
        return
    with (made_folder() / "restore.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def paths() -> Iterator[Path]:
    """The journals, oldest first; only from a folder that nobody else can write to."""
    place = folder()
    try:
        check_folder(place)
        names = sorted(os.listdir(place))
    except (OSError, UntrustedFile):
        return
    yield from (place / name for name in names if _NAME.fullmatch(name))
