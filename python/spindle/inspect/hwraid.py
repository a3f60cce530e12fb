"""Drives behind a RAID controller, which only its maker's tool (storcli, perccli, tw_cli) and smartctl can read.

The parsed formats are storcli's `J` output and tw_cli's `/cN show` tables.
"""

from __future__ import annotations

import re
from typing import Any

from . import smart as health
from .model import Controller, HardwareRaid, RaidDrive, RaidUnit
from .reading import Reading, dig, dig_int, dig_list, dig_text
from .tree import Tool, Tree

THREE_WARE = ("3w-9xxx", "3w-sas", "3w-xxxx")
_NODES = {"3w-9xxx": "/dev/twa", "3w-sas": "/dev/twl", "3w-xxxx": "/dev/twe"}
_HEALTHY_BATTERY = {"ok", "optimal", "optl"}
_WITHOUT_TOOL = ("hpsa", "smartpqi", "aacraid", "arcmsr", "cciss", "mptsas")


def hardware_raid(controller: Controller, index: int, tree: Tree) -> HardwareRaid | None:
    """None if it is not a RAID controller. `index`: its index among the controllers of its driver, from 0."""
    raid = HardwareRaid()
    read = Reading(tree, raid.unknown)
    if controller.driver == "megaraid_sas":
        _storcli(raid, read, controller)
        _behind_megaraid(raid, read, controller)
    elif controller.driver in THREE_WARE:
        _tw_cli(raid, read, index)
        _behind_3ware(raid, read, f"{_NODES[controller.driver]}{index}")
    elif controller.driver in _WITHOUT_TOOL:
        read.lack("units", f"the drives behind {controller.driver} are not read: no known tool for it")
    else:
        return None
    return raid


# --- megaraid ------------------------------------------------------------------------------------------------------


def _storcli(raid: HardwareRaid, read: Reading, controller: Controller) -> None:
    for name, program in (("storcli", "storcli64"), ("perccli", "perccli64")):
        data = read.json("units", Tool(name, "all", (program, "/call", "show", "all", "J")))
        if data is not None:
            raid.tool = name
            read.known("units")
            break
    else:
        read.lack("drives", raid.unknown["units"])
        read.lack("battery", raid.unknown["units"])
        return
    answer = _same_controller(dig_list(data, "Controllers"), controller)
    if answer is None:
        for field in ("units", "drives", "battery"):
            read.lack(field, f"{raid.tool}: reports nothing about {controller.id}")
        return
    raid.units = [_unit(row) for row in dig_list(answer, "VD LIST")]
    raid.drives = [_drive(row) for row in dig_list(answer, "PD LIST")]
    controller.name = dig_text(answer, "Basics", "Model") or controller.name
    controller.firmware = dig_text(answer, "Version", "Firmware Version") or controller.firmware
    rows = dig_list(answer, "BBU_Info") + dig_list(answer, "Cachevault_Info")
    raid.battery = dig_text(rows[0], "State") if rows else "absent"
    raid.battery_ok = (raid.battery or "").lower() in _HEALTHY_BATTERY if raid.battery is not None else None


def _same_controller(answers: list[Any], controller: Controller) -> Any:
    reported = [dig(answer, "Response Data") for answer in answers]
    reported = [answer for answer in reported if isinstance(answer, dict)]
    for answer in reported:
        # 00:03:00:00 is domain, bus, device, function
        parts = (dig_text(answer, "Basics", "PCI Address") or "").split(":")
        if len(parts) == 4 and f"{parts[0].zfill(4)}:{parts[1]}:{parts[2]}.{parts[3][-1:]}" == controller.id:
            return answer
    unaddressed = [answer for answer in reported if dig_text(answer, "Basics", "PCI Address") is None]
    return unaddressed[0] if len(reported) == len(unaddressed) == 1 else None


def _unit(row: Any) -> RaidUnit:
    unit = RaidUnit(name=dig_text(row, "DG/VD") or "?")
    unit.level, unit.state = dig_text(row, "TYPE"), dig_text(row, "State")
    unit.size, unit.cache = dig_text(row, "Size"), dig_text(row, "Cache")
    if unit.cache is not None:
        # RWBD: read-ahead, write back, direct; WT: write through; AWB: write back even with a bad battery
        unit.write_back = "WB" in unit.cache if "WB" in unit.cache or "WT" in unit.cache else None
    unit.unknown["chunk_bytes"] = "storcli /call show all does not report the strip size"
    return unit


def _drive(row: Any) -> RaidDrive:
    drive = RaidDrive(name=dig_text(row, "EID:Slt") or "?")
    drive.state, drive.model = dig_text(row, "State"), dig_text(row, "Model")
    drive.size, drive.medium, drive.interface = dig_text(row, "Size"), dig_text(row, "Med"), dig_text(row, "Intf")
    group = dig(row, "DG")
    drive.unit = str(group) if type(group) is int else None
    number = dig_int(row, "DID")
    if number is not None:
        drive.unknown["smart"] = f"megaraid,{number}"  # replaced by smartctl's answer
    return drive


def _behind_megaraid(raid: HardwareRaid, read: Reading, controller: Controller) -> None:
    host = controller.scsi_hosts[0].removeprefix("host") if controller.scsi_hosts else None
    for drive in raid.drives:
        kind = drive.unknown.pop("smart", None)
        if kind is None or host is None:
            drive.unknown["smart"] = "smartctl needs the device id that storcli gives, and the SCSI host"
        else:
            _ask_smartctl(drive, read.tree, f"bus{host}-{kind}", f"/dev/bus/{host}", kind)


# --- 3ware ---------------------------------------------------------------------------------------------------------

_LEVELS = re.compile(r"(u\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+([\d.]+|-)\s+(\S+)\s+(\S+)\s*")
_PORT = re.compile(r"(p\d+)\s+(\S+)\s+(u\d+|-)\s+([\d.]+ [KMGT]B|-)\s+(.*)")
_BATTERY = re.compile(r"bbu\s+(\S+)\s+(\S+)\s+(\S+)\b.*")


def _tw_cli(raid: HardwareRaid, read: Reading, index: int) -> None:
    text = read.output("units", Tool("tw_cli", f"c{index}", ("tw_cli", f"/c{index}", "show")))
    if text is None:
        read.lack("drives", raid.unknown["units"])
        read.lack("battery", raid.unknown["units"])
        return
    raid.tool = "tw_cli"
    for line in text.splitlines():
        if found := _LEVELS.fullmatch(line.rstrip()):
            raid.units.append(_three_ware_unit(found))
        elif found := _PORT.fullmatch(line.rstrip()):
            raid.drives.append(_three_ware_drive(found))
        elif found := _BATTERY.fullmatch(line.rstrip()):
            raid.battery, ready = found[3], found[2]
            raid.battery_ok = raid.battery.lower() in _HEALTHY_BATTERY and ready == "Yes"
    if raid.battery is None:
        raid.battery, raid.battery_ok = "absent", False
    if not raid.units:
        read.lack("units", f"tw_cli /c{index} show: no line of it is a unit")


def _three_ware_unit(found: re.Match[str]) -> RaidUnit:
    unit = RaidUnit(name=found[1], level=found[2], state=found[3], size=f"{found[7]} GB", cache=found[8])
    chunk = re.fullmatch(r"([0-9]{1,6})K", found[6])
    unit.chunk_bytes = int(chunk[1]) * 1024 if chunk else None
    # Ri: reads kept intelligently, Rb: basic; W: writes kept; ON and OFF on older firmware
    unit.write_back = {"RiW": True, "RbW": True, "W": True, "ON": True, "Ri": False, "Rb": False, "OFF": False}.get(
        found[8]
    )
    if unit.write_back is None:
        unit.unknown["write_back"] = f"tw_cli: {found[8]!r} is not a known cache setting"
    return unit


def _three_ware_drive(found: re.Match[str]) -> RaidDrive:
    words = found[5].split()
    return RaidDrive(
        name=found[1],
        state=found[2],
        unit=None if found[3] == "-" else found[3],
        size=None if found[4] == "-" else found[4],
        interface=words[0] if words and words[0] in ("SATA", "SAS") else None,
        model=words[-1] if words and words[-1] != "-" else None,
    )


def _behind_3ware(raid: HardwareRaid, read: Reading, node: str) -> None:
    for drive in raid.drives:
        if drive.size is not None:
            port = drive.name.removeprefix("p")
            _ask_smartctl(drive, read.tree, f"{node[5:]}-3ware,{port}", node, f"3ware,{port}")


def _ask_smartctl(drive: RaidDrive, tree: Tree, key: str, node: str, kind: str) -> None:
    data = Reading(tree, drive.unknown).json("smart", health.smart_tool(key, node, kind))
    if data is not None:
        drive.smart = health.smart_of(data, key)
        drive.serial = dig_text(data, "serial_number")
        drive.model = dig_text(data, "model_name") or drive.model
