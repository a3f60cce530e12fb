"""The rule of 2 x and 40 x all caches, from the stack that there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions.caches import Caches, known_caches
from spindle.conditions.sizing import CONTROLLER_BYTES, DRIVE_BYTES, rule_of
from spindle.host.devices import Device, by_name
from spindle.inspect.tree import ReadError, Tool

GIB = 1 << 30
MIB = 1 << 20


def caches(drives: dict[str, int | None], controllers: dict[str, int | None] | None = None) -> Caches:
    return Caches(16 * GIB, GIB, None, drives, controllers or {})


def device(name: str, machine: Any) -> Device:
    found = by_name(name, machine)
    assert found is not None
    return found


def test_buffered_io_needs_twice_and_forty_times_all_caches() -> None:
    rule = rule_of(caches({"sda": 64 * MIB, "sdb": 64 * MIB}, {"host0": 2 * GIB}), [], direct=False)
    assert rule.cache_bytes == 16 * GIB + 2 * GIB + 128 * MIB
    assert rule.least_bytes == 2 * rule.cache_bytes
    assert rule.safe_bytes == 40 * rule.cache_bytes
    assert rule.assumed == []


def test_direct_io_passes_by_the_memory() -> None:
    rule = rule_of(caches({"sda": 64 * MIB}), [], direct=True)
    assert rule.least_bytes == 128 * MIB


def test_what_does_not_tell_is_taken_for_the_largest_and_named() -> None:
    rule = rule_of(caches({"sda": None, "sdb": 64 * MIB}, {"host2": None}), [], direct=True)
    assert rule.hidden_bytes == DRIVE_BYTES + 64 * MIB + CONTROLLER_BYTES
    assert rule.assumed == ["host2", "sda"]


@pytest.mark.parametrize(("dio", "counted"), [("1", 0), ("0", 16 * GIB)])
def test_a_loop_device_without_direct_io_puts_the_memory_below_again(fake_sys: Any, dio: str, counted: int) -> None:
    place = fake_sys.device("loop0", "7:0", size=8)
    fake_sys.file(place / "loop/dio", dio)
    rule = rule_of(caches({"sda": MIB}), [device("loop0", fake_sys.machine)], direct=True)
    assert rule.page_cache_bytes == counted


def test_zfs_caches_whatever_is_asked_for() -> None:
    assert rule_of(caches({}), [], direct=True, file_system="zfs").page_cache_bytes == 16 * GIB


class Storcli:
    """storcli of one controller, or none."""

    live = True

    def __init__(self, memory: str | None) -> None:
        self.memory = memory

    def output(self, tool: Tool) -> str:
        if self.memory is None:
            raise ReadError(f"{tool.command[0]}: not installed")
        return json.dumps({"Controllers": [{"Response Data": {"HwCfg": {"On Board Memory Size": self.memory}}}]})


def behind_a_controller(fake_sys: Any, driver: str) -> Device:
    """sda at SCSI host 0, which is of that driver."""
    block: Path = fake_sys.machine.sys / "class/block"
    place = fake_sys.machine.sys / "devices/pci0/host0/target0/block/sda"
    for name, text in {"dev": "8:0", "size": "8"}.items():
        fake_sys.file(place / name, text)
    (block / "sda").symlink_to(place)
    fake_sys.file(fake_sys.machine.sys / "class/scsi_host/host0/proc_name", driver)
    return device("sda", fake_sys.machine)


@pytest.mark.parametrize(
    ("driver", "memory", "found"),
    [
        ("megaraid_sas", "2048MB", {"host0": 2 * GIB}),
        ("megaraid_sas", None, {"host0": None}),
        ("megaraid_sas", "garbage", {"host0": None}),
        ("3w-9xxx", "2048MB", {"host0": None}),
        ("ahci", "2048MB", {}),
    ],
)
def test_the_memory_of_a_raid_controller_is_asked_for(
    fake_sys: Any, driver: str, memory: str | None, found: dict[str, int | None]
) -> None:
    tree: Any = Storcli(memory)
    disk = behind_a_controller(fake_sys, driver)
    assert known_caches([disk], fake_sys.machine, tree).controllers == found


def test_without_the_running_machine_no_tool_is_asked(fake_sys: Any) -> None:
    disk = behind_a_controller(fake_sys, "megaraid_sas")
    assert known_caches([disk], fake_sys.machine).controllers == {"host0": None}
