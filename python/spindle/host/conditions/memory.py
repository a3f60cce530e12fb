"""Memory: swap in use, swapping, pages that wait to be written."""

from __future__ import annotations

from ..devices import HERE, Machine
from ..memory import memory
from ..words import size
from .finding import Finding

DIRTY_BYTES = 64 << 20
SWAP_PAGES_PER_S = 1.0


def swap(pages_per_s: float, machine: Machine = HERE) -> Finding:
    """What is swapped, and whether it moves."""
    found = memory(machine)
    used = found.get("SwapTotal", 0) - found.get("SwapFree", 0)
    evidence = {"used_bytes": float(used), "pages_per_s": pages_per_s}
    if pages_per_s > SWAP_PAGES_PER_S:
        return Finding("swap", "warn", f"the machine is swapping: {pages_per_s:.0f} pages/s", evidence)
    return Finding("swap", "ok", f"{size(used)} of swap in use, none moved" if used else "no swap in use", evidence)


def dirty(machine: Machine = HERE) -> Finding:
    """What waits to be written, anywhere on the machine."""
    found = memory(machine)
    waiting = found.get("Dirty", 0) + found.get("Writeback", 0)
    if waiting > DIRTY_BYTES:
        text = f"{size(waiting)} wait to be written from before the run"
        return Finding("dirty_pages", "warn", text, {"bytes": waiting})
    return Finding("dirty_pages", "ok", f"{size(waiting)} wait to be written", {"bytes": waiting})
