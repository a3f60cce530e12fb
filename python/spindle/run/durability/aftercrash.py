"""The check after a crash: compares the target, which is only read, with the journal."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import msgspec

from spindle import _core
from spindle.base import units
from spindle.host.errors import TargetError, WrongTarget, not_found, reason
from spindle.host.guard import OpenTarget, StreamAccess, open_target
from spindle.host.register import boot_id
from spindle.result.durability import DurabilityCheck
from spindle.result.journal import Findings, Header, Journal, findings_from_json, journal_from_json
from spindle.result.tested import TestedTarget
from spindle.run.errors import Usage

_GONE = ("before", "zeroes", "missing", "unreadable")
"""Content in place of a lost write if all others are lost too; other content came from another program."""


def read_journal(fd: int, where: str) -> Journal:
    """The content of a journal. Raises Usage."""
    try:
        return journal_from_json(_core.durability_journal(fd))
    except _core.ConfigError as error:
        raise Usage(f"{where}: {error}") from None
    except msgspec.ValidationError:
        raise Usage(f"{where}: its first entry does not say what was written") from None


def verify(journal: Path, target: str | None) -> DurabilityCheck:
    """Check a target. Raises Usage if journal and target do not belong together, TargetError if the target cannot be
    read.
    """
    with _opened(journal) as file:
        header = read_journal(file.fileno(), str(journal)).header
        place = header.about.target
        asked = target or place.path
        with ExitStack() as stack:
            read = stack.enter_context(_target(asked, place))
            try:
                text = _core.durability_check(file.fileno(), read.as_tuple())
            except _core.ConfigError as error:
                raise Usage(f"{journal}: {error}") from None
            findings = findings_from_json(text)
            differences = _differences(place, read.opened)
    if findings.verdict == "absent":
        findings = _absent(asked, header, findings, differences)
    return DurabilityCheck(target=asked, findings=findings, notes=[*differences, *_notes(header, findings)])


@contextmanager
def _opened(journal: Path) -> Iterator[IO[bytes]]:
    try:
        if not stat.S_ISREG(journal.stat().st_mode):
            raise Usage(f"{journal}: is not a regular file; `after_crash=` takes the journal of a durability test")
        file = journal.open("rb", buffering=0)
    except OSError as error:
        raise Usage(f"{journal}: {reason(error)}; `after_crash=` takes the journal of a durability test") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Usage(f"{journal}: is still being written; check it when writer and receiver have ended") from None
        except OSError:
            pass  # its file system has no locks
        yield file


# --- the target ------------------------------------------------------------------------------------------------------


class _TargetToRead:
    """The target in the core's terms."""

    def __init__(self, fd: int, size_bytes: int, block: int, align: int, opened: OpenTarget | None) -> None:
        self._tuple = fd, size_bytes, block, align
        self.opened = opened

    def as_tuple(self) -> tuple[int, int, int, int]:
        """Values in the core's order."""
        return self._tuple


@contextmanager
def _target(asked: str, place: TestedTarget) -> Iterator[_TargetToRead]:
    if place.file_system_id is not None and _is_lost(asked, place):
        with open(os.devnull, "rb") as nothing:  # nothing is left of it
            yield _TargetToRead(nothing.fileno(), 0, 1, 512, None)
        return
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open_target(asked, [StreamAccess(direct=True)]))
        except TargetError as error:
            if "direct I/O" not in str(error):
                raise
            opened = stack.enter_context(open_target(asked, [StreamAccess(direct=False)]))
        yield _TargetToRead(*opened.files[0].as_tuple(), opened)


def _is_lost(asked: str, place: TestedTarget) -> bool:
    """True if a file is missing or empty although its name and data were synced. Raises TargetError if only its file
    system is missing.
    """
    path = Path(asked)
    try:
        return stat.S_ISREG(path.stat().st_mode) and path.stat().st_size == 0
    except FileNotFoundError:
        pass
    except OSError as error:
        raise not_found(asked, error) from None
    try:
        if path.absolute().parent.is_dir() and os.statvfs(path.absolute().parent).f_fsid == place.file_system_id:
            return True
    except OSError:
        pass
    raise WrongTarget(f"{asked}: does not exist; mount its file system, or name the place where the test file is now")


def _differences(place: TestedTarget, opened: OpenTarget | None) -> list[str]:
    """Differences between the target and the one that was written."""
    if opened is None:
        return []
    found = []
    if opened.kind != place.kind:
        found.append(f"it is a {opened.kind}, a {place.kind} was written")
    elif opened.size_bytes != place.size_bytes:
        found.append(f"it has {opened.size_bytes} bytes, what was written had {place.size_bytes}")
    if opened.device is not None and place.device is not None:
        for name in ("serial", "model"):
            was, now = place.device.get(name), getattr(opened.device, name)
            if was and now and was != now:
                found.append(f"the {name} of its device is {now}, that of the one written was {was}")
    return found


def _absent(asked: str, header: Header, findings: Findings, differences: list[str]) -> Findings:
    """Decide, without any block of the run: total loss, or another target."""
    named = f"{asked}: no block of run {header.run} is there"
    if differences:
        raise Usage(f"{named}, and {differences[0]}; name the target that was written, {header.about.target.path} then")
    gone = sum(instead.blocks for instead in findings.instead if instead.found in _GONE)
    if 2 * gone < findings.blocks.lost:
        raise Usage(
            f"{named}, but in {units.count(findings.blocks.lost - gone)} places something that was not there before: "
            "it is another target, or was overwritten since"
        )
    return msgspec.structs.replace(findings, verdict="lost")


def _notes(header: Header, findings: Findings) -> list[str]:
    notes = []
    if findings.verdict in ("lost", "reordered") and header.about.target.write_cache == "write through":
        notes.append(
            "the kernel took the device's cache for write-through (queue/write_cache) and sent it no flushes: if it "
            "has a volatile cache, that is the cause"
        )
    if header.about.host == os.uname().nodename and header.about.boot == boot_id():
        notes.append(
            "this machine has been up since: unless the target alone lost its power, what is read may come from memory"
        )
    return notes
