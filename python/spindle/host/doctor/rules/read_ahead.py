"""Read-ahead smaller than a stripe, or far larger than a random load wants. See docs/doctor."""

from __future__ import annotations

import re

from ...inspect.model import Device, FileSystem
from ...words import kib
from ..finding import Finding, Severity, knob
from ..rule import Case, Rule, Told
from ..stack import Stripe, rotates

KERNEL_DEFAULT_BYTES = 128 << 10
"""VM_READAHEAD_PAGES (include/linux/mm.h)."""
LARGE_FOR_RANDOM_BYTES = 4 * KERNEL_DEFAULT_BYTES
"""More than any usual database request (26 KiB in the mean, 512 KiB at most)."""
HUGE_BYTES = 16 << 20
"""Without a word on the load: twice what the largest setting in practice (blockdev --setra 16384) is."""
HUGE_FACTOR = 4
"""And this many times the usual."""
STRIPES = 2
"""What md sets by itself (raid0.c, raid5.c, raid10.c; since 5.10 twice optimal_io_size, disk_update_readahead)."""
DATABASE = re.compile(
    r"(?:^|[^a-z])(mysql|mariadb|postgres(?:ql)?|pgsql|pgdata|mongo(?:db)?|oracle|oradata)(?:[^a-z]|$)"
)
"""Mount points that say what they are for; the usual data folders of these packages."""


def _check(case: Case) -> Told:
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
            yield _too_large(case, target, ahead, usual, "the load is not known; streams may want it")
        elif random:
            continue
        elif stripe is not None and stripe.bytes is not None and ahead < stripe.bytes:
            yield _too_small(target, ahead, stripe)


def _random(case: Case, file_system: FileSystem | None) -> tuple[bool, str]:
    if case.workload is not None:
        return case.workload == "random", "the load was said to be random"
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
        "smaller than a stripe keeps only some of the drives at work.",
        effect=f"One reader keeps about {busy} of {disks} drives busy, up to {disks / busy:.3g} times slower than the "
        f"array; with {kib(wanted)} all take part.",
        numbers={
            "read_ahead_bytes": ahead,
            "stripe_bytes": float(stripe.bytes or 0),
            "drives_busy": busy,
            "data_disks": disks,
        },
        steps=knob(device.id, read_ahead_kb=-(-wanted // 1024)),
    )


def _too_large(case: Case, device: Device, ahead: int, usual: int, why: str) -> Finding:
    turning = [found for found, _ in case.stack.bottoms(device) if rotates(found)]
    slow = " or keeps a drive that turns away from other requests for as long as that takes" if turning else ""
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN if case.workload is not None else Severity.NOTE,
        summary=f"{device.id} reads ahead far more than a random load wants",
        evidence=f"read-ahead {kib(ahead)}, {ahead / usual:.3g} times the usual {kib(usual)}; {why}",
        why="A fault in a mapped file reads as much as the read-ahead around it, and two neighbouring reads begin a "
        f"window. Of a random load little of that is ever used: it fills memory with pages nobody wants{slow}.",
        effect=f"A fault for one page of 4 KiB can read {ahead // 4096} of them.",
        numbers={"read_ahead_bytes": ahead, "usual_bytes": usual},
        steps=knob(device.id, read_ahead_kb=usual // 1024),
    )


RULE = Rule(
    "read-ahead", "Read-ahead holds a stripe, and is not huge under a random load.", _check, ("queue.read_ahead_kb",)
)
