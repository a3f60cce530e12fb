"""Records of durability tests and of the check after a crash. Mirrors `crates/engine/src/durable`.

Times are ns, sizes bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct


class Plan(Struct, frozen=True, kw_only=True):
    """The parameters of the writes: they determine every byte."""

    seed: int
    workers: int
    pattern: str
    """`append`, `random` or `mixed`."""
    block_bytes: int
    batch: int
    """Most writes before a sync."""
    sync: str
    """`fsync`, `fdatasync`, `dsync`, `fua` or `none`."""
    region_blocks: int
    """Blocks of each worker's region."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all regions."""
        return self.workers * self.region_blocks * self.block_bytes


class TestedTarget(Struct, frozen=True, kw_only=True):
    """The target at the time of writing."""

    path: str
    kind: str
    """`device` or `file`."""
    size_bytes: int
    direct: bool
    device: dict[str, Any] | None = None
    """The device, or the one under the file."""
    write_cache: str | None = None
    """The kernel's view of the cache (queue/write_cache): it does not flush one that is `write through`."""
    file_system: str | None = None
    file_system_id: int | None = None
    """statvfs f_fsid of the file's folder."""


class TestDetails(Struct, frozen=True, kw_only=True):
    """Version, host, boot and target of a test, and when it started."""

    version: str
    started: str
    host: str
    boot: str
    """Boot id of the kernel."""
    target: TestedTarget


class Header(Struct, frozen=True, kw_only=True):
    """The first entry of a journal."""

    run: str
    plan: Plan
    about: TestDetails


class Journal(Struct, frozen=True, kw_only=True):
    """The content of a journal."""

    header: Header
    begun: bool
    acknowledged: list[int]
    syncs: int
    last_ns: int
    """Time of the last entry since writing began."""
    end: str | None
    """`time`, `stopped` or `error`; None: the writer did not end regularly, as in a power cut."""
    ending: str
    """`whole`, `cut` or `damaged`."""
    bytes: int
    bytes_after: int


class Failure(Struct, frozen=True, kw_only=True):
    """The error that ended a test early."""

    what: str
    """`read`, `write`, `sync`, `thread` or `journal`."""
    offset: int | None
    errno: int | None
    why: str


class SyncLatency(Struct, frozen=True, kw_only=True):
    """Latency of a sync, from the call to its return."""

    mean_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int


class Figures(Struct, frozen=True, kw_only=True):
    """The figures of a test."""

    end: str
    failure: Failure | None
    elapsed_ns: int
    acknowledged: list[int]
    syncs: int
    sync_latency: SyncLatency
    target_fraction: float
    """Share of the workers' time in writes and syncs."""
    journal_fraction: float
    """Share of the workers' time that went into writing the journal."""
    journal_bytes: int

    @property
    def syncs_per_s(self) -> float:
        """Syncs a second."""
        return self.syncs / self.elapsed_ns * 1e9 if self.elapsed_ns else 0.0


class WriteTest(Struct, frozen=True, kw_only=True):
    """A completed durability test."""

    kind: str = "durability-run"
    journal: str
    header: Header
    figures: Figures


class Verdict(StrEnum):
    """The outcome in one word."""

    KEPT = "kept"
    LOST = "lost"
    REORDERED = "reordered"
    DAMAGED = "damaged"
    OVERWRITTEN = "overwritten"
    ABSENT = "absent"
    NOTHING = "nothing"


class Loss(Struct, frozen=True, kw_only=True):
    """An acknowledged write that is missing."""

    worker: int
    write: int
    offset: int
    acknowledged_ns: int | None
    found: str
    found_write: int | None


class Blocks(Struct, frozen=True, kw_only=True):
    """Blocks by state. Each is counted once, except in `of_this_run`."""

    checked: int
    kept: int
    newer: int
    torn_unacknowledged: int
    untouched: int
    lost: int
    damaged: int
    of_this_run: int


class Replacement(Struct, frozen=True, kw_only=True):
    """How many lost blocks contain this instead."""

    found: str
    blocks: int


class Reordering(Struct, frozen=True, kw_only=True):
    """A write that is present although an earlier write, which had to be durable before it, is missing."""

    worker: int
    missing_write: int
    missing_offset: int
    present_write: int
    present_offset: int


class WorkerFindings(Struct, frozen=True, kw_only=True):
    """The findings of one worker."""

    acknowledged: int
    newest: int
    lost: int
    reordered: int


class Findings(Struct, frozen=True, kw_only=True):
    """The findings of the core's check."""

    verdict: Verdict
    journal: Journal
    blocks: Blocks
    instead: list[Replacement]
    order_kept: bool | None
    """None: no order was promised, or nothing of the run is present."""
    reordered: int
    reorderings: list[Reordering]
    first_lost_ns: int | None
    last_lost_ns: int | None
    losses: list[Loss]
    workers: list[WorkerFindings]


class DurabilityCheck(Struct, frozen=True, kw_only=True):
    """A check of a target against a journal."""

    kind: str = "durability-check"
    target: str
    findings: Findings
    notes: list[str]
    """Further remarks for people."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in one word."""
        return self.findings.verdict

    @property
    def sound(self) -> bool:
        """True if nothing is lost and order was kept."""
        return self.findings.verdict is Verdict.KEPT


class Cut(Struct, frozen=True, kw_only=True):
    """A power cut in the lab, and the check after it."""

    at_ns: int
    """Virtual time of the cut."""
    findings: Findings | None
    """None: the target could not be read again."""
    said: str | None = None
    """The reason."""

    @property
    def verdict(self) -> str:
        """The outcome in one word."""
        return self.findings.verdict.value if self.findings else "unusable"
