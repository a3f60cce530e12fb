"""Requests that are split smaller than the chunk of the array, or than the drive accepts. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.units import kib
from spindle.inspect.model import Device

from ..finding import Finding, Severity, knob
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, Stripe

OLD_DEFAULT_KB = 512
"""BLK_DEF_MAX_SECTORS up to Linux 4.2: a smaller value was set by somebody, or is the limit of the hardware."""
DEFAULT_KB = 1280
"""Default since Linux 4.3: splitting longer requests costs nothing."""


def _check(case: RuleInput) -> Results:
    chunks = _chunks(case.stack)
    for device, _ in case.stack.drives():
        queue = device.queue
        most = queue.max_sectors_kb if queue is not None else None
        hardware = queue.max_hw_sectors_kb if queue is not None else None
        if most is None or hardware is None or most <= 0 or most >= min(hardware, DEFAULT_KB):
            continue
        if queue is not None and queue.optimal_io_size == most * 1024:
            continue  # the SCSI disk driver's own choice: the device's optimal transfer length
        stripe = chunks.get(device.id)
        if stripe is not None and most * 1024 < stripe.chunk_bytes:
            yield _found(device, most, hardware, stripe)
        elif most < OLD_DEFAULT_KB:
            yield _found(device, most, hardware, None)


def _chunks(stack: Stack) -> dict[str, Stripe]:
    """The largest chunk for which each drive gets requests."""
    found: dict[str, Stripe] = {}
    for device in stack.inventory.devices:
        stripe = stack.stripe(device)
        for bottom, _ in stack.bottoms(device) if stripe is not None else []:
            known = found.get(bottom.id)
            if stripe is not None and (known is None or known.chunk_bytes < stripe.chunk_bytes):
                found[bottom.id] = stripe
    return found


def _found(device: Device, most: int, hardware: int, stripe: Stripe | None) -> Finding:
    wanted = min(hardware, DEFAULT_KB)
    parts = -(-stripe.chunk_bytes // (most * 1024)) if stripe is not None else -(-wanted // most)
    whole = f"chunk of {kib(stripe.chunk_bytes)}" if stripe is not None else f"request of {kib(wanted * 1024)}"
    numbers = {"max_sectors_kb": float(most), "max_hw_sectors_kb": float(hardware), "parts": float(parts)}
    if stripe is not None:
        numbers["chunk_bytes"] = float(stripe.chunk_bytes)
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"requests to {device.id} are split "
        + (f"smaller than a chunk of {stripe.device}" if stripe is not None else "smaller than necessary"),
        evidence=f"max_sectors_kb {most}, the hardware accepts {hardware}"
        + (f", chunk {kib(stripe.chunk_bytes)}" if stripe is not None else ""),
        why="A request larger than max_sectors_kb is split, each part costs a command, and other "
        "requests may come between them.",
        effect=f"A {whole} becomes {parts} commands instead of one.",
        numbers=numbers,
        steps=knob(device.id, max_sectors_kb=wanted),
    )


RULE = Rule(
    "max-sectors",
    "Requests are not split smaller than a chunk, or than the hardware prefers.",
    _check,
    ("queue.max_sectors_kb", "queue.max_hw_sectors_kb"),
)
