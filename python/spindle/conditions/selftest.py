"""SMART self-tests in progress: the drive reads its medium beside the load. Only smartctl can ask it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spindle.host.devices import HERE, Device, Machine, whole
from spindle.inspect.reading import Reading, dig, dig_int, dig_text
from spindle.inspect.tree import Tool, Tree, running

from .finding import ConditionFinding

_IN_PROGRESS = 15
"""ATA (ACS-3, self-test execution status: high half) and SCSI (SPC-4, self-test results) alike."""


def self_tests(
    devices: Iterable[Device], machine: Machine = HERE, tree: Tree | None = None
) -> tuple[list[ConditionFinding], list[str]]:
    """Findings on self-tests, and the drives that could not be asked, each with the reason."""
    findings, unchecked = [], []
    for disk in {device.name: device for device in map(whole, devices)}.values():
        if not _has_self_tests(disk):
            continue
        if tree is None and not machine.live:
            unchecked.append(f"SMART self-test of {disk.name}: not the running machine")
            continue
        unknown: dict[str, str] = {}
        data = Reading(tree or running(), unknown).json("self-test", _tool(disk))
        left = _left_percent(data) if data is not None else None
        if left is None:
            why = unknown.get("self-test", "smartctl does not report it")
            unchecked.append(f"SMART self-test of {disk.name}: {why}")
        elif left > 0:
            text = f"{disk.name} is testing itself (SMART self-test, {left:.0f} % left)"
            findings.append(ConditionFinding("self_test", "warn", text, {"left_percent": left}))
        else:
            findings.append(
                ConditionFinding("self_test", "ok", f"{disk.name} is not testing itself", {"left_percent": 0.0})
            )
    return findings, unchecked


def _has_self_tests(disk: Device) -> bool:
    return disk.kind == "disk" and not disk.name.startswith(("vd", "xvd", "mmcblk", "pmem", "mtd"))


def _tool(disk: Device) -> Tool:
    """smartctl, without waking a drive: a drive in standby tests nothing."""
    words = ("smartctl", "--json", "--nocheck=standby", "--capabilities", "--log=selftest", disk.path)
    return Tool("smartctl", f"selftest-{disk.name}", words)


def _left_percent(data: dict[str, Any]) -> float | None:
    """Share of the running test that is left; 0: no test runs. None: the drive does not report it."""
    status = dig_int(data, "ata_smart_data", "self_test", "status", "value")
    if status is not None:
        return max(1.0, 10.0 * (status & 15)) if status >> 4 == _IN_PROGRESS else 0.0
    operation = dig_int(data, "nvme_self_test_log", "current_self_test_operation", "value")
    if operation is not None:
        done = dig_int(data, "nvme_self_test_log", "current_self_test_completion_percent") or 0
        return max(1.0, 100.0 - done) if operation else 0.0
    latest = dig(data, "scsi_self_test_0")
    if isinstance(latest, dict):  # no progress is reported
        said = dig_text(latest, "result", "string") or dig_text(latest, "status") or ""
        runs = dig_int(latest, "result", "value") == _IN_PROGRESS or "in progress" in said.lower()
        return 100.0 if runs else 0.0
    return None
