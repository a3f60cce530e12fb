"""A parity array with the default stripe cache. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.units import kib
from spindle.inspect.model import Device, Md

from ..finding import Finding, Severity, knob
from ..rule import Results, Rule, RuleInput
from ..stack import PARITY, kernel_version

DEFAULT_PAGES = 256
"""NR_STRIPES (drivers/md/raid5.h)."""
WANTED_PAGES = 4096
"""32 chunks of 512 KiB, mdadm's default chunk, of each member: a start value; measure."""
PAGE_BYTES = 4096
GROWS_BY_ITSELF = (4, 1)
"""Since this kernel the cache grows under pressure, slowly (commit edbe83ab4c27)."""
MEMORY_SHARE = 0.05
"""Largest share of the machine's memory that the remedy uses."""


def _check(case: RuleInput) -> Results:
    version = kernel_version(case.stack.inventory)
    for device, md in case.stack.arrays():
        pages = md.stripe_cache_size
        if md.level not in PARITY or device.read_only or md.array_state == "readonly":
            continue
        if pages is not None and 0 <= pages <= DEFAULT_PAGES:
            yield _found(case, device, md, pages, version)


def _found(case: RuleInput, device: Device, md: Md, pages: int, version: tuple[int, int] | None) -> Finding:
    disks = md.raid_disks if md.raid_disks and md.raid_disks > 0 else 1
    wanted, memory = WANTED_PAGES, case.stack.inventory.memory_bytes
    while memory and wanted > 2 * DEFAULT_PAGES and wanted * PAGE_BYTES * disks > MEMORY_SHARE * memory:
        wanted //= 2
    holds = pages * PAGE_BYTES
    chunks = f", {holds / md.chunk_bytes:.3g} chunks of {kib(md.chunk_bytes)}" if md.chunk_bytes else ""
    grows = version is not None and version >= GROWS_BY_ITSELF
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"{device.id} has the default stripe cache, which is small",
        evidence=f"stripe_cache_size {pages}: {kib(holds)} of each member{chunks}",
        why="A write becomes a full stripe, without reads, only if all of it is in the cache at the same time. When "
        "the cache is full, incomplete stripes are written, with reads of old data and parity.",
        effect=f"With {wanted} it holds {kib(wanted * PAGE_BYTES)} of each member, for "
        f"{kib(wanted * PAGE_BYTES * disks)} of memory; sequential writes gain most."
        + (" This kernel enlarges it under pressure, but slowly: up to hours." if grows else ""),
        numbers={"stripe_cache_pages": pages, "memory_bytes": wanted * PAGE_BYTES * disks},
        steps=knob(device.id, stripe_cache_size=wanted),
    )


RULE = Rule(
    "stripe-cache",
    "The stripe cache of parity arrays is large enough for full stripes.",
    _check,
    ("md.stripe_cache_size",),
)
