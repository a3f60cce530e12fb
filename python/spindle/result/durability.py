"""What a durability test did, and what is found after the crash. Mirrors `crates/engine/src/durable`.

Times are ns, sizes bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct


class Plan(Struct, frozen=True, kw_only=True):
    """What is written: all of it follows from these numbers."""

    seed: int
    workers: int
    pattern: str
    """`append`, `random` or `mixed`."""
    block_bytes: int
    batch: int
    """Up to so many writes before a sync."""
    sync: str
    """`fsync`, `fdatasync`, `dsync`, `fua` or `none`."""
    region_blocks: int
    """Of each worker."""

    @property
    def size_bytes(self) -> int:
        """Of all regions."""
        return self.workers * self.region_blocks * self.block_bytes


class Place(Struct, frozen=True, kw_only=True):
    """The target as it was when it was written."""

    path: str
    kind: str
    """`device` or `file`."""
    size_bytes: int
    direct: bool
    device: dict[str, Any] | None = None
    """The device, or the one under the file."""
    write_cache: str | None = None
    """What the kernel takes its cache for (queue/write_cache): it flushes none that is `write through`."""
    file_system: str | None = None
    file_system_id: int | None = None
    """statvfs f_fsid of a file's folder."""


class About(Struct, frozen=True, kw_only=True):
    """Who wrote where and when."""

    version: str
    started: str
    host: str
    boot: str
    """The kernel's boot, by its id."""
    target: Place


class Header(Struct, frozen=True, kw_only=True):
    """The first entry of a journal."""

    run: str
    plan: Plan
    about: About


class Journal(Struct, frozen=True, kw_only=True):
    """What a journal says."""

    header: Header
    begun: bool
    acknowledged: list[int]
    syncs: int
    last_ns: int
    """Last sign of life, since writing began."""
    end: str | None
    """`time`, `stopped` or `error`; None: the writer did not end in good order, as in a power cut."""
    ending: str
    """`whole`, `cut` or `damaged`."""
    bytes: int
    bytes_after: int


class Failure(Struct, frozen=True, kw_only=True):
    """What ended a test before its time."""

    what: str
    """`read`, `write`, `sync`, `thread` or `journal`."""
    offset: int | None
    errno: int | None
    why: str


class SyncLatency(Struct, frozen=True, kw_only=True):
    """From the call to its return."""

    mean_ns: float
    p50_ns: int
    p99_ns: int
    max_ns: int


class Figures(Struct, frozen=True, kw_only=True):
    """What a test did."""

    end: str
    failure: Failure | None
    elapsed_ns: int
    acknowledged: list[int]
    syncs: int
    sync_latency: SyncLatency
    target_fraction: float
    """Share of the workers' time in writes and syncs."""
    journal_fraction: float
    """Share of the workers' time in which the journal was written."""
    journal_bytes: int

    @property
    def syncs_per_s(self) -> float:
        """Rate."""
        return self.syncs / self.elapsed_ns * 1e9 if self.elapsed_ns else 0.0


class Written(Struct, frozen=True, kw_only=True):
    """A test that is over."""

    kind: str = "durability-run"
    journal: str
    header: Header
    figures: Figures


class Verdict(StrEnum):
    """The whole in one word."""

    KEPT = "kept"
    LOST = "lost"
    REORDERED = "reordered"
    DAMAGED = "damaged"
    OVERWRITTEN = "overwritten"
    ABSENT = "absent"
    NOTHING = "nothing"


class Loss(Struct, frozen=True, kw_only=True):
    """An acknowledged write that is not there."""

    worker: int
    write: int
    offset: int
    acknowledged_ns: int | None
    found: str
    found_write: int | None


class Blocks(Struct, frozen=True, kw_only=True):
    """How blocks are; each is counted once, `of_this_run` beside."""

    checked: int
    kept: int
    newer: int
    torn_unacknowledged: int
    untouched: int
    lost: int
    damaged: int
    of_this_run: int


class Instead(Struct, frozen=True, kw_only=True):
    """How often a lost block holds this instead."""

    found: str
    blocks: int


class Reordering(Struct, frozen=True, kw_only=True):
    """A write that is there although one that had to be durable before it was issued is not."""

    worker: int
    missing_write: int
    missing_offset: int
    present_write: int
    present_offset: int


class WorkerFindings(Struct, frozen=True, kw_only=True):
    """One writer."""

    acknowledged: int
    newest: int
    lost: int
    reordered: int


class Findings(Struct, frozen=True, kw_only=True):
    """What the core's check found."""

    verdict: Verdict
    journal: Journal
    blocks: Blocks
    instead: list[Instead]
    order_kept: bool | None
    """None: nothing promised an order, or nothing of the run is there."""
    reordered: int
    reorderings: list[Reordering]
    first_lost_ns: int | None
    last_lost_ns: int | None
    losses: list[Loss]
    workers: list[WorkerFindings]


class Checked(Struct, frozen=True, kw_only=True):
    """A target held against a journal."""

    kind: str = "durability-check"
    target: str
    findings: Findings
    notes: list[str]
    """What else a person should know."""

    @property
    def verdict(self) -> Verdict:
        """The whole in one word."""
        return self.findings.verdict

    @property
    def sound(self) -> bool:
        """Nothing is lost, and order was kept."""
        return self.findings.verdict is Verdict.KEPT
