"""`spindle.durability`, `verify` and `receive_journals`: does a target contain what was written to it?"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spindle.host.paths import target_path
from spindle.library.arguments import public
from spindle.library.options import bytes_of, consent_of, within
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.result.durability import DurabilityCheck, WriteTest
from spindle.result.journal import Pattern, SyncKind
from spindle.result.verification import StateCheck, fault_words
from spindle.run.durability import aftercrash, receiver, writing
from spindle.run.durability.journal import address, read_token
from spindle.run.errors import Usage
from spindle.run.verification import check_state

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style
    from spindle.run.durability.receiver import ReceivedJournal

Name = str | os.PathLike[str]
MOST_WORKERS = 256
MOST_BATCH = 65_536
"""Writes before a sync."""


class DurabilityRun(Printable):
    """Writers that ended in good order, before any power cut."""

    def __init__(self, written: WriteTest) -> None:
        self.written = written
        """Its options (`header`), and the acknowledged writes and syncs (`figures`; times in ns)."""

    @property
    def journal(self) -> str:
        """Where the acknowledged syncs were recorded; `spindle.verify(journal=)` takes it."""
        return self.written.journal

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.durability import written_page

        return list(written_page(self.written, style))

    def _data(self) -> object:
        return self.written


class Verification(Printable, ABC):
    """The content of a target, compared with what was written to it."""

    target: str
    """Its name, as it was given."""

    @property
    @abstractmethod
    def sound(self) -> bool:
        """True if everything was checked and nothing is wrong, lost or out of order."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The conclusion in words."""

    def __bool__(self) -> bool:
        return self.sound


class StateVerification(Verification):
    """The content of a target, compared with the saved state of a run."""

    def __init__(self, check: StateCheck) -> None:
        self.check = check
        """The blocks that were expected and read, and those that are wrong."""
        self.target = check.target

    @property
    def sound(self) -> bool:
        """True if every block was read and is right."""
        return self.check.sound

    @property
    def summary(self) -> str:
        """The conclusion in words."""
        back = self.check.read_back
        if back.found.wrong:
            return f"wrong content: {fault_words([back.found])}"
        return f"{'read' if self.sound else 'stopped after'} {back.found.blocks} of {back.expected} blocks"

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.verification import state_page

        return list(state_page(self.check, style))

    def _data(self) -> object:
        return self.check


class CrashVerification(Verification):
    """The content of a target after a crash, compared with the journal of a durability test."""

    def __init__(self, check: DurabilityCheck) -> None:
        self.check = check
        """Lost writes, the order, and the journal."""
        self.target = check.target

    @property
    def sound(self) -> bool:
        """True if no acknowledged write is lost and the order was kept."""
        return self.check.sound

    @property
    def summary(self) -> str:
        """The conclusion in words."""
        from spindle.report.terminal.durability import verdict_words

        return verdict_words(self.check.findings)

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.durability import page

        return list(page(self.check, style))

    def _data(self) -> object:
        return self.check


class Journals(Printable, Sequence[Any]):
    """Journals that were received from writers on other hosts, each with `path`, `ended` and `journal`."""

    def __init__(self, received: Sequence[ReceivedJournal], *, many: bool) -> None:
        self.received = received
        self._many = many

    def __len__(self) -> int:
        return len(self.received)

    def __getitem__(self, at: Any) -> Any:
        """One journal, or several."""
        return self.received[at]

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.durability import received_page

        return [line for each in self.received for line in received_page(each, style)]

    def _data(self) -> object:
        found = [
            {"kind": "durability-journal", "path": str(each.path), "ended": each.ended, "journal": each.journal}
            for each in self.received
        ]
        return found if self._many else found[0]


@public
def durability(
    target: Name,
    journal: Name,
    *,
    create: str | int | None = None,
    sync: SyncKind = "fsync",
    pattern: Pattern = "mixed",
    workers: int = 4,
    block: str | int = "4KiB",
    batch: int = 4,
    size: str | int | None = None,
    buffered: bool = False,
    seconds: float | None = None,
    seed: int | None = None,
    journal_on_target: bool = False,
    token_file: Name | None = None,
    erase: Name | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    confirm: Callable[[str], bool] | None = None,
    progress: Progress = False,
) -> DurabilityRun:
    """Write and sync, and record each acknowledged sync in a journal elsewhere, until the power is cut.

    `journal`: a new file on another device, or tcp://HOST:PORT of a receiver. `create`: make the target, a test file of
    this many bytes, which is kept for the check. `block`, `size`: bytes of each write, and of the part of the target
    that is written to; texts may have a unit. `batch`: most writes before a sync. `seconds`: end after this time;
    without it Ctrl-C ends it. `erase` and the others are as of `spindle.run`.

    Raises `spindle.Error`: one line; a block device is written to only if `erase` names it.
    """
    within(workers, "`workers=`", 1, MOST_WORKERS)
    within(batch, "`batch=`", 1, MOST_BATCH)
    if seconds is not None:
        within(seconds, "`seconds=`", 1e-3, 1e9)
    order = writing.WriterOptions(
        target=target_path(os.fspath(target)),
        journal=os.fspath(journal),
        create_bytes=None if create is None else bytes_of(create, "`create=`"),
        pattern=pattern,
        sync=sync,
        workers=workers,
        block_bytes=bytes_of(block, "`block=`"),
        batch=batch,
        size_bytes=None if size is None else bytes_of(size, "`size=`"),
        direct=not buffered,
        seconds=seconds,
        seed=seed,
        journal_on_target=journal_on_target,
        token_file=None if token_file is None else Path(token_file),
        consent=consent_of(erase, erase_signature, erase_stacked, erase_shared, confirm),
    )
    with watched(progress) as watch:
        return DurabilityRun(writing.write(order, watch))


@public
def verify(
    target: Name | None = None,
    *,
    state: Name | None = None,
    after_crash: Name | None = None,
    progress: Progress = False,
) -> Verification:
    """Check that a target still contains what was written to it. It is only read.

    `state`: a file that `verify_state` of `spindle.run` saved. `after_crash`: a journal of `spindle.durability`, after
    the power was cut. One of them is needed. `target`: where it is now; None: where it was then. The result is true if
    nothing is wrong or lost.

    Raises `spindle.Error`, among others if it is another target.
    """
    place = None if target is None else target_path(os.fspath(target))
    match state, after_crash:
        case None, None:
            raise Usage("nothing to compare with; give `state=` FILE or `after_crash=` JOURNAL")
        case saved, None if saved is not None:
            with watched(progress) as watch:
                checked = check_state(Path(saved), place, watch)
                watch.end()
            return StateVerification(checked)
        case None, crashed if crashed is not None:
            with watched(progress) as watch:
                watch.step("reading the target")
                found = aftercrash.verify(Path(crashed), place)
                watch.end()
            return CrashVerification(found)
        case _:
            raise Usage("`state=`, `after_crash=`: each is a check of its own; give one of them")


@public
def receive_journals(
    listen: str | int,
    journal: Name,
    *,
    token_file: Name | None = None,
    limit: str | int | None = None,
    progress: Progress = False,
) -> Journals:
    """Receive the journals of `spindle.durability` on other hosts, and sync them to this disk.

    `listen`: HOST:PORT, or a port of 127.0.0.1. `journal`: a new file for one journal, or a folder for several, until
    Ctrl-C. `token_file`: accept only writers with the secret in it. `limit`: bytes of the largest journal, 2 GiB unless
    given. Raises `spindle.Error`.
    """
    host, port = address(str(listen), "`listen=`")
    path = Path(journal)
    token = read_token(Path(token_file)) if token_file is not None else None
    most = receiver.LIMIT if limit is None else bytes_of(limit, "`limit=`")
    with watched(progress) as watch:
        received = receiver.receive(receiver.ReceiverOptions(host, port, path, token, most), watch)
    return Journals(received, many=path.is_dir())
