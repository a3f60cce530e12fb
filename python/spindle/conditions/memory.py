"""Memory: swap in use, swapping, dirty pages."""

from __future__ import annotations

from spindle.base.units import si_size
from spindle.host.devices import HERE, Machine
from spindle.host.memory import memory

from .finding import ConditionFinding

DIRTY_BYTES = 64 << 20
SWAP_PAGES_PER_S = 1.0


def swap(pages_per_s: float, machine: Machine = HERE) -> ConditionFinding:
    """Check swap in use and swap traffic."""
    found = memory(machine)
    used = found.get("SwapTotal", 0) - found.get("SwapFree", 0)
    evidence = {"used_bytes": float(used), "pages_per_s": pages_per_s}
    if pages_per_s > SWAP_PAGES_PER_S:
        return ConditionFinding("swap", "warn", f"the machine is swapping: {pages_per_s:.0f} pages/s", evidence)
    return ConditionFinding(
        "swap", "ok", f"{si_size(used)} of swap in use, none moved" if used else "no swap in use", evidence
    )


def dirty(machine: Machine = HERE) -> ConditionFinding:
    """Check the dirty pages of the whole machine."""
    found = memory(machine)
    waiting = found.get("Dirty", 0) + found.get("Writeback", 0)
    if waiting > DIRTY_BYTES:
        text = f"{si_size(waiting)} wait to be written from before the run"
        return ConditionFinding("dirty_pages", "warn", text, {"bytes": waiting})
    return ConditionFinding("dirty_pages", "ok", f"{si_size(waiting)} wait to be written", {"bytes": waiting})
