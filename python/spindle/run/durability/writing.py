"""The writers of a durability test, from start to end."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from spindle import _core
from spindle.base import units
from spindle.host.devices import text_of, whole
from spindle.host.durably import sync_folder
from spindle.host.errors import reason
from spindle.host.guard import OpenTarget, StreamAccess, open_target
from spindle.host.mounts import mount_of
from spindle.host.register import boot_id
from spindle.host.signals import Stopped
from spindle.host.testfile import TestFile
from spindle.result.durability import WriteTest
from spindle.result.journal import DurabilityFigures, Header, Pattern, Plan, SyncKind, durability_figures_from_json
from spindle.result.record import utc_now
from spindle.result.tested import TestDetails, TestedTarget
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.durability.journal import OpenJournal, open_journal, read_token
from spindle.run.errors import RunFailed, Usage
from spindle.run.files import own_file
from spindle.run.watch import Watch

POLL_S = 0.1
DEFAULT_BYTES = 64 << 20
"""Default part of a target: so small that caches stay busy with the same blocks."""
BLOCK_MAX = 1 << 20


@dataclass(frozen=True)
class WriterOptions:
    """Options of a durability test."""

    target: str
    journal: str
    create_bytes: int | None = None
    """Size of a test file to make; it is kept."""
    pattern: Pattern = "mixed"
    sync: SyncKind = "fsync"
    workers: int = 4
    block_bytes: int = 4096
    batch: int = 4
    size_bytes: int | None = None
    """Part of the target to write; None: `DEFAULT_BYTES`, or all of a test file."""
    direct: bool = True
    seconds: float | None = None
    """None: until power is cut or a person stops it."""
    seed: int | None = None
    journal_on_target: bool = False
    token_file: Path | None = None
    """File with the secret for the receiver."""
    consent: Consent = field(default_factory=lambda: NO_CONSENT)


def write(order: WriterOptions, watch: Watch) -> WriteTest:
    """Write. Raises as `host`, the core and the journal: one line each."""
    token = read_token(order.token_file) if order.token_file is not None else None
    with ExitStack() as stack:
        file, target = stack.enter_context(_opened(order, watch))
        header = _header(order, target)
        journal = stack.enter_context(open_journal(order.journal, target, order.journal_on_target, token, watch))
        if file is not None:
            file.keep()  # before the first write, so that the file always exists for the check
        figures = _carry_out(order, target, journal, header, watch)
    if figures.failure is not None:
        raise RunFailed(_failure_words(order, journal, figures))
    return WriteTest(journal=journal.where, header=header, figures=figures)


@contextmanager
def _opened(order: WriterOptions, watch: Watch) -> Iterator[tuple[TestFile | None, OpenTarget]]:
    # Each worker gets errors of failed writes on its own descriptor, and only once.
    access = [StreamAccess(write=True, direct=order.direct, dsync=order.sync == "dsync")] * order.workers
    if order.create_bytes is not None:
        with own_file(Path(order.target), order.create_bytes, watch) as file, open_target(file, access) as target:
            sync_folder(file.path.parent)
            yield file, target
        return
    with order.consent.opened(order.target, access) as target:
        yield None, target


def _header(order: WriterOptions, target: OpenTarget) -> Header:
    asked = order.size_bytes or (DEFAULT_BYTES if order.create_bytes is None else order.create_bytes)
    size_bytes = min(asked, target.size_bytes)
    region_blocks = size_bytes // order.block_bytes // order.workers
    unit = max(512, target.files[0].block_bytes)
    if order.block_bytes % unit or order.block_bytes > BLOCK_MAX:
        raise Usage(f"`block=` {order.block_bytes}: must be a multiple of {unit} bytes on this target, at most 1 MiB")
    if region_blocks == 0:
        raise Usage(
            f"{units.size(size_bytes)} are too little for {order.workers} workers with blocks of "
            f"{units.size(order.block_bytes)}; take more with `size=`, or fewer workers"
        )
    return Header(
        run=secrets.token_hex(8),
        plan=Plan(
            seed=secrets.randbits(32) if order.seed is None else order.seed,
            workers=order.workers,
            pattern=order.pattern,
            block_bytes=order.block_bytes,
            batch=order.batch,
            sync=order.sync,
            region_blocks=region_blocks,
        ),
        about=TestDetails(
            version=_core.__version__,
            started=utc_now(),
            host=os.uname().nodename,
            boot=boot_id(),
            target=_place(order, target),
        ),
    )


def _place(order: WriterOptions, target: OpenTarget) -> TestedTarget:
    device = target.device
    mount = mount_of(target.files[0].fd) if target.is_one_file else None
    return TestedTarget(
        path=os.path.abspath(target.path),
        kind=target.kind,
        size_bytes=target.size_bytes,
        direct=order.direct,
        device=None if device is None else device.to_dict(),
        write_cache=None if device is None else text_of(whole(device).sysfs / "queue/write_cache"),
        file_system=None if mount is None else mount.fs_type,
        file_system_id=None if mount is None else os.fstatvfs(target.files[0].fd).f_fsid,
    )


def _carry_out(
    order: WriterOptions, target: OpenTarget, journal: OpenJournal, header: Header, watch: Watch
) -> DurabilityFigures:
    text = msgspec.json.encode(header).decode()
    test = _core.Durability(
        text, [file.as_tuple() for file in target.files], journal.fd, receiver=journal.receiver, seconds=order.seconds
    )
    rate = _Rate()
    try:
        while not test.wait(POLL_S):
            watch.step(rate.words(msgspec.json.decode(test.progress())))
    except Stopped:
        test.stop()
        watch.step("stopping")
        while not test.wait(POLL_S):
            pass
    watch.end()
    figures = durability_figures_from_json(test.figures())
    if figures.elapsed_ns == 0:
        journal.discard()
    return figures


class _Rate:
    """Acknowledged syncs a second."""

    def __init__(self) -> None:
        self._then = (time.monotonic(), 0)

    def words(self, progress: dict[str, object]) -> str:
        if progress["phase"] == "look":
            return "durability: reading what is there before"
        now, syncs = time.monotonic(), int(str(progress["syncs"]))
        (then, before), self._then = self._then, (now, syncs)
        per_s = (syncs - before) / max(now - then, 1e-9)
        return (
            f"durability: {units.count(syncs)} acknowledged syncs, {units.count(round(per_s))} a second; cut the power"
        )


def _failure_words(order: WriterOptions, journal: OpenJournal, figures: DurabilityFigures) -> str:
    """A failure in one line."""
    failure = figures.failure
    assert failure is not None
    why = failure.why if failure.errno is None else reason(OSError(failure.errno, os.strerror(failure.errno)))
    syncs = f"{units.count(figures.syncs)} acknowledged syncs"
    if failure.what == "journal":
        return f"`journal=` {order.journal}: {why}, after {syncs}"
    where = "" if failure.offset is None else f" at {failure.offset}"
    check = f"`spindle verify` with `after_crash={journal.path}`"
    if journal.path is None:
        check = "`spindle verify TARGET` with `after_crash=JOURNAL`, where the receiver is"
    return f"{order.target}: {failure.what}{where}: {why}, after {syncs}; when it is back: {check}"
