"""md arrays in the stack: their own activity beside the load, and missing members (md(4))."""

from __future__ import annotations

from collections.abc import Iterable

from spindle.host.devices import HERE, Device, Machine, int_of, text_of
from spindle.host.number import whole_number
from spindle.host.stack import above

from .finding import ConditionFinding

WORKING = ("resync", "recover", "check", "repair", "reshape")
"""Values of `sync_action` with which an array reads and writes its members by itself."""


def arrays_of(devices: Iterable[Device], machine: Machine = HERE) -> list[Device]:
    """The arrays among the devices, or built on one of them."""
    found: dict[str, Device] = {}
    for device in devices:
        for one in (device, *above(device, machine)):
            if one.kind == "md":
                found.setdefault(one.name, one)
    return list(found.values())


def action_of(array: Device) -> str | None:
    """The array's own activity now; None: not known (arrays without redundancy have none)."""
    return text_of(array.sysfs / "md/sync_action") or None


def array_activity(devices: Iterable[Device], machine: Machine = HERE) -> list[ConditionFinding]:
    """Findings on these arrays and those built on them: resync, rebuild, check, missing members."""
    return [_activity(array) for array in arrays_of(devices, machine)]


def _activity(array: Device) -> ConditionFinding:
    action = action_of(array)
    degraded = int_of(array.sysfs / "md/degraded") or 0
    evidence: dict[str, float] = {"degraded": degraded}
    if action in WORKING:
        done, _, of = (text_of(array.sysfs / "md/sync_completed") or "").partition(" / ")
        sectors, total = whole_number(done), whole_number(of)
        if sectors is not None and total:
            evidence["done"] = sectors / total
        return ConditionFinding("array_sync", "invalid", f"{array.name} is busy with its {action}", evidence)
    if degraded:
        text = f"{array.name} is degraded: {degraded} member{'s' if degraded > 1 else ''} missing"
        return ConditionFinding("array_sync", "warn", text, evidence)
    return ConditionFinding("array_sync", "ok", f"{array.name} is complete and quiet", evidence)
