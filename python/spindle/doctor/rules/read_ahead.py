"""Read-ahead smaller than a stripe, or far too large for a random load. See docs/reference/doctor."""

from __future__ import annotations

import re

from spindle.base.units import kib
from spindle.inspect.model import Device, FileSystem

from ..finding import Finding, Severity, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stripe, rotates

KERNEL_DEFAULT_BYTES = 128 << 10
"""VM_READAHEAD_PAGES (include/linux/mm.h)."""
LARGE_FOR_RANDOM_BYTES = 4 * KERNEL_DEFAULT_BYTES
"""Larger than any usual database request (26 KiB on average, 512 KiB at most)."""
HUGE_BYTES = 16 << 20
"""Limit if the load is not known: twice the largest setting in practice (blockdev --setra 16384)."""
HUGE_FACTOR = 4
"""And this multiple of the usual value."""
STRIPES = 2
"""md's own default (raid0.c, raid5.c, raid10.c; since 5.10 twice optimal_io_size, disk_update_readahead)."""
DATABASE = re.compile(
    r"(?:^|[^a-z])(mysql|mariadb|postgres(?:ql)?|pgsql|pgdata|mongo(?:db)?|oracle|oradata)(?:[^a-z]|$)"
)
"""Mount points that name their use; the usual data folders of these packages."""


def _check(case: RuleInput) -> Results:
    for file_system, device in case.stack.entries():
        if file_system is not None and file_system.type == "btrfs":
            continue
        queue = case.stack.queue(device)
        if queue is None or queue.read_ahead_kb is None or device.kind == "loop":
            continue
        stripe = case.stack.stripe_below(device)
        ahead = queue.read_ahead_kb * 1024
        random, why = _random(case, file_system)
        target = case.stack.disk(device)
        usual = max(KERNEL_DEFAULT_BYTES, STRIPES * (stripe.bytes or 0) if stripe is not None else 0)
        if random and ahead > max(usual, LARGE_FOR_RANDOM_BYTES):
            yield _too_large(case, target, ahead, usual, why)
        elif case.workload is None and ahead > max(HUGE_FACTOR * usual, HUGE_BYTES):
            yield _too_large(case, target, ahead, usual, "the load is not known; sequential loads may need it")
        elif random:
            continue
        elif stripe is not None and stripe.bytes is not None and ahead < stripe.bytes:
            yield _too_small(target, ahead, stripe)


def _random(case: RuleInput, file_system: FileSystem | None) -> tuple[bool, str]:
    if case.workload is not None:
        return case.workload == "random", "the load is random, as given"
    if file_system is not None and (name := DATABASE.search(file_system.mount_point.lower())):
        return True, f"{file_system.mount_point} looks like a data folder of {name[1]}"
    return False, ""


def _too_small(device: Device, ahead: int, stripe: Stripe) -> Finding:
    wanted = STRIPES * (stripe.bytes or 0)
    disks = stripe.data_disks or 1
    busy = max(1, min(disks, -(-ahead // stripe.chunk_bytes)))
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"{device.id} reads ahead less than a stripe",
        evidence=f"read-ahead {kib(ahead)}, stripe {kib(stripe.bytes)} ({stripe.source}, chunk "
        f"{kib(stripe.chunk_bytes)} x {disks})",
        why="A buffered sequential reader waits for one window of read-ahead while the next is fetched. A window "
        "smaller than a stripe uses only some of the drives.",
        effect=f"One reader keeps about {busy} of {disks} drives busy, up to {disks / busy:.3g} times slower than the "
        f"array; with {kib(wanted)} all drives work.",
        numbers={
            "read_ahead_bytes": ahead,
            "stripe_bytes": float(stripe.bytes or 0),
            "drives_busy": busy,
            "data_disks": disks,
        },
        steps=knob(device.id, read_ahead_kb=-(-wanted // 1024)),
    )


def _too_large(case: RuleInput, device: Device, ahead: int, usual: int, why: str) -> Finding:
    turning = [found for found, _ in case.stack.bottoms(device) if rotates(found)]
    slow = " and keeps a rotating drive from serving other requests meanwhile" if turning else ""
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN if case.workload is not None else Severity.NOTE,
        summary=f"{device.id} has far more read-ahead than a random load needs",
        evidence=f"read-ahead {kib(ahead)}, {ahead / usual:.3g} times the usual {kib(usual)}; {why}",
        why="A page fault in a mapped file reads the whole read-ahead around it, and two neighbouring reads start a "
        f"window. A random load uses little of that: it fills memory with unused pages{slow}.",
        effect=f"A fault for one page of 4 KiB can read {ahead // 4096} pages.",
        numbers={"read_ahead_bytes": ahead, "usual_bytes": usual},
        steps=knob(device.id, read_ahead_kb=usual // 1024),
    )


RULE = Rule(
    "read-ahead", "Read-ahead covers a stripe, and is not huge under a random load.", _check, ("queue.read_ahead_kb",)
)
